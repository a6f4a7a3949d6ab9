//go:build unix && !linux && !darwin

package reaper

// startTime is not known on this system.
func startTime(int) string { return "" }
