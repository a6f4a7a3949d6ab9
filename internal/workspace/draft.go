package workspace

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"retort/internal/base/seal"
	"retort/internal/core"
)

const (
	// draftsFolder is the name of the folder of drafts. No session's folder has this name, because names of sessions'
	// folders begin with a letter or digit.
	draftsFolder = ".drafts"
	abandonedAge = 24 * time.Hour
)

// NewDraft returns a workspace for a dry run, which begins with the current content of w. Changes to it do not affect
// w. They are discarded when it is closed.
func (w *Workspace) NewDraft() (*Workspace, error) {
	w.store.removeDryRuns()
	name := path.Join(draftsFolder, strings.ToLower(rand.Text()[:13]))
	d := &Workspace{store: w.store, dir: filepath.Join(w.store.dir, filepath.FromSlash(name)), quota: w.quota, users: 1, draft: true}
	err := d.openFolder(false)
	if err == nil {
		err = d.copyOf(w)
	}
	if err != nil {
		if d.root != nil {
			_ = d.Close()
		}
		return nil, core.Errorf(core.KindInternal, "workspace.draft", "the dry run has no place for its files: %w", err)
	}
	return d, nil
}

// copyOf fills a draft with the files of the original. It uses hard links, which is safe because only AppendFile
// changes a file in place.
func (w *Workspace) copyOf(from *Workspace) error {
	store, err := seal.OpenRoot(from.store.dir)
	if err != nil {
		return err
	}
	defer store.Close()
	done, err := from.beginChange(".") // no write or rename is in progress
	if err != nil {
		return err
	}
	defer done()
	w.used = from.used
	return fs.WalkDir(from.root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case e.IsDir():
			return w.root.MkdirAll(name, 0o700)
		case !e.Type().IsRegular():
			return nil
		case store.Link(path.Join(filepath.Base(from.dir), name), path.Join(draftsFolder, filepath.Base(w.dir), name)) == nil:
			return nil
		}
		return copyFile(from.root, name, w.root, name) // not every file system has links
	})
}

// copyShared replaces a hard link in a draft by a copy of the file. The caller can then change the file in place
// without changing the original.
func (w *Workspace) copyShared(name string) error {
	if !w.draft {
		return nil
	}
	shared := name + "." + rand.Text()[:8] + ".tmp"
	if err := w.root.Rename(name, shared); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	defer func() { _ = w.root.Remove(shared) }()
	return copyFile(w.root, shared, w.root, name)
}

func copyFile(from *os.Root, name string, to *os.Root, as string) error {
	in, err := from.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := to.OpenFile(as, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// removeDryRuns removes the drafts that engines left behind when they were killed.
func (s *WorkspaceStore) removeDryRuns() {
	left, _ := filepath.Glob(filepath.Join(s.dir, draftsFolder, "*"))
	for _, dir := range left {
		if info, err := os.Stat(dir); err == nil && time.Since(info.ModTime()) > abandonedAge {
			_ = os.RemoveAll(dir)
		}
	}
}
