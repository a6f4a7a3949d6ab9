package seal

import (
	"os"
	"time"
)

// Steady notes the time in a file, and reports whether the clock has gone on plausibly since
// it was last noted there: after a jump, nothing should be taken for old.
func Steady(path string, now time.Time) bool {
	const absence = 14 * 24 * time.Hour
	last, err := os.Stat(path)
	ok := err == nil && now.After(last.ModTime()) && now.Sub(last.ModTime()) < absence
	if err := Replace(path, nil); err != nil {
		return false
	}
	return os.Chtimes(path, now, now) == nil && ok
}
