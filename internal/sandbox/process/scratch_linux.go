package process

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"retort/internal/base/seal"
	"retort/internal/sandbox/procgroup"
)

const (
	scratchName = "retort-harness-"
	// scratchLock is the name of the lock file in a scratch directory; the process that holds its lock uses the
	// directory.
	scratchLock = "lock"
)

// scratchDir represents a directory of this engine that children can read. If an engine is killed, the next engine
// that starts removes its directory.
type scratchDir struct {
	dir  string
	lock *os.File // locked file; the system releases the lock however the engine ends
}

// newScratch creates a directory of this engine and locks it. The directory gets its final name only after it is
// locked, so that no other engine can take it for the directory of a dead engine.
func newScratch() (s scratchDir, err error) {
	sweepDeadEngines()
	made, err := os.MkdirTemp("", "retort-new-")
	if err != nil {
		return scratchDir{}, err
	}
	if s.lock, err = os.OpenFile(filepath.Join(made, scratchLock), os.O_CREATE|os.O_RDWR|os.O_EXCL, 0o600); err == nil {
		err = seal.LockFile(s.lock, 0)
	}
	if err == nil {
		err = os.Chmod(made, 0o755)
	}
	if err == nil {
		s.dir = filepath.Join(filepath.Dir(made), scratchName+strings.TrimPrefix(filepath.Base(made), "retort-new-"))
		err = os.Rename(made, s.dir)
	}
	if err != nil {
		s.dir = made
		s.remove()
		return scratchDir{}, err
	}
	return s, nil
}

func (s scratchDir) remove() {
	if s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
	_ = s.lock.Close()
}

// sweepDeadEngines removes the directories that dead engines of this user left behind. It recognizes them by their
// locks, not by process ids, because ids are reused, and containers that share a directory have ids of their own.
func sweepDeadEngines() {
	stale, _ := filepath.Glob(filepath.Join(os.TempDir(), scratchName+"*"))
	for _, dir := range stale {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() {
			continue
		}
		if owner, ok := info.Sys().(*syscall.Stat_t); !ok || int(owner.Uid) != os.Geteuid() {
			continue
		}
		lock, err := os.OpenFile(filepath.Join(dir, scratchLock), os.O_RDWR|syscall.O_NOFOLLOW, 0)
		if err != nil {
			continue
		}
		if procgroup.IsAbandoned(lock) {
			_ = os.RemoveAll(dir)
		}
		_ = lock.Close()
	}
}
