package vm

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// archive writes the cpio archive (format "newc") that a kernel unpacks into its memory.
type archive struct {
	w    *bufio.Writer
	n    int64 // bytes so far
	node int
	made map[string]bool
}

func newArchive(w io.Writer) *archive {
	return &archive{w: bufio.NewWriterSize(w, 1<<20), made: map[string]bool{}}
}

// entry writes the header of a file and size bytes of content.
func (a *archive) entry(name string, mode uint32, size int64, content io.Reader) error {
	a.node++
	name = strings.TrimPrefix(name, "/")
	n, err := fmt.Fprintf(a.w, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%s\x00", a.node, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, len(name)+1, 0, name)
	if err != nil {
		return err
	}
	a.n += int64(n)
	if err := a.pad(); err != nil {
		return err
	}
	if size > 0 {
		if _, err := io.CopyN(a.w, content, size); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		a.n += size
	}
	return a.pad()
}

func (a *archive) pad() error {
	for a.n%4 != 0 {
		if err := a.w.WriteByte(0); err != nil {
			return err
		}
		a.n++
	}
	return nil
}

const (
	typeDir, typeFile, typeLink = 0o040000, 0o100000, 0o120000
)

// dir adds a directory and those above it.
func (a *archive) dir(name string) error {
	name = path.Clean("/" + name)
	if name == "/" || a.made[name] {
		return nil
	}
	if err := a.dir(path.Dir(name)); err != nil {
		return err
	}
	a.made[name] = true
	return a.entry(name, typeDir|0o755, 0, nil)
}

// data adds a file with the given content.
func (a *archive) data(name string, data []byte) error {
	if err := a.dir(path.Dir(name)); err != nil {
		return err
	}
	return a.entry(name, typeFile|0o644, int64(len(data)), strings.NewReader(string(data)))
}

// file adds a file of the host.
func (a *archive) file(name, source string) error {
	if err := a.dir(path.Dir(name)); err != nil {
		return err
	}
	f, err := os.Open(source)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return a.entry(name, typeFile|uint32(info.Mode().Perm()&0o755|0o444), info.Size(), f)
}

// tree adds the content of a host directory. It leaves out the directories whose paths in the archive are in skip,
// and everything that is neither a file nor a directory nor a link.
func (a *archive) tree(name, source string, skip map[string]bool) error {
	return filepath.WalkDir(source, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(source, file)
		if err != nil {
			return err
		}
		inside := path.Join(name, filepath.ToSlash(rel))
		switch {
		case d.IsDir() && skip[inside]:
			return filepath.SkipDir
		case d.IsDir():
			return a.dir(inside)
		case d.Type().IsRegular():
			return a.file(inside, file)
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(file)
			if err != nil {
				return err
			}
			return a.entry(inside, typeLink|0o777, int64(len(target)), strings.NewReader(target))
		}
		return nil
	})
}

// close writes the end of the archive.
func (a *archive) close() error {
	if err := a.entry("TRAILER!!!", 0, 0, nil); err != nil {
		return err
	}
	return a.w.Flush()
}
