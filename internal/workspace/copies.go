package workspace

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"retort/internal/base/seal"
	"retort/internal/core"
)

// maxCopy bounds the size of the files that are copied, in bytes.
const maxCopy = 64 << 20

// WithCopies sets the folder in which CopyOut writes copies. Each session has a folder of its own there. Removing a
// file or a session also removes its copies.
func (s *WorkspaceStore) WithCopies(dir string) *WorkspaceStore {
	s.copies = dir
	return s
}

// CopyResult holds the result of CopyOut.
type CopyResult struct {
	Restored int     // number of copies whose content differs from the file in the workspace
	Kept     []error // reasons why files were copied unchanged or not at all
}

// CopyOut updates the copies of a workspace's files for a person to read. render returns the content of a copy, for
// example with real values in place of privacy tokens. If render returns an error for a file, the file is copied
// unchanged. Programs, commands and models never read the copies, so the copies reveal nothing to them. Together, the
// copies may exceed the size of the files by at most the workspace's quota. CopyOut reads only files that have changed
// since the last call.
func (w *Workspace) CopyOut(render func(name string, data []byte, most int) (out []byte, restored bool, err *core.Error)) (CopyResult, error) {
	c := copyRun{workspace: w, render: render, more: cmp.Or(w.quota, core.DefaultLimits().Disk)}
	if w.store.copies == "" || w.draft {
		return c.done, nil
	}
	unlock, err := seal.Lock(w.store.copiesLock(), time.Minute)
	if err == nil {
		defer unlock()
		err = c.updateCopies(filepath.Join(w.store.copies, filepath.Base(w.dir)))
	}
	if err != nil {
		return c.done, core.Errorf(core.KindInternal, "workspace.copies", "the copies with real values could not be written: %w", err)
	}
	return c.done, nil
}

// EraseCopies removes the copies of all sessions. It first waits until no engine is running CopyOut.
func (s *WorkspaceStore) EraseCopies() error {
	unlock, err := seal.Lock(s.copiesLock(), time.Minute)
	if err != nil {
		return err
	}
	defer unlock()
	return os.RemoveAll(s.copies)
}

func (s *WorkspaceStore) copiesLock() string { return s.lockPath(".copies") }

// removeCopy removes the copy of a file, or all copies of a session's files. name is the path of the file, or of the
// session's folder, relative to the folder of all workspaces.
func (s *WorkspaceStore) removeCopy(name string) error {
	if s.copies == "" {
		return nil
	}
	return os.RemoveAll(filepath.Join(s.copies, name))
}

// copyRun holds the state of one call of CopyOut.
type copyRun struct {
	workspace *Workspace
	render    func(name string, data []byte, most int) ([]byte, bool, *core.Error)
	to        *os.Root
	more      int64 // number of bytes by which the copies may still exceed the size of their files
	done      CopyResult
}

func (c *copyRun) updateCopies(dir string) error {
	files, _, err := c.workspace.FindFiles("", "", 2*maxEntries)
	if err != nil {
		return err
	}
	files = slices.DeleteFunc(files, func(f core.FileEntry) bool { return isUnfinished(f.Path) })
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if c.to, err = seal.OpenRoot(dir); err != nil {
		return err
	}
	defer c.to.Close()
	if err := c.pruneCopies(files); err != nil {
		return err
	}
	for _, f := range files {
		if err := c.copyFile(f.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// pruneCopies removes the copies of files that no longer exist, and empty folders.
func (c *copyRun) pruneCopies(files []core.FileEntry) error {
	known := make(map[string]bool, len(files))
	for _, f := range files {
		known[f.Path] = true
	}
	var gone, folders []string
	err := fs.WalkDir(c.to.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch {
		case e.IsDir():
			folders = append(folders, name)
		case !known[name] || !e.Type().IsRegular():
			gone = append(gone, name)
		}
		return nil
	})
	for _, name := range gone {
		err = errors.Join(err, c.to.Remove(name))
	}
	for _, name := range slices.Backward(folders[min(1, len(folders)):]) {
		_ = c.to.Remove(name) // one that is not empty stays
	}
	return err
}

// copyFile updates the copy of one file. It does nothing if the copy has the same modification time as the file. It
// sets the modification time of a new copy to that of the file.
func (c *copyRun) copyFile(name string) error {
	info, err := c.workspace.root.Stat(name)
	if err != nil {
		return err
	}
	if made, err := c.to.Stat(name); err == nil && made.ModTime().Equal(info.ModTime()) {
		c.more -= max(0, made.Size()-info.Size())
		return nil
	}
	if info.Size() > maxCopy {
		c.noteKept(name, core.Errorf(core.KindLimit, "workspace.copies", "it has more than %d bytes", int64(maxCopy)))
		_ = c.to.Remove(name)
		return nil
	}
	data, _, err := c.workspace.ReadAt(name, 0, maxCopy)
	if err != nil {
		return err
	}
	if err := c.to.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	if err := replaceIn(c.to, name, c.renderContent(name, data)); err != nil {
		return err
	}
	return c.to.Chtimes(name, info.ModTime(), info.ModTime())
}

// renderContent returns what the copy of a file must contain.
func (c *copyRun) renderContent(name string, data []byte) []byte {
	out, restored, refused := c.render(name, data, len(data)+int(max(0, min(c.more, maxCopy))))
	if refused != nil {
		c.noteKept(name, refused)
		return data
	}
	if restored {
		c.done.Restored++
	}
	c.more -= max(0, int64(len(out)-len(data)))
	return out
}

func (c *copyRun) noteKept(name string, err *core.Error) {
	e := *err
	e.Message = core.EscapeIllegible(name) + ": " + e.Message
	c.done.Kept = append(c.done.Kept, &e)
}
