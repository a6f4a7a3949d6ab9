//go:build unix

package skills

import "os"

// syncFolder makes the entries of a folder durable, as fsync does for a file.
func syncFolder(root *os.Root, name string) error {
	dir, err := root.Open(name)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}
