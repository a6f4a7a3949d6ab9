package seal

import (
	"os"
	"time"
)

// IsClockSteady reports whether the system clock is plausible: since the last call it went forward, by less than 14
// days. It stores the time of the call in the file at path. If the clock is implausible, callers should not expire
// anything.
func IsClockSteady(path string, now time.Time) bool {
	const absence = 14 * 24 * time.Hour
	last, err := os.Stat(path)
	ok := err == nil && now.After(last.ModTime()) && now.Sub(last.ModTime()) < absence
	if err := ReplaceFile(path, nil); err != nil {
		return false
	}
	return os.Chtimes(path, now, now) == nil && ok
}
