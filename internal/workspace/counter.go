package workspace

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"time"

	"retort/internal/base/seal"
)

// counter is a file that holds what a session uses, for all engines of one data directory: whoever
// changes a workspace has its lock, takes the numbers from it and leaves them there. It is unfinished
// while somebody changes the workspace; who finds it so measures the folder, since the one before
// has died within a change. Where files have no locks there is none, and an engine counts alone.
type counter struct{ file *os.File }

const (
	counterSize = 24 // bytes: a mark, the bytes of contents, the entries
	finished    = "counted\n"
	unfinishedC = "changing"
	// counterPatience is how long another engine may take for one change.
	counterPatience = 10 * time.Second
)

func (s *Store) counterPath(name string) string { return filepath.Join(s.dir, locks, name+".count") }

// openCounter opens the counter of a session. A nil counter without an error is of no use to anybody.
func (s *Store) openCounter(name string) (*counter, error) {
	if !seal.Locks {
		return nil, nil
	}
	if err := os.MkdirAll(filepath.Join(s.dir, locks), 0o700); err != nil {
		return nil, err
	}
	file, err := seal.OpenFile(s.counterPath(name), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	return &counter{file}, nil
}

func (c *counter) close() {
	if c != nil {
		_ = c.file.Close()
	}
}

// begin waits for the lock and returns what is counted; false if that is not known.
func (c *counter) begin() (used usage, known bool, err error) {
	if err := seal.LockFile(c.file, counterPatience); err != nil {
		return usage{}, false, err
	}
	var b [counterSize]byte
	n, _ := c.file.ReadAt(b[:], 0)
	if known = n == counterSize && string(b[:8]) == finished; !known {
		return usage{}, false, nil
	}
	used = usage{int64(binary.LittleEndian.Uint64(b[8:])), int(binary.LittleEndian.Uint64(b[16:]))}
	if _, err := c.file.WriteAt([]byte(unfinishedC), 0); err != nil {
		if short := c.file.Truncate(0); short != nil {
			_ = seal.UnlockFile(c.file)
			return usage{}, false, errors.Join(err, short)
		}
	}
	return used, true, nil
}

// end leaves what is counted and gives back the lock. If it cannot be written, the next one measures.
func (c *counter) end(used usage) {
	var b [counterSize]byte
	copy(b[:], finished)
	binary.LittleEndian.PutUint64(b[8:], uint64(used.bytes))
	binary.LittleEndian.PutUint64(b[16:], uint64(used.entries))
	if _, err := c.file.WriteAt(b[8:], 8); err == nil {
		_, _ = c.file.WriteAt(b[:8], 0)
	}
	_ = seal.UnlockFile(c.file)
}

// change begins a change of the workspace, which ends with done: no other engine changes it
// meanwhile, and used is what all of them use. name is the path that errors speak of.
func (w *Workspace) change(name string) (done func(), err error) {
	w.mu.Lock()
	if err := w.begin(); err != nil {
		w.mu.Unlock()
		return nil, w.busy(name, err)
	}
	return func() {
		if w.counter != nil {
			w.counter.end(w.used)
		}
		w.mu.Unlock()
	}, nil
}

func (w *Workspace) busy(name string, err error) error {
	return failed(name, "EBUSY", "what the workspace uses cannot be counted: %v", err).
		WithHint("another engine may use the same session; try again, and see that the disk has room")
}

// begin makes used what all engines use. The caller holds mu.
func (w *Workspace) begin() (err error) {
	if w.counter == nil && !w.draft {
		if w.counter, err = w.store.openCounter(filepath.Base(w.dir)); err != nil {
			return err
		}
	}
	if w.counter != nil {
		used, known, err := w.counter.begin()
		if err != nil {
			return err
		}
		w.used, w.unmeasured = used, w.unmeasured || !known
	}
	if w.unmeasured {
		w.used, w.unmeasured = w.below("."), false
	}
	return nil
}
