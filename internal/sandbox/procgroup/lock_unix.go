//go:build unix

package procgroup

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"retort/internal/base/seal"
)

// inheritedLockGrace is how long IsAbandoned waits for the lock of a dead engine. Children of that engine may have
// inherited the lock.
const inheritedLockGrace = 2 * time.Second

// IsAbandoned reports whether the process that locked a file is dead. It tries to take the exclusive lock (flock) of
// the file, and returns true if it gets the lock. If a process was killed while it was starting a child, the child
// also holds the lock until it executes its program or dies. IsAbandoned waits a short time for that.
func IsAbandoned(f *os.File) bool { return tryLock(f, inheritedLockGrace) }

func tryLock(f *os.File, within time.Duration) bool {
	for end := time.Now().Add(within); ; time.Sleep(5 * time.Millisecond) {
		err := seal.LockFile(f, 0)
		if !errors.Is(err, syscall.EWOULDBLOCK) || time.Now().After(end) || lockerLives(f) {
			return err == nil
		}
	}
}

// lockerLives reports whether the process that locked f still exists. It returns true if the kernel's list of locks
// cannot be read, and false for a process that the list omits, such as one in another PID namespace.
func lockerLives(f *os.File) bool {
	var stat syscall.Stat_t
	locks, err := os.ReadFile("/proc/locks")
	if err != nil || syscall.Fstat(int(f.Fd()), &stat) != nil {
		return true
	}
	file := ":" + strconv.FormatUint(uint64(stat.Ino), 10) // devices have other numbers here on some file systems
	for line := range bytes.Lines(locks) {
		if fields := strings.Fields(string(line)); len(fields) > 5 && fields[1] == "FLOCK" && strings.HasSuffix(fields[5], file) {
			if _, err := os.Stat(filepath.Join("/proc", fields[4])); err == nil {
				return true
			}
		}
	}
	return false
}
