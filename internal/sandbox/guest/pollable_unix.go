//go:build unix

package guest

import (
	"os"
	"syscall"
)

// pollableFile returns f with reads that go through Go's poller. Waiting for input then needs no thread, and a waiting
// goroutine receives it without a thread switch. This halves the time of a call.
func pollableFile(f *os.File) *os.File {
	fd := f.Fd()
	if syscall.SetNonblock(int(fd), true) != nil {
		return f
	}
	return os.NewFile(fd, f.Name())
}
