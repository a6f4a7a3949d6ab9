package process

import "syscall"

// childAttributes returns the process attributes that keep console signals such as Ctrl+C from a child.
func childAttributes(bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
