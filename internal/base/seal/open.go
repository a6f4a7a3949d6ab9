package seal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// ErrIrregular is the cause of the error if something else has the name of a file: a directory, a symbolic link, a
// named pipe, a socket or a device.
var ErrIrregular = errors.New("not a regular file")

// MaxFile bounds, in bytes, what ReadFile takes of a file that has no smaller bound of its own.
const MaxFile = 64 << 20

// OpenFile opens a file of the data directory. Others may write there, so it never waits, follows no symbolic link
// in the last part of the path, and gives an error that wraps ErrIrregular for what is no regular file. All files
// of the data directory are opened this way.
func OpenFile(path string, flag int, perm fs.FileMode) (*os.File, error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, irregularError(path, info)
	}
	f, err := openFile(path, flag, perm)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = irregularError(path, info)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Open returns OpenFile for reading.
func Open(path string) (*os.File, error) { return OpenFile(path, os.O_RDONLY, 0) }

// ReadFile reads a file of the data directory as OpenFile opens it. A file of more than most bytes is an error.
func ReadFile(path string, most int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("the file is larger than %d bytes", most)}
	}
	return data, err
}

// Regular returns an error that wraps ErrIrregular if something else than a regular file has this name. It opens
// nothing, and no file at all is no error.
func Regular(path string) error {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return irregularError(path, info)
	}
	return nil
}

// OpenIn returns OpenFile in a root, whose rules for links hold.
func OpenIn(root *os.Root, name string, flag int, perm fs.FileMode) (*os.File, error) {
	f, err := root.OpenFile(name, flag|nonBlocking, perm)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = irregularError(name, info)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// OpenRoot is os.OpenRoot that does not wait for the other end of a named pipe.
func OpenRoot(dir string) (*os.Root, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: fmt.Errorf("it is %s, not a directory", kindOf(info.Mode()))}
	}
	return os.OpenRoot(dir)
}

// SyncDir makes names in a directory durable, where the system can do that.
func SyncDir(path string) error {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return fmt.Errorf("the directory %s cannot be synced: %w", path, errors.Join(err, fs.ErrInvalid))
	}
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return syncDir(dir)
}

func irregularError(path string, info fs.FileInfo) error {
	return &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("it is %s, %w", kindOf(info.Mode()), ErrIrregular)}
}

func kindOf(mode fs.FileMode) string {
	switch mode.Type() {
	case 0:
		return "a file"
	case fs.ModeDir:
		return "a directory"
	case fs.ModeSymlink:
		return "a symbolic link"
	case fs.ModeNamedPipe:
		return "a named pipe"
	case fs.ModeSocket:
		return "a socket"
	case fs.ModeDevice, fs.ModeDevice | fs.ModeCharDevice:
		return "a device"
	}
	return "something unusual"
}
