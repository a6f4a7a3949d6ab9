package seal

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// ReplaceOptions configures ReplaceWith. The zero value is suitable for files of the data directory.
type ReplaceOptions struct {
	Temporary string      // pattern for the name of the incomplete new file, as for os.CreateTemp; ".tmp-*" if empty
	Mode      fs.FileMode // permissions of the new file; 0600 if 0
	// Check is called when the new file is complete and durable, before it replaces the old file. If Check returns an
	// error, the old file is kept. Check may be nil.
	Check func() error
}

// ReplaceFile writes data to a file atomically, as ReplaceWith does. Only the owner of the file can read it.
// ReplaceFile creates the file's directory if it is missing.
func ReplaceFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return ReplaceWith(path, ReplaceOptions{}, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// ReplaceWith atomically replaces or creates a file. Its content is the output of write. The new file is synced before
// it is renamed to path. If writing fails or the machine crashes, path therefore has the complete old or the complete
// new content. If path is a symbolic link, the link itself is replaced. After an error the temporary file is removed,
// but after a crash it may remain. The directory must exist.
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
