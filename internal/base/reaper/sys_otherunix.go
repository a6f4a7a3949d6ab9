//go:build unix && !linux && !darwin

package reaper

// startTime returns "", because the start time of a process is unknown on this system.
func startTime(int) string { return "" }
