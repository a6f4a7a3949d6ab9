package process

import (
	"fmt"
	"strings"
)

// seatbelt is the profile of macOS's sandbox-exec for the built-in guest: what is
// not allowed here is denied. The guest reads what it is made of and speaks over
// the descriptors that it was given; there is no network, no file to write, no
// other process to see or signal, and no service to ask.
func seatbelt(program string) string {
	literal := func(path string) string { return fmt.Sprintf("(literal %s)", schemeString(path)) }
	subpath := func(path string) string { return fmt.Sprintf("(subpath %s)", schemeString(path)) }
	readable := []string{
		literal(program), literal("/"), literal("/dev/null"), literal("/dev/random"), literal("/dev/urandom"), literal("/dev/dtracehelper"),
		subpath("/usr/lib"), subpath("/System/Library"), subpath("/System/Volumes/Preboot/Cryptexes"), subpath("/System/Cryptexes"), subpath("/private/var/db/dyld"),
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

// schemeString quotes a path for a profile.
func schemeString(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(path) + `"`
}
