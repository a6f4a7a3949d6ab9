package seal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// ErrIrregular means that a path does not name a regular file. It names a directory, a symbolic link, a named pipe, a
// socket or a device.
var ErrIrregular = errors.New("not a regular file")

// MaxFile is the size limit, in bytes, that callers of ReadFile use if they need no smaller limit.
const MaxFile = 64 << 20

// Unbounded is the patience with which Lock and similar functions wait for a lock without a time limit.
const Unbounded time.Duration = -1

// OpenFile opens a file of the data directory. Other programs may write to that directory, so OpenFile never blocks
// and does not follow a symbolic link at the end of the path. The error wraps ErrIrregular if the path is not a
// regular file. Open all files of the data directory in this way.
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

// Open opens a file for reading in the same way as OpenFile.
func Open(path string) (*os.File, error) { return OpenFile(path, os.O_RDONLY, 0) }

// ReadFile opens a file of the data directory like OpenFile and returns its content. It returns an error if the file
// has more than most bytes.
func ReadFile(path string, most int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		return nil, misplacedError("read", path, "the file is larger than %d bytes", most)
	}
	return data, err
}

// CheckRegular returns an error that wraps ErrIrregular if the path exists and is not a regular file. It returns nil
// for a missing file. It does not open the file.
func CheckRegular(path string) error {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return irregularError(path, info)
	}
	return nil
}

// OpenIn opens a file below root like OpenFile. Unlike OpenFile it follows symbolic links that stay below root, as
// os.Root does.
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

// OpenRoot works like os.OpenRoot but does not block on a named pipe.
func OpenRoot(dir string) (*os.Root, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, misplacedError("open", dir, "it is %s, not a directory", kindOf(info.Mode()))
	}
	return os.OpenRoot(dir)
}

// SyncDir makes created, renamed and removed entries of a directory durable, if the system supports that.
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
	return misplacedError("open", path, "it is %s, %w", kindOf(info.Mode()), ErrIrregular)
}

// misplaced is the error for a file of the data directory that Retort cannot have written. For example, the file is a
// named pipe or is too large.
type misplaced struct{ error }

func misplacedError(op, path, format string, args ...any) error {
	return &fs.PathError{Op: op, Path: path, Err: misplaced{fmt.Errorf(format, args...)}}
}

// Misplaced marks the error. Messages about marked errors blame the content of the data directory instead of a fault
// in Retort.
func (misplaced) Misplaced() {}

func (e misplaced) Unwrap() error { return e.error }

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
