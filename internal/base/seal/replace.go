package seal

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// ReplaceOptions say how ReplaceWith makes a file. The zero value is right for the data directory.
type ReplaceOptions struct {
	Temporary string      // name of the new file until it is complete, as for os.CreateTemp; empty means ".tmp-*"
	Mode      fs.FileMode // permissions; 0 means 0600
	// Check is called when the new file is complete and durable, right before it takes the place of the old one. If
	// it returns an error, the old file stays. It may be nil.
	Check func() error
}

// ReplaceFile writes a file atomically, readable only by its owner, and makes its directory if that is missing. See
// ReplaceWith.
func ReplaceFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return ReplaceWith(path, ReplaceOptions{}, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// ReplaceWith replaces a file atomically with the output of write, or creates it. Whatever fails, and whenever the machine
// stops, the name has either the old content or the new: the new file is synced before it gets the name. A symbolic link of that
// name is replaced and not followed. After an error the temporary file is removed; if the machine stops, it may stay. The directory
// must exist.
func ReplaceWith(path string, o ReplaceOptions, write func(io.Writer) error) error {
	made, err := writeTemp(path, o, write)
	if err != nil {
		return err
	}
	if o.Check != nil {
		err = o.Check()
	}
	if err == nil {
		err = os.Rename(made, path)
	}
	if err != nil {
		_ = os.Remove(made)
		return err
	}
	_ = SyncDir(filepath.Dir(path)) // not every system has it
	return nil
}

// writeTemp writes a temporary file in the same directory as path, makes it durable and returns its name.
func writeTemp(path string, o ReplaceOptions, write func(io.Writer) error) (string, error) {
	pattern := ".tmp-*"
	if o.Temporary != "" {
		pattern = o.Temporary
	}
	f, err := os.CreateTemp(filepath.Dir(path), pattern) // 0600
	if err != nil {
		return "", err
	}
	complete := false
	defer func() { // also if write panics
		if !complete {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	err = write(f)
	if o.Mode != 0 && err == nil {
		err = f.Chmod(o.Mode)
	}
	if err == nil {
		err = errors.Join(f.Sync(), f.Close())
	}
	if err != nil {
		return "", err
	}
	complete = true
	return f.Name(), nil
}
