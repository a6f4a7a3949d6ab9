package client

import "strings"

func inheritedNames() []string {
	return []string{
		"PATH", "PATHEXT", "COMSPEC", "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "TEMP", "TMP",
		"USERNAME", "USERPROFILE", "HOMEDRIVE", "HOMEPATH", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA",
		"PROGRAMFILES", "PROGRAMFILES(X86)", "PROGRAMW6432", "PROCESSOR_ARCHITECTURE", "NUMBER_OF_PROCESSORS",
		"LANG", "TERM", "TZ",
	}
}

// sameVariable compares names of environment variables without case, as Windows does.
func sameVariable(a, b string) bool { return strings.EqualFold(a, b) }
