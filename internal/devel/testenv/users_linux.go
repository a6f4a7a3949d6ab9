package testenv

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// WaitForUsers waits until no other process uses the folder dir: as its working directory, for its executable, or for
// an open file in or below it. Tests call it before they remove dir if they ran a foreign program whose own child
// processes may outlive it. Only root can see the processes of other users.
func WaitForUsers(t testing.TB, dir string) {
	t.Helper()
	WaitUntil(t, "no process uses "+dir, func() bool { return len(openLinks(dir)) == 0 })
}

// openLinks returns the links in /proc that show that other processes use the folder dir.
func openLinks(dir string) (links []string) {
	own := "/proc/" + filepath.Base(readLink("/proc/self")) + "/"
	for _, pattern := range []string{"/proc/[0-9]*/cwd", "/proc/[0-9]*/exe", "/proc/[0-9]*/fd/*"} {
		all, _ := filepath.Glob(pattern)
		for _, link := range all {
			if target := readLink(link); !strings.HasPrefix(link, own) && (target == dir || strings.HasPrefix(target, dir+"/")) {
				links = append(links, link)
			}
		}
	}
	return links
}

// readLink returns the target of a link, or "" if it is gone.
func readLink(link string) string {
	target, _ := os.Readlink(link)
	return target
}
