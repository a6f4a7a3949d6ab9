//go:build !linux

package testenv

import "syscall"

func unprivileged(string) (*syscall.SysProcAttr, error) { return &syscall.SysProcAttr{}, nil }
