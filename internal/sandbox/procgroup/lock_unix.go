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
)

// inherited is how long the lock of an engine that has died is waited for.
const inherited = 2 * time.Second

// Abandoned takes the lock of a file (flock, exclusive), and says whether it has: no, if the process
// that locked it lives. What that was just starting when it was killed has the lock, too, until it is
// the program that it becomes or has died in its turn: that is waited for.
func Abandoned(f *os.File) bool { return abandoned(f, inherited) }

func abandoned(f *os.File, within time.Duration) bool {
	for end := time.Now().Add(within); ; time.Sleep(5 * time.Millisecond) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) || time.Now().After(end) || lockerLives(f) {
			return err == nil
		}
	}
}

// lockerLives says whether the process that locked f is there, or nobody can tell. The kernel lists
// none of another namespace of process ids.
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
