package seal

import (
	"os"
	"time"
)

// IsClockSteady reports whether the system clock is plausible, which means that it has moved forward since the last
// call, and by less than 14 days. It stores the time of the call in the file at path. If the clock is not plausible,
// callers should not delete expired data.
func IsClockSteady(path string, now time.Time) bool {
	const absence = 14 * 24 * time.Hour
	last, err := os.Stat(path)
	ok := err == nil && now.After(last.ModTime()) && now.Sub(last.ModTime()) < absence
	if err := ReplaceFile(path, nil); err != nil {
		return false
	}
	return os.Chtimes(path, now, now) == nil && ok
}
