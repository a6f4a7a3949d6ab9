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

// cpioArchive writes a cpio archive (format "newc"), which a Linux kernel unpacks into memory when it boots.
type cpioArchive struct {
	w    *bufio.Writer
	n    int64 // number of bytes written so far
	node int
	made map[string]bool
}

func newArchive(w io.Writer) *cpioArchive {
	return &cpioArchive{w: bufio.NewWriterSize(w, 1<<20), made: map[string]bool{}}
}

// writeEntry writes the header of a file and size bytes of content.
func (a *cpioArchive) writeEntry(name string, mode uint32, size int64, content io.Reader) error {
	a.node++
	name = strings.TrimPrefix(name, "/")
	n, err := fmt.Fprintf(
		a.w, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%s\x00", a.node, mode, 0, 0, 1, 0, size, 0, 0, 0,
		0, len(name)+1, 0, name,
	)
	if err != nil {
		return err
	}
	a.n += int64(n)
	if err := a.writePadding(); err != nil {
		return err
	}
	if size > 0 {
		if _, err := io.CopyN(a.w, content, size); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		a.n += size
	}
	return a.writePadding()
}

func (a *cpioArchive) writePadding() error {
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

// writeDir adds a directory and its parents to the archive.
func (a *cpioArchive) writeDir(name string) error {
	name = path.Clean("/" + name)
	if name == "/" || a.made[name] {
		return nil
	}
	if err := a.writeDir(path.Dir(name)); err != nil {
		return err
	}
	a.made[name] = true
	return a.writeEntry(name, typeDir|0o755, 0, nil)
}

// writeData adds a file with the given content to the archive.
func (a *cpioArchive) writeData(name string, data []byte) error {
	if err := a.writeDir(path.Dir(name)); err != nil {
		return err
	}
	return a.writeEntry(name, typeFile|0o644, int64(len(data)), strings.NewReader(string(data)))
}

// writeFile adds a file of the host to the archive.
func (a *cpioArchive) writeFile(name, source string) error {
	if err := a.writeDir(path.Dir(name)); err != nil {
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
	return a.writeEntry(name, typeFile|uint32(info.Mode().Perm()&0o755|0o444), info.Size(), f)
}

// writeTree adds the content of a host directory to the archive. The argument skip lists directories that it omits,
// by their paths in the archive. It also omits everything that is not a file, a directory or a link.
func (a *cpioArchive) writeTree(name, source string, skip map[string]bool) error {
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
			return a.writeDir(inside)
		case d.Type().IsRegular():
			return a.writeFile(inside, file)
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(file)
			if err != nil {
				return err
			}
			return a.writeEntry(inside, typeLink|0o777, int64(len(target)), strings.NewReader(target))
		}
		return nil
	})
}

// writeTrailer writes the entry that marks the end of the archive.
func (a *cpioArchive) writeTrailer() error {
	if err := a.writeEntry("TRAILER!!!", 0, 0, nil); err != nil {
		return err
	}
	return a.w.Flush()
}
