//go:build !linux

package testenv

import "syscall"

func unprivilegedAttr(string) (*syscall.SysProcAttr, error) { return &syscall.SysProcAttr{}, nil }
