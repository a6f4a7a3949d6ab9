package workspace

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"time"

	"retort/internal/base/seal"
)

// usageCounter is a file that stores how much space a session uses. All engines with the same data directory share it.
// An engine that changes a workspace locks the file, reads the usage and writes the new usage. During the change the
// file is marked as unfinished. An engine that finds this mark knows that another engine has died during a change, so
// it measures the folder. On systems without file locks there is no counter, and each engine counts for itself.
type usageCounter struct{ file *os.File }

const (
	counterSize    = 24 // size of the file in bytes: a mark, the size of the contents, the number of entries
	countedMark    = "counted\n"
	unfinishedMark = "changing"
	// counterTimeout bounds how long an engine waits for a change that another engine is making.
	counterTimeout = 10 * time.Second
)

func (s *WorkspaceStore) counterPath(name string) string {
	return filepath.Join(s.dir, lockFolder, name+".count")
}

// openCounter opens the counter of a session. It returns nil without an error if the system has no file locks.
func (s *WorkspaceStore) openCounter(name string) (*usageCounter, error) {
	if !seal.Locks {
		return nil, nil
	}
	if err := os.MkdirAll(filepath.Join(s.dir, lockFolder), 0o700); err != nil {
		return nil, err
	}
	file, err := seal.OpenFile(s.counterPath(name), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	return &usageCounter{file}, nil
}

func (c *usageCounter) closeCounter() {
	if c != nil {
		_ = c.file.Close()
	}
}

// lockUsage waits for the lock, returns the usage and marks the file as unfinished. known is false if the file has no
// valid usage, so that the caller must measure the folder.
func (c *usageCounter) lockUsage() (used spaceUsage, known bool, err error) {
	if err := seal.LockFile(c.file, counterTimeout); err != nil {
		return spaceUsage{}, false, err
	}
	var b [counterSize]byte
	n, _ := c.file.ReadAt(b[:], 0)
	if known = n == counterSize && string(b[:8]) == countedMark; !known {
		return spaceUsage{}, false, nil
	}
	used = spaceUsage{int64(binary.LittleEndian.Uint64(b[8:])), int(binary.LittleEndian.Uint64(b[16:]))}
	if _, err := c.file.WriteAt([]byte(unfinishedMark), 0); err != nil {
		if short := c.file.Truncate(0); short != nil {
			_ = seal.UnlockFile(c.file)
			return spaceUsage{}, false, errors.Join(err, short)
		}
	}
	return used, true, nil
}

// storeUsage writes the usage and releases the lock. If writing fails, the next engine measures the folder.
func (c *usageCounter) storeUsage(used spaceUsage) {
	var b [counterSize]byte
	copy(b[:], countedMark)
	binary.LittleEndian.PutUint64(b[8:], uint64(used.bytes))
	binary.LittleEndian.PutUint64(b[16:], uint64(used.entries))
	if _, err := c.file.WriteAt(b[8:], 8); err == nil {
		_, _ = c.file.WriteAt(b[:8], 0)
	}
	_ = seal.UnlockFile(c.file)
}

// beginChange begins a change of the workspace. The caller must call done to end the change. Until then no other
// engine changes the workspace, and w.used is the space used by all engines. name is the path for error messages.
func (w *Workspace) beginChange(name string) (done func(), err error) {
	w.mu.Lock()
	if err := w.loadUsage(); err != nil {
		w.mu.Unlock()
		return nil, w.busyError(name, err)
	}
	return func() {
		if w.counter != nil {
			w.counter.storeUsage(w.used)
		}
		w.mu.Unlock()
	}, nil
}

func (w *Workspace) busyError(name string, err error) error {
	if errors.Is(err, seal.ErrIrregular) {
		return toolError(name, "EIO", "the disk usage of the workspace cannot be counted: %v; the person who runs Retort should move it away", err)
	}
	return toolError(name, "EBUSY", "the disk usage of the workspace cannot be counted: %v", err).
		WithHint("another engine may use the same session; try again, and check that the disk has free space")
}

// loadUsage sets w.used to the current usage, including changes by other engines. The caller must hold mu.
func (w *Workspace) loadUsage() (err error) {
	if w.counter == nil && !w.draft {
		if w.counter, err = w.store.openCounter(filepath.Base(w.dir)); err != nil {
			return err
		}
	}
	if w.counter != nil {
		used, known, err := w.counter.lockUsage()
		if err != nil {
			return err
		}
		w.used, w.unmeasured = used, w.unmeasured || !known
	}
	if w.unmeasured {
		w.used, w.unmeasured = w.treeUsage("."), false
	}
	return nil
}
