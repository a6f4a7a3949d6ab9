//go:build !linux

package process

// hasWalls is false, because on this system only the runtime confines a program.
const hasWalls = false

func userOf(bool) int { return 0 }

func findRemedy(string) (cause, hint string) {
	return "this operating system has none", "use another sandbox"
}

func sameProgram(path string) string { return path }
