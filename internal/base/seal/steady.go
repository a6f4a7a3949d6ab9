package seal

import (
	"os"
	"time"
)

// IsClockSteady stores the current time in a file. It reports whether the clock is plausible compared with the last call: it
// went forward, by less than 14 days. If it is not, nothing should be considered expired.
func IsClockSteady(path string, now time.Time) bool {
	const absence = 14 * 24 * time.Hour
	last, err := os.Stat(path)
	ok := err == nil && now.After(last.ModTime()) && now.Sub(last.ModTime()) < absence
	if err := ReplaceFile(path, nil); err != nil {
		return false
	}
	return os.Chtimes(path, now, now) == nil && ok
}
