package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"os"
	"slices"
	"time"

	"retort/internal/base/seal"
	"retort/internal/core"
)

// PollInterval sets how often Watcher.PollChanges should be called.
const PollInterval = 250 * time.Millisecond

// Watcher detects changes of the files of a configuration. It polls them, because network file systems do not report
// changes. Only one goroutine at a time may use it.
type Watcher struct {
	load     func(note NoteFunc, again bool) (*Config, error)
	readFile func(path string) ([]byte, error)
	now      func() time.Time

	known   map[string]fileContent // content that the last load found, by path; includes missing files
	inForce map[string]fileContent // content that the last accepted load found, by path
	pending map[string]fileContent // content that the last poll found, if it differs from known; otherwise nil
	retry   bool                   // known was not applied, for a reason other than the files

	stamps map[string]stampedContent // size, time and identity of each file with its content, by path
	moved  time.Time                 // when a stamp last changed
}

// fileContent represents the content of a file by its digest. The zero fileContent means that the file does not exist
// or cannot be read.
type fileContent struct {
	digest string // SHA-256 in hexadecimal
	blank  bool
}

type stampedContent struct {
	seal.FileStamp
	content fileContent
}

// stampDoubtTime is how long after a change all files are read again even if their stamps (such as size and time) are
// equal: the times of a file system may be as coarse as two seconds.
const stampDoubtTime = 3 * time.Second

// Update describes what PollChanges found.
type Update struct {
	Config *Config  // nil if Err is set
	Err    error    // why the new configuration cannot be used
	Files  []string // sorted paths of the files that differ from the accepted configuration
	// Digests maps the paths of those files that exist to their SHA-256 digests in hexadecimal.
	Digests map[string]string
}

// NewWatcher returns a Watcher that reads the configuration with the function load. That function must call Load and
// pass its own arguments on: note as Options.Note, and again as Options.Again. The Watcher then learns which files
// were read.
func NewWatcher(load func(note NoteFunc, again bool) (*Config, error)) *Watcher {
	read := func(path string) ([]byte, error) { return readFile(path, true) }
	return &Watcher{load: load, readFile: read, now: time.Now, stamps: map[string]stampedContent{}}
}

// LoadFirst reads the configuration for the first time and accepts it.
func (w *Watcher) LoadFirst() (*Config, error) {
	c, found, err := w.readConfig(false)
	if err != nil {
		return nil, err
	}
	for path, f := range found {
		if info, err := os.Stat(path); f.digest != "" && err == nil && !info.Mode().IsRegular() {
			delete(found, path) // it can be read only once
		}
	}
	w.known, w.inForce, w.moved = found, found, w.now()
	return c, nil
}

// PollChanges checks the files for changes, and returns false if there is nothing new. It reads the configuration
// only after two polls in a row have found the same change. If a file of the accepted configuration is now missing or
// empty, it sets Update.Err: another program may be about to write the file, and without the rules in it more would
// be allowed. After an error, the files are read again when they change.
func (w *Watcher) PollChanges() (Update, bool) {
	now := w.readChangedFiles()
	switch {
	case maps.Equal(now, w.known) && !w.retry:
		w.pending = nil
		return Update{}, false
	case !maps.Equal(now, w.pending) && !w.retry:
		w.pending = now
		return Update{}, false
	}
	w.pending = nil
	c, found, err := w.readConfig(true)
	if !maps.Equal(w.readChangedFiles(), now) || !readingsAgree(found, now) {
		w.pending = w.readChangedFiles() // they changed while they were read
		return Update{}, false
	}
	w.known, w.retry = found, false
	if err == nil {
		err = w.checkLost(found)
	}
	if err != nil {
		c = nil
		w.known = now
		maps.Copy(w.known, found)
	}
	return w.newUpdate(c, err), true
}

// IsQuiet reports whether the last call of PollChanges found no change.
func (w *Watcher) IsQuiet() bool { return w.pending == nil && !w.retry }

// Accept states that the configuration of the last Update is now in force.
func (w *Watcher) Accept() { w.inForce = w.known }

// RetryNext makes the next call of PollChanges read the files again.
func (w *Watcher) RetryNext() { w.retry = true }

// readingsAgree reports whether two readings of the configuration agree: a file that both have read must have had the
// same content both times.
func readingsAgree(a, b map[string]fileContent) bool {
	for path, f := range a {
		if other, both := b[path]; both && other != f {
			return false
		}
	}
	return true
}

func (w *Watcher) readConfig(again bool) (*Config, map[string]fileContent, error) {
	found := map[string]fileContent{}
	c, err := w.load(func(path string, text []byte) { found[path] = contentOf(text) }, again)
	return c, found, err
}

func contentOf(text []byte) fileContent {
	if text == nil {
		return fileContent{}
	}
	sum := sha256.Sum256(text)
	return fileContent{hex.EncodeToString(sum[:]), len(bytes.TrimSpace(text)) == 0}
}

// readChangedFiles returns the current content of the known files. It reads a file if the file's stamp (such as
// size and time) has changed. It reads all files if any stamp has changed within the last stampDoubtTime, because
// a file may then have changed without a change of its stamp.
func (w *Watcher) readChangedFiles() map[string]fileContent {
	now := map[string]fileContent{}
	for path := range w.known {
		f, known := w.stamps[path]
		stamp := stampOf(path)
		if !known || !stamp.IsSame(f.FileStamp) {
			w.moved = w.now()
		}
		if !known || !stamp.IsSame(f.FileStamp) || w.now().Sub(w.moved) < stampDoubtTime {
			text, err := w.readFile(path)
			if err != nil {
				text = nil
			}
			f = stampedContent{stamp, contentOf(text)}
		}
		w.stamps[path], now[path] = f, f.content
	}
	maps.DeleteFunc(w.stamps, func(path string, _ stampedContent) bool { _, kept := w.known[path]; return !kept })
	return now
}

// stampOf returns the stamp of a file, which changes when the file is written. It opens the file first, because that
// makes a network file system ask its server.
func stampOf(path string) seal.FileStamp {
	if f, err := openFile(path, true); err == nil {
		_ = f.Close()
	}
	return seal.StampOf(path)
}

// checkLost returns an error if a file of the accepted configuration is now missing or empty.
func (w *Watcher) checkLost(found map[string]fileContent) error {
	for _, path := range slices.Sorted(maps.Keys(w.inForce)) {
		before := w.inForce[path]
		now, looked := found[path]
		if before.digest == "" || before.blank || !looked || now.digest != "" && !now.blank {
			continue
		}
		what := "empty"
		if now.digest == "" {
			what = "missing or unreadable"
		}
		return core.Errorf(core.KindInvalidArguments, "config.watch", "%s is %s", path, what).
			WithHint("restore it, or restart retort serve to continue without it")
	}
	return nil
}

func (w *Watcher) newUpdate(c *Config, err error) Update {
	u := Update{Config: c, Err: err, Digests: map[string]string{}}
	for path, f := range w.known {
		if f == w.inForce[path] {
			continue
		}
		u.Files = append(u.Files, path)
		if f.digest != "" {
			u.Digests[path] = f.digest
		}
	}
	slices.Sort(u.Files)
	return u
}
