// Package workspace stores the files of sessions. A session is a name under which programs share files and values.
// Each session has a folder. A quota limits the folder's size. The package accesses the folder only through os.Root,
// and writes files atomically.
package workspace

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"retort/internal/base/seal"
	"retort/internal/core"
)

// WorkspaceStore manages the workspaces of all sessions, each in a folder below one directory.
type WorkspaceStore struct {
	dir    string
	quota  int64
	copies string // folder of the copies for a person; "" if no copies are made

	mu    sync.Mutex
	known map[string]*Workspace
}

// NewStore returns a store of workspaces in dir. The folder dir is created when the first workspace is opened. quota
// bounds each workspace, in bytes. Each file and folder counts entryCost bytes in addition to its content.
func NewStore(dir string, quota int64) *WorkspaceStore {
	return &WorkspaceStore{dir: dir, quota: quota, known: map[string]*Workspace{}}
}

// Open returns the workspace of a session. The caller must close it. All callers for one session share the same
// Workspace.
func (s *WorkspaceStore) Open(session string) (*Workspace, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, ok := s.known[session]
	if !ok {
		w = &Workspace{store: s, dir: filepath.Join(s.dir, folderName(session)), quota: s.quota}
	}
	if w.users == 0 {
		if err := w.openFolder(!ok); err != nil {
			return nil, core.Errorf(core.KindInternal, "workspace.open", "workspace: %w", err)
		}
		s.known[session] = w
	}
	w.users++
	return w, nil
}

// openFolder opens the folder of the session under a shared lock. The first change of the workspace measures its
// contents, unless another engine is already counting them.
func (w *Workspace) openFolder(first bool) (err error) {
	if err := w.lockShared(first); err != nil {
		return err
	}
	if err = os.MkdirAll(w.dir, 0o700); err == nil {
		w.root, err = seal.OpenRoot(w.dir)
	}
	if err != nil {
		w.leave()
	}
	return err
}

// lockShared acquires a shared lock, so that the session is not swept while it is used. If first is set, it also
// finds out whether another engine is using the session.
func (w *Workspace) lockShared(first bool) (err error) {
	w.leave = func() {}
	if w.draft {
		return nil
	}
	lock := w.store.lockPath(filepath.Base(w.dir))
	if first {
		if unlock, err := seal.Lock(lock, 0); err == nil {
			w.unmeasured = true
			unlock()
		}
	}
	w.leave, err = seal.LockShared(lock, 10*time.Second)
	return err
}

// closeFiles closes the counter and the folder, and releases the shared lock.
func (w *Workspace) closeFiles() error {
	w.counter.closeCounter()
	w.counter = nil
	err := w.root.Close()
	w.leave()
	return err
}

// Close ends the caller's use of the workspace. The last user closes the folder. The files stay, except those of a
// draft.
func (w *Workspace) Close() error {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	if w.users--; w.users > 0 {
		return nil
	}
	err := w.closeFiles()
	if w.draft {
		err = errors.Join(err, os.RemoveAll(w.dir))
	}
	return err
}

// isPlain reports whether a session's name can be the name of its folder. A plain name has at most 64 bytes, consists
// of lower-case letters, digits, "_" and "-", and begins with a letter or digit.
func isPlain(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	return name != "" && len(name) <= 64 && strings.Contains(letters, name[:1]) && strings.Trim(name, letters+"_-") == ""
}

// folderName returns the name of a session's folder. If the session's name is plain, the folder has the same name.
// Otherwise the folder's name consists of a part of the session's name and a hash, so that no two sessions share a
// folder.
func folderName(session string) string {
	if isPlain(session) {
		return session
	}
	sum := sha256.Sum256([]byte(session))
	safe := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '_'
	}, strings.ToLower(session))
	return "_" + safe[:min(len(safe), 32)] + "." + hex.EncodeToString(sum[:8])
}

// Workspace gives access to the files of one session. Paths are relative and use slashes. They cannot refer to
// anything outside the session's folder.
type Workspace struct {
	store *WorkspaceStore
	dir   string
	quota int64
	users int // number of Open calls without Close; guarded by store.mu
	// draft marks a draft. Its files may be hard links to another workspace's files, and it is removed on Close.
	draft bool
	root  *os.Root // root of the session's folder; open while users > 0
	leave func()   // releases the shared lock of the session

	mu         sync.Mutex // guards writes and the fields below; beginChange locks it
	used       spaceUsage
	unmeasured bool // whether the folder must be measured, because no engine knows its usage
	// counter is shared with other engines. It is nil until the first change, and on systems without file locks.
	counter *usageCounter
}

// Folder returns the path of the workspace's folder on disk.
func (w *Workspace) Folder() string { return w.dir }

// FileEntry describes one file or folder.
type FileEntry struct {
	Name     string `json:"name"`
	Dir      bool   `json:"dir"`
	Bytes    int64  `json:"bytes"`
	Modified string `json:"modified,omitempty"` // time of the last change, in the format of RFC 3339
}

func newFileEntry(info fs.FileInfo) FileEntry {
	f := FileEntry{Name: info.Name(), Dir: info.IsDir(), Modified: info.ModTime().UTC().Format(time.RFC3339Nano)}
	if info.Mode().IsRegular() {
		f.Bytes = info.Size()
	}
	return f
}

// Stat describes one file or folder.
func (w *Workspace) Stat(name string) (FileEntry, error) {
	info, err := w.root.Stat(localPath(name))
	if err != nil {
		return FileEntry{}, explainError(name, err)
	}
	return newFileEntry(info), nil
}

// ListFolder describes the contents of a folder, sorted by name.
func (w *Workspace) ListFolder(name string) ([]FileEntry, error) {
	entries, err := fs.ReadDir(w.root.FS(), localPath(name))
	if err != nil {
		return nil, explainError(name, err)
	}
	files := make([]FileEntry, 0, len(entries))
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			files = append(files, newFileEntry(info))
		}
	}
	return files, nil
}

// ReadAt reads at most length bytes of a file, starting at an offset. It also returns the size of the whole file.
func (w *Workspace) ReadAt(name string, offset, length int64) (data []byte, size int64, err error) {
	f, err := seal.OpenIn(w.root, localPath(name), os.O_RDONLY, 0)
	if errors.Is(err, seal.ErrIrregular) {
		return nil, 0, toolError(name, "EISDIR", "is a folder, not a file")
	}
	if err != nil {
		return nil, 0, explainError(name, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, 0, explainError(name, err)
	}
	size = info.Size()
	data = make([]byte, max(0, min(length, size-offset)))
	n, err := f.ReadAt(data, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, explainError(name, err)
	}
	return data[:n], size, nil
}

// Write replaces a file atomically: readers see either the old or the new content. It creates missing folders.
func (w *Workspace) Write(name string, data []byte) error {
	done, err := w.beginChange(name)
	if err != nil {
		return err
	}
	defer done()
	target := localPath(name)
	more := spaceUsage{int64(len(data)), 1}.subtractUsage(w.entryUsage(target))
	if err := w.makeFolders(name, path.Dir(target), more); err != nil {
		return err
	}
	if err := w.replaceFile(target, data); err != nil {
		return explainError(name, err)
	}
	w.used = w.used.addUsage(more)
	return nil
}

func (w *Workspace) replaceFile(target string, data []byte) error {
	return replaceIn(w.root, target, data)
}

// replaceIn replaces a file below root atomically: readers see either the old or the new content.
func replaceIn(root *os.Root, target string, data []byte) (err error) {
	temp := target + "." + rand.Text()[:8] + ".tmp"
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = root.Remove(temp)
		}
	}()
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return root.Rename(temp, target)
}

// AppendFile adds data to the end of a file. It creates the file and its folders if they are missing.
func (w *Workspace) AppendFile(name string, data []byte) error {
	done, err := w.beginChange(name)
	if err != nil {
		return err
	}
	defer done()
	target := localPath(name)
	made := spaceUsage{entries: 1 - w.entryUsage(target).entries}
	if err := w.makeFolders(name, path.Dir(target), made.addUsage(spaceUsage{bytes: int64(len(data))})); err != nil {
		return err
	}
	if err := w.copyShared(target); err != nil {
		return explainError(name, err)
	}
	f, err := seal.OpenIn(w.root, target, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return explainError(name, err)
	}
	n, err := f.Write(data)
	w.used = w.used.addUsage(made).addUsage(spaceUsage{bytes: int64(n)})
	return explainError(name, errors.Join(err, f.Close()))
}

// MkdirAll creates a folder and all missing parents.
func (w *Workspace) MkdirAll(name string) error {
	done, err := w.beginChange(name)
	if err != nil {
		return err
	}
	defer done()
	return w.makeFolders(name, localPath(name), spaceUsage{})
}

// RemovePath removes a file or an empty folder. If all is set, it also removes a folder that is not empty.
func (w *Workspace) RemovePath(name string, all bool) error {
	done, err := w.beginChange(name)
	if err != nil {
		return err
	}
	defer done()
	target := localPath(name)
	if target == "." {
		return toolError(name, "EPERM", "the workspace itself cannot be removed")
	}
	measure, remove := w.entryUsage, w.root.Remove
	if all {
		measure, remove = w.treeUsage, w.root.RemoveAll
	}
	before := measure(target)
	err = remove(target)
	w.used = w.used.subtractUsage(before).addUsage(measure(target))
	return explainError(name, err)
}

// RenamePath moves a file or folder. It replaces an existing file.
func (w *Workspace) RenamePath(from, to string) error {
	done, err := w.beginChange(from)
	if err != nil {
		return err
	}
	defer done()
	source, target := localPath(from), localPath(to)
	info, err := w.root.Lstat(source)
	if err != nil {
		return explainError(from, err)
	}
	if err := w.fitsBelow(to, source, target, info.IsDir()); err != nil {
		return err
	}
	if err := w.makeFolders(to, path.Dir(target), spaceUsage{}); err != nil {
		return err
	}
	var replaced spaceUsage
	if old, err := w.root.Lstat(target); err == nil && !os.SameFile(info, old) {
		replaced = w.entryUsage(target)
	}
	if err := w.root.Rename(source, target); err != nil {
		return explainError(from, err)
	}
	w.used = w.used.subtractUsage(replaced)
	return nil
}

// Save stores data in a file with a unique name under files/ and returns its path.
func (w *Workspace) Save(_ context.Context, suffix string, data []byte) (string, error) {
	name := "files/" + strings.ToLower(rand.Text()[:12]) + suffix
	return name, w.Write(name, data)
}

// localPath converts a path that a program uses to a path for os.Root, which refuses paths that lead outside.
func localPath(name string) string {
	clean := path.Clean(strings.TrimPrefix(name, "/"))
	if clean == "" || clean == "/" {
		return "."
	}
	return clean
}

// explainError converts a file system error to an error that does not reveal where the workspace is on this machine.
func explainError(name string, err error) error {
	var code, what string
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		code, what = "ENOENT", "no such file or folder"
	case errors.Is(err, fs.ErrExist):
		code, what = "EEXIST", "already exists"
	case errors.Is(err, fs.ErrPermission):
		code, what = "EACCES", "permission denied"
	default:
		var p *fs.PathError
		if errors.As(err, &p) {
			err = p.Err
		}
		code, what = "EIO", err.Error()
	}
	return toolError(name, code, "%s", what)
}

func toolError(name, code, format string, args ...any) *core.Error {
	e := core.Errorf(core.KindRuntime, "workspace", format, args...)
	e.Message = code + ": " + name + ": " + e.Message
	return e
}

// crossesLink reports whether any part of a clean path is a symbolic link.
func (w *Workspace) crossesLink(name string) bool {
	for at := range len(name) + 1 {
		if at < len(name) && name[at] != '/' {
			continue
		}
		if info, err := w.root.Lstat(name[:at]); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return true
		}
	}
	return false
}

// IsPlain reports whether a clean path names a file or folder and contains no symbolic link.
func (w *Workspace) IsPlain(name string) bool {
	if w.crossesLink(name) {
		return false
	}
	info, err := w.root.Lstat(name)
	return err == nil && (info.IsDir() || info.Mode().IsRegular())
}
