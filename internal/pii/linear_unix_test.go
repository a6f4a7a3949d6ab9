//go:build unix

package pii

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// spent is the time that this process had a processor: others on the machine
// do not count.
func spent(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func TestHostileTextTakesLinearTime(t *testing.T) {
	s := New(Options{})
	took := func(h string, n int) time.Duration {
		text := []byte(strings.Repeat(h, n/len(h)))
		best := time.Hour
		for range 3 {
			var c counting
			start := spent(t)
			s.Replace(text, nil, &c)
			best = min(best, spent(t)-start)
		}
		return best
	}
	for _, h := range hostile {
		short, long := took(h, 1<<16), took(h, 1<<19)
		if long > 24*short && long > 100*time.Millisecond || long > 3*time.Second {
			t.Errorf("%q: %v for 64 KB, %v for 512 KB", h, short, long)
		}
	}
}
