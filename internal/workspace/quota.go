package workspace

import (
	"io/fs"
	"path"
	"strings"
)

const (
	entryCost  = 4 << 10 // number of bytes that each file or folder adds to the used space, besides its content
	maxEntries = 65_536  // maximum number of files and folders in one workspace
	maxDepth   = 64      // maximum nesting depth of folders
)

// spaceUsage counts the space that files and folders use.
type spaceUsage struct {
	bytes   int64 // total size of the contents of files
	entries int   // number of files, folders and other directory entries, such as links
}

func (u spaceUsage) addUsage(v spaceUsage) spaceUsage {
	return spaceUsage{u.bytes + v.bytes, u.entries + v.entries}
}
func (u spaceUsage) subtractUsage(v spaceUsage) spaceUsage {
	return spaceUsage{u.bytes - v.bytes, u.entries - v.entries}
}

// quotaBytes returns the number of bytes that count towards the quota: the contents, and entryCost for each entry.
func (u spaceUsage) quotaBytes() int64 { return u.bytes + int64(u.entries)*entryCost }

// entryUsage returns the space used by a file, or by a folder without its contents. It returns zero if the file or
// folder does not exist. It does not follow links.
func (w *Workspace) entryUsage(target string) spaceUsage {
	info, err := w.root.Lstat(target)
	switch {
	case err != nil:
		return spaceUsage{}
	case info.Mode().IsRegular():
		return spaceUsage{info.Size(), 1}
	}
	return spaceUsage{entries: 1}
}

// treeUsage returns the space used by a file, or by a folder with all its contents. The workspace's own folder does
// not count.
func (w *Workspace) treeUsage(target string) (total spaceUsage) {
	info, err := w.root.Lstat(target)
	if err != nil || !info.IsDir() {
		return w.entryUsage(target)
	}
	_ = fs.WalkDir(w.root.FS(), target, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return nil
		}
		total.entries++
		if info, err := d.Info(); err == nil && d.Type().IsRegular() {
			total.bytes += info.Size()
		}
		return nil
	})
	return total
}

// checkRoom returns an error if adding the given usage would make the workspace exceed its quota or its maximum
// number of files and folders. name is the path for error messages.
func (w *Workspace) checkRoom(name string, more spaceUsage) error {
	if more.quotaBytes() > 0 && w.used.quotaBytes()+more.quotaBytes() > w.quota {
		return toolError(name, "EDQUOT", "the workspace is full (%d of %d bytes used; each of the %d files and folders counts as %d bytes in addition to its content)",
			w.used.quotaBytes(), w.quota, w.used.entries, entryCost).
			WithHint("remove files or raise resourceLimits.disk")
	}
	if more.entries > 0 && w.used.entries+more.entries > maxEntries {
		return toolError(name, "EDQUOT", "the workspace has %d files and folders; at most %d are allowed", w.used.entries, maxEntries).
			WithHint("remove files, or put more data into each of them")
	}
	return nil
}

// makeFolders creates a folder and its missing parents. It counts the folders that it has created, even if it fails
// halfway. It first checks that the quota has room for them and for more. more is the usage that the caller will add
// and count. name is the path for error messages.
func (w *Workspace) makeFolders(name, folder string, more spaceUsage) error {
	if folderDepth(folder) > maxDepth {
		return tooDeep(name)
	}
	missing := w.countMissing(folder)
	if err := w.checkRoom(name, more.addUsage(spaceUsage{entries: missing})); err != nil {
		return err
	}
	err := w.root.MkdirAll(folder, 0o700)
	if missing > 0 {
		w.used.entries += missing - w.countMissing(folder)
	}
	return explainError(name, err)
}

// countMissing returns the number of folders on a path that do not exist.
func (w *Workspace) countMissing(folder string) (n int) {
	for ; folder != "." && folder != "/"; folder = path.Dir(folder) {
		if _, err := w.root.Lstat(folder); err == nil {
			break
		}
		n++
	}
	return n
}

// fitsBelow returns an error if moving a folder from source to target would exceed the maximum nesting depth. It
// searches the folder only if target is deeper than source, because otherwise the nesting cannot become deeper.
func (w *Workspace) fitsBelow(name, source, target string, isFolder bool) error {
	if !isFolder || folderDepth(target) <= folderDepth(source) {
		return nil
	}
	deepest := folderDepth(source)
	_ = fs.WalkDir(w.root.FS(), source, func(inner string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			deepest = max(deepest, folderDepth(inner))
		}
		return nil
	})
	if folderDepth(target)+deepest-folderDepth(source) > maxDepth {
		return tooDeep(name)
	}
	return nil
}

func tooDeep(name string) error {
	return toolError(name, "ENAMETOOLONG", "folders can be nested at most %d deep", maxDepth)
}

// folderDepth returns the number of folders that a path names.
func folderDepth(folder string) int {
	if folder == "." {
		return 0
	}
	return strings.Count(folder, "/") + 1
}

// IsFull measures the workspace again, including files that other processes have written, and reports whether it
// exceeds its quota.
func (w *Workspace) IsFull() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.used = w.treeUsage(".")
	return w.used.quotaBytes() > w.quota || w.used.entries > maxEntries
}
