//go:build !windows

package client

func inheritedNames() []string {
	return []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TERM", "TMPDIR", "TZ"}
}

func sameVariable(a, b string) bool { return a == b }
