package testenv

import (
	"encoding/binary"
	"os"
	"syscall"
	"testing"
)

// KilledAtChange works like KilledAt, but kills the child after a number of changes to files in folders. The folders
// must exist. Consecutive identical changes may count as one.
func KilledAtChange(t *testing.T, variable, value string, folders []string, changes, none int) (last int) {
	t.Helper()
	fd, err := syscall.InotifyInit1(syscall.IN_NONBLOCK | syscall.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	events := os.NewFile(uintptr(fd), "inotify")
	defer events.Close()
	for _, folder := range folders {
		if _, err := syscall.InotifyAddWatch(
			fd, folder, syscall.IN_CREATE|syscall.IN_MODIFY|syscall.IN_MOVE|syscall.IN_DELETE|syscall.IN_CLOSE_WRITE,
		); err != nil {
			t.Fatalf("%s cannot be watched: %v", folder, err)
		}
	}
	return runUntilKilled(t, variable, value, none, func(kill func(), lines int) {
		if lines == 0 {
			go killAtChange(events, changes, kill)
		}
	})
}

// killAtChange reads inotify events from the file events, and calls kill after the given number of changes. If the
// file is closed earlier, it returns without calling kill.
func killAtChange(events *os.File, changes int, kill func()) {
	buffer := make([]byte, 16<<10)
	for {
		n, err := events.Read(buffer)
		if err != nil {
			return
		}
		for rest := buffer[:n]; len(rest) >= syscall.SizeofInotifyEvent; changes-- {
			if changes <= 1 {
				kill()
				return
			}
			name := binary.NativeEndian.Uint32(rest[12:]) // the length of the name that follows
			rest = rest[syscall.SizeofInotifyEvent+name:]
		}
	}
}
