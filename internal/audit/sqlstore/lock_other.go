//go:build !unix

package sqlstore

func wouldBlock(error) bool { return false }

func isReadOnly(error) bool { return false }
