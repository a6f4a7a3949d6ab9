//go:build unix

package pii

import (
	"fmt"
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
	took := func(text []byte) time.Duration {
		best := time.Hour
		for range 3 {
			var c counting
			start := spent(t)
			s.Replace(text, nil, &c)
			best = min(best, spent(t)-start)
		}
		return best
	}
	texts := map[string]func(n int) []byte{"names alike": manyNamed}
	for _, h := range hostile {
		texts[h] = func(n int) []byte { return []byte(strings.Repeat(h, n/len(h))) }
	}
	for h, text := range texts {
		short, long := took(text(1<<16)), took(text(1<<19))
		if long > 24*short && long > 100*time.Millisecond || long > 3*time.Second {
			t.Errorf("%q: %v for 64 KB, %v for 512 KB", h, short, long)
		}
	}
}

// manyNamed is n bytes of people of whom all have the same given name, family name, or more,
// and who are told of again.
func manyNamed(n int) []byte {
	var b strings.Builder
	b.WriteByte('[')
	for i := 0; b.Len() < n; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		other := fmt.Sprintf("%c%c%c%cson", 'A'+i%26, 'a'+i/26%26, 'a'+i/676%26, 'a'+i/17576)
		name := []string{"Maria " + other, other + " Lindqvist", "Maria & " + other, "Maria del Mar " + other}[i%4]
		fmt.Fprintf(&b, `{"email":"a%d@example.com","full_name":%q,"note":"Maria del Mar, Maria & Maria and Lindqvist called"}`, i, name)
	}
	b.WriteByte(']')
	return []byte(b.String())
}
