package seal

import (
	"path/filepath"
	"testing"
	"time"
)

// TestSteady checks that IsClockSteady returns false on the first call, and after the clock has jumped forward or
// back.
func TestSteady(t *testing.T) {
	const day = 24 * time.Hour
	path, now := filepath.Join(t.TempDir(), "stamp"), time.Now()
	for i, c := range []struct {
		after time.Duration
		want  bool
	}{{0, false}, {time.Hour, true}, {400 * day, false}, {400*day + time.Hour, true}, {time.Hour, false}, {2 * time.Hour, true}} {
		if got := IsClockSteady(path, now.Add(c.after)); got != c.want {
			t.Errorf("%d: %v", i, got)
		}
	}
}
