//go:build linux || darwin

package doctor

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"syscall"
)

// permissions says that on this system the mode bits of files control the access of other users.
const permissions = true

// ownedByMe reports whether this user owns a file. If not, it returns the name of the owner.
func ownedByMe(info fs.FileInfo) (owner string, mine bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(stat.Uid) == os.Getuid() {
		return "", true
	}
	if u, err := user.LookupId(fmt.Sprint(stat.Uid)); err == nil {
		return u.Username, false
	}
	return fmt.Sprintf("user %d", stat.Uid), false
}

// openFiles returns how many files this process may have open.
func openFiles() (most uint64, known bool) {
	var l syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l)
	return l.Cur, err == nil
}

// freeBytes returns how many bytes this user can still write to the disk of dir.
func freeBytes(dir string) (free int64, known bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true
}
