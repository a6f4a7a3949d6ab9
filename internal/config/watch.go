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

// PollInterval sets how often Watch.Poll should be called.
const PollInterval = 250 * time.Millisecond

// Watch detects changes of the files of a configuration. It polls them, because network file systems do not report
// changes. Only one goroutine at a time may use it.
type Watch struct {
	load     func(note Note, again bool) (*Config, error)
	readFile func(path string) ([]byte, error)
	now      func() time.Time

	known   map[string]content // what the last reading found, by path; what it did not find too
	inForce map[string]content // what the reading found that was accepted last
	pending map[string]content // what was found when the files were last looked at, if that is not known; else nil
	retry   bool               // what is known was not applied, through no fault of the files

	stamps map[string]stamped // by path
	moved  time.Time          // when a stamp was last another one
}

// content identifies the content of a file. The zero content means that the file does not exist or cannot be read.
type content struct {
	digest string // SHA-256, hexadecimal
	blank  bool
}

type stamped struct {
	seal.Stamp
	content content
}

// doubted sets how long after a change files are read again even if their stamps are equal: a file system's times may
// be as coarse as two seconds.
const doubted = 3 * time.Second

// Update describes what Poll found.
type Update struct {
	Config *Config  // nil if Err is set
	Err    error    // why the files cannot be used
	Files  []string // paths of the files that differ from the last accepted ones, sorted
	// Digests maps the paths of those files that exist to their SHA-256 digests in hexadecimal.
	Digests map[string]string
}

// NewWatch returns a Watch of the configuration that load reads. load must pass note and again to Load as
// Options.Note and Options.Again.
func NewWatch(load func(note Note, again bool) (*Config, error)) *Watch {
	read := func(path string) ([]byte, error) { return readFile(path, true) }
	return &Watch{load: load, readFile: read, now: time.Now, stamps: map[string]stamped{}}
}

// Load reads the configuration for the first time and accepts it.
func (w *Watch) Load() (*Config, error) {
	c, found, err := w.read(false)
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

// Poll checks the files for changes. It reads the configuration once two polls in a row found the same change, and
// returns false if there is nothing new. If an accepted file is now missing or empty, Update.Err is set: the file may
// be about to be written, and without it fewer things would be forbidden. After an error Poll reads the files again
// when they change.
func (w *Watch) Poll() (Update, bool) {
	now := w.look()
	switch {
	case maps.Equal(now, w.known) && !w.retry:
		w.pending = nil
		return Update{}, false
	case !maps.Equal(now, w.pending) && !w.retry:
		w.pending = now
		return Update{}, false
	}
	w.pending = nil
	c, found, err := w.read(true)
	if !maps.Equal(w.look(), now) || !agree(found, now) {
		w.pending = w.look() // they changed while they were read
		return Update{}, false
	}
	w.known, w.retry = found, false
	if err == nil {
		err = w.lost(found)
	}
	if err != nil {
		c = nil
		w.known = now
		maps.Copy(w.known, found)
	}
	return w.update(c, err), true
}

// Quiet reports whether the last Poll found no change.
func (w *Watch) Quiet() bool { return w.pending == nil && !w.retry }

// Accept states that the configuration of the last Update is now in force.
func (w *Watch) Accept() { w.inForce = w.known }

// Retry makes the next Poll read the files again.
func (w *Watch) Retry() { w.retry = true }

// agree reports whether two readings are equal in all files that both looked for.
func agree(a, b map[string]content) bool {
	for path, f := range a {
		if other, both := b[path]; both && other != f {
			return false
		}
	}
	return true
}

func (w *Watch) read(again bool) (*Config, map[string]content, error) {
	found := map[string]content{}
	c, err := w.load(func(path string, text []byte) { found[path] = contentOf(text) }, again)
	return c, found, err
}

func contentOf(text []byte) content {
	if text == nil {
		return content{}
	}
	sum := sha256.Sum256(text)
	return content{hex.EncodeToString(sum[:]), len(bytes.TrimSpace(text)) == 0}
}

// look returns the current content of the known files. It reads a file only if its stamp has changed, or if any stamp
// changed within the time doubted.
func (w *Watch) look() map[string]content {
	now := map[string]content{}
	for path := range w.known {
		f, known := w.stamps[path]
		stamp := stampOf(path)
		if !known || !stamp.Same(f.Stamp) {
			w.moved = w.now()
		}
		if !known || !stamp.Same(f.Stamp) || w.now().Sub(w.moved) < doubted {
			text, err := w.readFile(path)
			if err != nil {
				text = nil
			}
			f = stamped{stamp, contentOf(text)}
		}
		w.stamps[path], now[path] = f, f.content
	}
	maps.DeleteFunc(w.stamps, func(path string, _ stamped) bool { _, kept := w.known[path]; return !kept })
	return now
}

// stampOf returns the stamp of a file. It opens the file first, because that makes a network file system ask its
// server.
func stampOf(path string) seal.Stamp {
	if f, err := openFile(path, true); err == nil {
		_ = f.Close()
	}
	return seal.StampOf(path)
}

// lost returns an error if a file of the accepted configuration is now missing or empty.
func (w *Watch) lost(found map[string]content) error {
	for _, path := range slices.Sorted(maps.Keys(w.inForce)) {
		before := w.inForce[path]
		now, looked := found[path]
		if before.digest == "" || before.blank || !looked || now.digest != "" && !now.blank {
			continue
		}
		what := "empty"
		if now.digest == "" {
			what = "gone, or cannot be read"
		}
		return core.Errorf(core.KindInvalidArguments, "config.watch", "%s is %s", path, what).
			WithHint("restore it, or restart retort serve to continue without it")
	}
	return nil
}

func (w *Watch) update(c *Config, err error) Update {
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
