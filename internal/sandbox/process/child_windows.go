package process

import "syscall"

// childAttributes returns the attributes that keep a child from receiving the console's signals.
func childAttributes(bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
