//go:build unix && !linux && !darwin

package process

import "syscall"

// childAttributes returns the process attributes that start a child in its own session.
func childAttributes(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
