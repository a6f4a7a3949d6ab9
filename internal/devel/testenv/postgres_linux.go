package testenv

import (
	"errors"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// unprivilegedAttr returns the attributes for starting a process that does not run as root. If this process is root,
// the new process runs as another user, who becomes the owner of dir.
func unprivilegedAttr(dir string) (*syscall.SysProcAttr, error) {
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}
	if os.Getuid() != 0 {
		return attr, nil
	}
	who, err := user.Lookup("nobody")
	if err != nil {
		return nil, err
	}
	uid, err1 := strconv.ParseUint(who.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(who.Gid, 10, 32)
	attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return attr, errors.Join(err1, err2, os.Chown(dir, int(uid), int(gid)))
}
