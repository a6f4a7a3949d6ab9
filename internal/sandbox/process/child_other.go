//go:build !linux

package process

// hasWalls is false, because package confine cannot confine a child on this system.
const hasWalls = false

func userOf(bool) int { return 0 }

func findRemedy(string) (cause, hint string) {
	return "this operating system does not have it", "use another sandbox"
}

func sameProgram(path string) string { return path }
