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

// RetentionPolicy says how long files of sessions are kept. A field that is zero sets no limit.
type RetentionPolicy struct {
	Results  time.Duration // how long results that were too large to return are kept (results/ and files/)
	Sessions time.Duration // how long an unused session is kept, with all its data
	// Bytes is the maximum total size of all sessions. Beyond it, the oldest files in results/ and files/ are removed.
	Bytes int64
}

// SessionUse describes how much a session stores. Session is the name of the session's folder. It equals the name of
// the session if that name is safe as a file name.
type SessionUse struct {
	Session string    `json:"session"`
	Files   int       `json:"files"`
	Folders int       `json:"folders,omitempty"`
	Bytes   int64     `json:"bytes"`
	Used    time.Time `json:"used"` // time of the last change to any file or folder of the session
	Busy    bool      `json:"busy,omitempty"`
}

// SweepResult counts the files that were removed, or that would be removed by a dry run. It also names the affected
// sessions.
type SweepResult struct {
	Files    int      `json:"files"`
	Bytes    int64    `json:"bytes"`
	Sessions []string `json:"sessions,omitempty"` // sessions that were removed completely, with their state
	Busy     []string `json:"busy,omitempty"`     // sessions that are in use and were skipped
	Left     int64    `json:"left"`               // number of bytes that remain after the removal
}

// sweepRun holds the state of one pass over all sessions.
type sweepRun struct {
	store  *WorkspaceStore
	states *StateStore
	keep   RetentionPolicy
	now    time.Time
	dry    bool
	swept  SweepResult
	old    []agedFile // files that may be removed if the sessions are too large together
}

type agedFile struct {
	path string
	size int64
	at   time.Time
}

// SweepSessions removes files that have been kept for longer than the policy allows. If dry is set, it only reports
// them. It skips sessions that are in use by a program of any process.
func (s *WorkspaceStore) SweepSessions(states *StateStore, keep RetentionPolicy, now time.Time, dry bool) (SweepResult, error) {
	w := sweepRun{store: s, states: states, keep: keep, now: now, dry: dry}
	var errs []error
	for _, name := range s.sessionFolders() {
		errs = append(errs, w.sweepSession(name))
	}
	errs = append(errs, w.removeOldest())
	return w.swept, wrapError(errors.Join(errs...))
}

// EraseSession removes all data of a session. It returns an error if a program is using the session.
func (s *WorkspaceStore) EraseSession(states *StateStore, session string) (SweepResult, error) {
	w := sweepRun{store: s, states: states}
	name := folderName(session)
	unlock, err := s.lockAlone(name)
	if errors.Is(err, seal.ErrIrregular) {
		return w.swept, wrapError(err)
	}
	if err != nil {
		return w.swept, core.Errorf(
			core.KindPolicy, "workspace.erase", "the session is in use: %w", err,
		).WithHint("try again when its programs have ended")
	}
	defer unlock()
	_ = os.Remove(s.counterPath(name))
	return w.swept, wrapError(w.removeAll(name, slices.Collect(s.sessionFiles(name))))
}

func wrapError(err error) error {
	if err == nil {
		return nil
	}
	return core.Errorf(core.KindInternal, "workspace.gc", "not everything could be removed: %w", err)
}

// SessionUses describes all sessions. The most recently used session comes first.
func (s *WorkspaceStore) SessionUses() []SessionUse {
	var uses []SessionUse
	for _, name := range s.sessionFolders() {
		u := SessionUse{Session: name, Folders: s.countFolders(name)}
		for f := range s.sessionFiles(name) {
			u.Files, u.Bytes = u.Files+1, u.Bytes+f.size
			u.Used = laterTime(u.Used, f.at)
		}
		unlock, err := s.lockAlone(name)
		if u.Busy = err != nil; !u.Busy {
			unlock()
		}
		uses = append(uses, u)
	}
	slices.SortFunc(uses, func(a, b SessionUse) int { return cmp.Or(b.Used.Compare(a.Used), cmp.Compare(a.Session, b.Session)) })
	return uses
}

func laterTime(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// sessionFolders returns the names of the folders of all sessions.
func (s *WorkspaceStore) sessionFolders() []string {
	entries, _ := os.ReadDir(s.dir)
	var names []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names
}

// sessionFiles yields the regular files in a session's folder and its subfolders.
func (s *WorkspaceStore) sessionFiles(name string) iter.Seq[agedFile] {
	return func(yield func(agedFile) bool) {
		_ = filepath.WalkDir(filepath.Join(s.dir, name), func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return nil
			}
			if info, err := e.Info(); err == nil && !yield(agedFile{path, info.Size(), info.ModTime()}) {
				return fs.SkipAll
			}
			return nil
		})
	}
}

// countFolders counts the folders within a session's folder.
func (s *WorkspaceStore) countFolders(name string) (n int) {
	top := filepath.Join(s.dir, name)
	_ = filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && path != top {
			n++
		}
		return nil
	})
	return n
}

// lockFolder is the name of the folder that contains a lock file for each session. No session's folder can have this
// name. A process that uses a session holds a shared lock on its lock file.
const lockFolder = ".locks"

func (s *WorkspaceStore) lockPath(name string) string { return filepath.Join(s.dir, lockFolder, name) }

// lockAlone acquires the exclusive lock of a session. It returns an error if the session is in use.
func (s *WorkspaceStore) lockAlone(name string) (unlock func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.known {
		if w.users > 0 && filepath.Base(w.dir) == name {
			return nil, errors.New("in use")
		}
	}
	return seal.Lock(s.lockPath(name), 0)
}

func (w *sweepRun) sweepSession(name string) error {
	files := slices.Collect(w.store.sessionFiles(name))
	unlock, err := w.store.lockAlone(name)
	if errors.Is(err, seal.ErrIrregular) {
		return err
	}
	if err != nil {
		w.swept.Busy = append(w.swept.Busy, name)
		w.swept.Left += totalBytes(files)
		return nil
	}
	defer unlock()
	if !w.dry {
		_ = os.Remove(w.store.counterPath(name)) // the next change measures the session
	}
	if w.isExpired(w.lastUsed(name, files), w.keep.Sessions) {
		return w.removeAll(name, files)
	}
	w.swept.Left += totalBytes(files)
	var errs []error
	for _, f := range files {
		switch engines := w.isEngineFile(name, f.path); {
		case engines && w.isExpired(f.at, w.keep.Results), isUnfinished(f.path) && w.isExpired(f.at, time.Hour):
			errs = append(errs, w.removeFile(f))
		case engines:
			w.old = append(w.old, f)
		}
	}
	return errors.Join(errs...)
}

func totalBytes(files []agedFile) (bytes int64) {
	for _, f := range files {
		bytes += f.size
	}
	return bytes
}

// lastUsed returns the time at which anything in a session last changed.
func (w *sweepRun) lastUsed(name string, files []agedFile) (last time.Time) {
	for _, path := range []string{w.states.stateFile(name), filepath.Join(w.store.dir, name)} {
		if info, err := os.Stat(path); err == nil {
			last = laterTime(last, info.ModTime())
		}
	}
	for _, f := range files {
		last = laterTime(last, f.at)
	}
	return last
}

// isEngineFile reports whether a file is below results/ or files/. The engine stores large results in these folders.
func (w *sweepRun) isEngineFile(name, path string) bool {
	inner, err := filepath.Rel(filepath.Join(w.store.dir, name), path)
	first, _, below := strings.Cut(filepath.ToSlash(inner), "/")
	return err == nil && below && (first == "results" || first == "files")
}

// isUnfinished reports whether a file is a temporary file that a killed process left behind before it could rename the
// file.
func isUnfinished(path string) bool {
	name, ok := strings.CutSuffix(path, ".tmp")
	dot := strings.LastIndexByte(name, '.')
	return ok && len(name)-dot == 9 && strings.Trim(name[dot+1:], "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}

func (w *sweepRun) isExpired(at time.Time, after time.Duration) bool {
	return after > 0 && w.now.Sub(at) > after
}

func (w *sweepRun) removeAll(name string, files []agedFile) error {
	w.swept.Sessions = append(w.swept.Sessions, name)
	for _, f := range files {
		w.swept.Files, w.swept.Bytes = w.swept.Files+1, w.swept.Bytes+f.size
	}
	if w.dry {
		return nil
	}
	return errors.Join(w.store.removeCopy(name), os.RemoveAll(filepath.Join(w.store.dir, name)), w.states.removeState(name))
}

func (w *sweepRun) removeFile(f agedFile) error {
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

// removeOldest removes the oldest results until the files of all sessions together have at most the total size that
// the policy allows.
func (w *sweepRun) removeOldest() error {
	if w.keep.Bytes <= 0 {
		return nil
	}
	slices.SortFunc(w.old, func(a, b agedFile) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.path, b.path)) })
	for _, f := range w.old {
		if w.swept.Left <= w.keep.Bytes {
			return nil
		}
		name, _, _ := strings.Cut(filepath.ToSlash(strings.TrimPrefix(f.path, w.store.dir+string(filepath.Separator))), "/")
		unlock, err := w.store.lockAlone(name)
		if err != nil {
			continue
		}
		if !w.dry {
			_ = os.Remove(w.store.counterPath(name))
		}
		err = w.removeFile(f)
		unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// SweepInBackground calls SweepSessions after a minute and then every hour, until the returned function stop is
// called. It passes each result and error to report.
func (s *WorkspaceStore) SweepInBackground(states *StateStore, keep RetentionPolicy, report func(SweepResult, error)) (stop func()) {
	done := make(chan struct{})
	go func() {
		for wait := time.Minute; ; wait = time.Hour {
			select {
			case <-done:
				return
			case <-time.After(wait):
			}
			if seal.IsClockSteady(filepath.Join(s.dir, ".swept"), time.Now()) {
				report(s.SweepSessions(states, keep, time.Now(), false))
			}
		}
	}()
	return sync.OnceFunc(func() { close(done) })
}

// SessionSize returns the number of files of a session and their total size in bytes.
func (s *WorkspaceStore) SessionSize(session string) (files int, bytes int64) {
	for f := range s.sessionFiles(folderName(session)) {
		files, bytes = files+1, bytes+f.size
	}
	return files, bytes
}
