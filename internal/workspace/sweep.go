package workspace

import (
	"cmp"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"retort/internal/base/seal"
	"retort/internal/core"
)

// Retention sets how long files are kept. Zero fields mean for ever.
type Retention struct {
	Results  time.Duration // results that were too large to return: results/ and files/
	Sessions time.Duration // all data of a session that was not used for this time
	Bytes    int64         // total of all sessions; beyond it the oldest of results/ and files/ are removed
}

// Use describes what a session stores. Its name is the name of the session's folder, which is the session's name if
// that is plain.
type Use struct {
	Session string    `json:"session"`
	Files   int       `json:"files"`
	Folders int       `json:"folders,omitempty"`
	Bytes   int64     `json:"bytes"`
	Used    time.Time `json:"used"` // when something of it last changed
	Busy    bool      `json:"busy,omitempty"`
}

// Swept describes what was removed or, in a dry run, would be.
type Swept struct {
	Files    int      `json:"files"`
	Bytes    int64    `json:"bytes"`
	Sessions []string `json:"sessions,omitempty"` // sessions that were removed completely, with their state
	Busy     []string `json:"busy,omitempty"`     // sessions that are in use and were skipped
	Left     int64    `json:"left"`               // remaining bytes
}

// sweeping represents one pass over all sessions.
type sweeping struct {
	store  *Store
	states *States
	keep   Retention
	now    time.Time
	dry    bool
	swept  Swept
	old    []aged // files that may be removed if there is too much
}

type aged struct {
	path string
	size int64
	at   time.Time
}

// Sweep removes what has been kept for long enough. If dry is set, it only reports. It leaves alone what a program of
// any process uses.
func (s *Store) Sweep(states *States, keep Retention, now time.Time, dry bool) (Swept, error) {
	w := sweeping{store: s, states: states, keep: keep, now: now, dry: dry}
	var errs []error
	for _, name := range s.sessions() {
		errs = append(errs, w.session(name))
	}
	errs = append(errs, w.shrink())
	return w.swept, wrapped(errors.Join(errs...))
}

// Erase removes all data of a session. It returns an error if a program uses it.
func (s *Store) Erase(states *States, session string) (Swept, error) {
	w := sweeping{store: s, states: states}
	name := folder(session)
	unlock, err := s.alone(name)
	if err != nil {
		return w.swept, core.Errorf(core.KindPolicy, "workspace.erase", "the session is in use: %w", err).WithHint("try again when its programs have ended")
	}
	defer unlock()
	_ = os.Remove(s.counterPath(name))
	return w.swept, wrapped(w.all(name, slices.Collect(s.files(name))))
}

func wrapped(err error) error {
	if err == nil {
		return nil
	}
	return core.Errorf(core.KindInternal, "workspace.gc", "not everything could be removed: %w", err)
}

// Uses returns all sessions, the most recently used first.
func (s *Store) Uses() []Use {
	var uses []Use
	for _, name := range s.sessions() {
		u := Use{Session: name, Folders: s.folders(name)}
		for f := range s.files(name) {
			u.Files, u.Bytes = u.Files+1, u.Bytes+f.size
			u.Used = later(u.Used, f.at)
		}
		unlock, err := s.alone(name)
		if u.Busy = err != nil; !u.Busy {
			unlock()
		}
		uses = append(uses, u)
	}
	slices.SortFunc(uses, func(a, b Use) int { return cmp.Or(b.Used.Compare(a.Used), cmp.Compare(a.Session, b.Session)) })
	return uses
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// sessions returns the folders of all sessions.
func (s *Store) sessions() []string {
	entries, _ := os.ReadDir(s.dir)
	var names []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names
}

// files yields the regular files of a session's folder.
func (s *Store) files(name string) iter.Seq[aged] {
	return func(yield func(aged) bool) {
		_ = filepath.WalkDir(filepath.Join(s.dir, name), func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return nil
			}
			if info, err := e.Info(); err == nil && !yield(aged{path, info.Size(), info.ModTime()}) {
				return fs.SkipAll
			}
			return nil
		})
	}
}

// folders counts the folders within a session's folder.
func (s *Store) folders(name string) (n int) {
	top := filepath.Join(s.dir, name)
	_ = filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && path != top {
			n++
		}
		return nil
	})
	return n
}

// locks is a folder that cannot be a session's. It holds a lock file for each session. Users of a session have a
// shared lock on it.
const locks = ".locks"

func (s *Store) lockPath(name string) string { return filepath.Join(s.dir, locks, name) }

// alone takes the exclusive lock of a session. It returns an error if the session is in use.
func (s *Store) alone(name string) (unlock func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.known {
		if w.users > 0 && filepath.Base(w.dir) == name {
			return nil, errors.New("in use")
		}
	}
	return seal.Lock(s.lockPath(name), 0)
}

func (w *sweeping) session(name string) error {
	files := slices.Collect(w.store.files(name))
	unlock, err := w.store.alone(name)
	if err != nil {
		w.swept.Busy = append(w.swept.Busy, name)
		w.swept.Left += total(files)
		return nil
	}
	defer unlock()
	if !w.dry {
		_ = os.Remove(w.store.counterPath(name)) // the next change measures the session
	}
	if w.expired(w.used(name, files), w.keep.Sessions) {
		return w.all(name, files)
	}
	w.swept.Left += total(files)
	var errs []error
	for _, f := range files {
		switch engines := w.kept(name, f.path); {
		case engines && w.expired(f.at, w.keep.Results), unfinished(f.path) && w.expired(f.at, time.Hour):
			errs = append(errs, w.remove(f))
		case engines:
			w.old = append(w.old, f)
		}
	}
	return errors.Join(errs...)
}

func total(files []aged) (bytes int64) {
	for _, f := range files {
		bytes += f.size
	}
	return bytes
}

// used returns when anything in a session last changed.
func (w *sweeping) used(name string, files []aged) (last time.Time) {
	for _, path := range []string{w.states.file(name), filepath.Join(w.store.dir, name)} {
		if info, err := os.Stat(path); err == nil {
			last = later(last, info.ModTime())
		}
	}
	for _, f := range files {
		last = later(last, f.at)
	}
	return last
}

// kept reports whether the engine, not a program, put a file into the workspace.
func (w *sweeping) kept(name, path string) bool {
	inner, err := filepath.Rel(filepath.Join(w.store.dir, name), path)
	first, _, below := strings.Cut(filepath.ToSlash(inner), "/")
	return err == nil && below && (first == "results" || first == "files")
}

// unfinished reports whether a file is the temporary file of a write that was killed before it renamed it.
func unfinished(path string) bool {
	name, ok := strings.CutSuffix(path, ".tmp")
	dot := strings.LastIndexByte(name, '.')
	return ok && len(name)-dot == 9 && strings.Trim(name[dot+1:], "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}

func (w *sweeping) expired(at time.Time, after time.Duration) bool {
	return after > 0 && w.now.Sub(at) > after
}

func (w *sweeping) all(name string, files []aged) error {
	w.swept.Sessions = append(w.swept.Sessions, name)
	for _, f := range files {
		w.swept.Files, w.swept.Bytes = w.swept.Files+1, w.swept.Bytes+f.size
	}
	if w.dry {
		return nil
	}
	return errors.Join(w.store.removeCopy(name), os.RemoveAll(filepath.Join(w.store.dir, name)), w.states.forget(name))
}

func (w *sweeping) remove(f aged) error {
	if !w.dry {
		if inner, err := filepath.Rel(w.store.dir, f.path); err == nil {
			if err := w.store.removeCopy(inner); err != nil {
				return err
			}
		}
		if err := os.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	w.swept.Files, w.swept.Bytes, w.swept.Left = w.swept.Files+1, w.swept.Bytes+f.size, w.swept.Left-f.size
	return nil
}

// shrink removes the oldest results while their total size is too large.
func (w *sweeping) shrink() error {
	if w.keep.Bytes <= 0 {
		return nil
	}
	slices.SortFunc(w.old, func(a, b aged) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.path, b.path)) })
	for _, f := range w.old {
		if w.swept.Left <= w.keep.Bytes {
			return nil
		}
		name, _, _ := strings.Cut(filepath.ToSlash(strings.TrimPrefix(f.path, w.store.dir+string(filepath.Separator))), "/")
		unlock, err := w.store.alone(name)
		if err != nil {
			continue
		}
		if !w.dry {
			_ = os.Remove(w.store.counterPath(name))
		}
		err = w.remove(f)
		unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// Background sweeps every hour until stop is called. It passes what was removed, and errors, to report.
func (s *Store) Background(states *States, keep Retention, report func(Swept, error)) (stop func()) {
	done := make(chan struct{})
	go func() {
		for wait := time.Minute; ; wait = time.Hour {
			select {
			case <-done:
				return
			case <-time.After(wait):
			}
			if seal.Steady(filepath.Join(s.dir, ".swept"), time.Now()) {
				report(s.Sweep(states, keep, time.Now(), false))
			}
		}
	}()
	return sync.OnceFunc(func() { close(done) })
}

// Holds returns the number of a session's files and their size in bytes.
func (s *Store) Holds(session string) (files int, bytes int64) {
	for f := range s.files(folder(session)) {
		files, bytes = files+1, bytes+f.size
	}
	return files, bytes
}
