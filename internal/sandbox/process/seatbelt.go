package process

import (
	"fmt"
	"strings"
)

// seatbeltProfile returns the profile for macOS's sandbox-exec with the built-in guest. The profile denies everything
// that it does not allow. The guest can read its own files and use the descriptors that it inherited. It cannot use
// the network, write files, see or signal other processes, or reach system services.
func seatbeltProfile(program string) string {
	literal := func(path string) string { return fmt.Sprintf("(literal %s)", schemeString(path)) }
	subpath := func(path string) string { return fmt.Sprintf("(subpath %s)", schemeString(path)) }
	readable := []string{
		literal(program), literal("/"), literal("/dev/null"), literal("/dev/random"), literal("/dev/urandom"), literal("/dev/dtracehelper"),
		subpath("/usr/lib"), subpath("/System/Library"), subpath("/System/Volumes/Preboot/Cryptexes"),
		subpath("/System/Cryptexes"), subpath("/private/var/db/dyld"),
	}
	return strings.Join([]string{
		"(version 1)",
		"(deny default)",
		"(allow process-exec " + literal(program) + ")",
		"(allow process-info* (target self))",
		"(allow signal (target self))",
		"(allow sysctl-read)",
		"(allow file-read-metadata)",
		"(allow file-read* file-map-executable",
		"  " + strings.Join(readable, "\n  ") + ")",
		"(allow file-write-data " + literal("/dev/null") + " " + literal("/dev/dtracehelper") + ")",
		"(deny network*)",
		"(deny process-fork)",
		"",
	}, "\n")
}

// schemeString quotes a path for a sandbox-exec profile.
func schemeString(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(path) + `"`
}
