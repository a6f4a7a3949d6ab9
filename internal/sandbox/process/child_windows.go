package process

import "syscall"

// attributes returns the attributes that keep a child from receiving the console's signals.
func attributes(bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
