//go:build !unix

package store

func wouldBlock(error) bool { return false }

func isReadOnly(error) bool { return false }
