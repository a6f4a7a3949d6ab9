package clientfiles

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"retort/internal/base/seal"
	"retort/internal/core"
)

// clientFile holds a client's configuration file as it was read.
type clientFile struct {
	path   string // path to show to users
	target string // path with symbolic links resolved
	exists bool
	mode   fs.FileMode // of a new file: 0600
	src    []byte
}

func statLink(path string) (fs.FileInfo, error) { return os.Lstat(path) }

// openFile reads a file that need not exist. If the path is a link, it reads the file that the link leads to; later
// writes keep the link. With scope Project the file must be inside the project, because a hostile project could
// otherwise name any file.
func (e Environment) openFile(path string, scope FileScope) (clientFile, error) {
	f := clientFile{path: path, target: path, mode: 0o600}
	real, err := realPath(path)
	if err != nil {
		return f, fileError(path, err)
	}
	f.target = real
	if scope == Project {
		root, err := filepath.EvalSymlinks(e.Dir)
		if err != nil {
			return f, fileError(path, err)
		}
		if rel, err := filepath.Rel(root, real); err != nil || !filepath.IsLocal(rel) {
			return f, fileError(path, errors.New("it is a link to a file outside of the project"))
		}
	}
	info, err := os.Stat(real)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f, nil
	case err != nil:
		return f, fileError(path, err)
	case !info.Mode().IsRegular():
		return f, fileError(path, errors.New("it is not a regular file"))
	}
	f.exists, f.mode = true, info.Mode().Perm()
	f.src, err = readBounded(real)
	if err != nil {
		return f, fileError(path, err)
	}
	return f, nil
}

// realPath returns a path with all links resolved. If the file does not exist, the links in the folders above it are
// resolved.
func realPath(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return real, err
	}
	if pathExists(path) {
		return "", errors.New("it is a link to a file that does not exist")
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path, nil
	}
	real, err = realPath(parent)
	return filepath.Join(real, filepath.Base(path)), err
}

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	src, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(src) > maxFile {
		err = fmt.Errorf("it is larger than %d MB", maxFile>>20)
	}
	return src, err
}

// fileError returns an error that begins with the path of the file.
func fileError(path string, err error) *core.Error {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return core.Errorf(core.KindInvalidArguments, "clients.file", "%s: %w", path, err).
		WithHint("it was not changed; fix it and try again")
}

// writeFile replaces the file atomically. It fails if the file has changed since it was read.
func (f clientFile) writeFile(data []byte) error {
	if err := os.MkdirAll(filepath.Dir(f.target), 0o700); err != nil {
		return fileError(f.path, err)
	}
	removeLeftovers(filepath.Dir(f.target))
	var changed error
	o := seal.ReplaceOptions{Temporary: ".retort-*.part", Mode: f.mode, Check: func() error { changed = f.checkUnchanged(); return changed }}
	err := seal.ReplaceWith(f.target, o, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
	if err != nil && changed == nil {
		err = fileError(f.path, err)
	}
	return err
}

// removeLeftovers removes temporary files of writes that were killed, because they may contain credentials.
func removeLeftovers(dir string) {
	parts, _ := filepath.Glob(filepath.Join(escapeGlob(dir), ".retort-*.part"))
	for _, part := range parts {
		digits := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(part), ".retort-"), ".part")
		if _, err := strconv.ParseUint(digits, 10, 64); err == nil {
			_ = os.Remove(part) // if it stays, it is only its owner's
		}
	}
}

// checkUnchanged returns an error if another program has changed the file since this process read it.
func (f clientFile) checkUnchanged() error {
	now, err := readBounded(f.target)
	if errors.Is(err, fs.ErrNotExist) && !f.exists {
		return nil
	}
	if err != nil || !f.exists || !bytes.Equal(now, f.src) {
		return fileError(f.path, errors.New("another program changed it at the same time")).
			WithHint("close the program that uses the file, and try again")
	}
	return nil
}

// removeFile deletes the file. It fails if the file has changed since it was read.
func (f clientFile) removeFile() error {
	if err := f.checkUnchanged(); err != nil {
		return err
	}
	removeLeftovers(filepath.Dir(f.target))
	if err := os.Remove(f.target); err != nil {
		return fileError(f.path, err)
	}
	return nil
}

func hashHex(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
