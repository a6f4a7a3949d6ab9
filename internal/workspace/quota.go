package workspace

import (
	"io/fs"
	"path"
	"strings"
)

const (
	entryCost  = 4 << 10 // bytes that each file and folder counts in addition to its content
	maxEntries = 65_536  // files and folders of one workspace
	maxDepth   = 64      // folders inside of each other
)

// usage counts the space used by files and folders.
type usage struct {
	bytes   int64 // of the contents of files
	entries int   // files, folders and anything else that has a name
}

func (u usage) plus(v usage) usage  { return usage{u.bytes + v.bytes, u.entries + v.entries} }
func (u usage) minus(v usage) usage { return usage{u.bytes - v.bytes, u.entries - v.entries} }

// cost returns the bytes of the quota that u counts.
func (u usage) cost() int64 { return u.bytes + int64(u.entries)*entryCost }

// entry returns the usage of a file, or of a folder without its contents. It is zero if there is neither. Links are
// not followed.
func (w *Workspace) entry(target string) usage {
	info, err := w.root.Lstat(target)
	switch {
	case err != nil:
		return usage{}
	case info.Mode().IsRegular():
		return usage{info.Size(), 1}
	}
	return usage{entries: 1}
}

// below returns the usage of a file, or of a folder with all its contents. The folder of the workspace itself does
// not count.
func (w *Workspace) below(target string) (total usage) {
	info, err := w.root.Lstat(target)
	if err != nil || !info.IsDir() {
		return w.entry(target)
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

// room returns an error unless the quota has room for more.
func (w *Workspace) room(name string, more usage) error {
	if more.cost() > 0 && w.used.cost()+more.cost() > w.quota {
		return failed(name, "EDQUOT", "the workspace is full (%d of %d bytes used; each of the %d files and folders counts %d in addition to its content)",
			w.used.cost(), w.quota, w.used.entries, entryCost).
			WithHint("remove files or raise resourceLimits.disk")
	}
	if more.entries > 0 && w.used.entries+more.entries > maxEntries {
		return failed(name, "EDQUOT", "the workspace has %d files and folders, at most %d are allowed", w.used.entries, maxEntries).
			WithHint("remove files, or put more data into each of them")
	}
	return nil
}

// makeFolders creates a folder and those above it, if the quota has room for them and for more. It counts the created
// folders even if it fails in the middle. The caller must count more. name is the path for error messages.
func (w *Workspace) makeFolders(name, folder string, more usage) error {
	if depth(folder) > maxDepth {
		return tooDeep(name)
	}
	missing := w.missing(folder)
	if err := w.room(name, more.plus(usage{entries: missing})); err != nil {
		return err
	}
	err := w.root.MkdirAll(folder, 0o700)
	if missing > 0 {
		w.used.entries += missing - w.missing(folder)
	}
	return explain(name, err)
}

// missing returns how many folders of a path do not exist.
func (w *Workspace) missing(folder string) (n int) {
	for ; folder != "." && folder != "/"; folder = path.Dir(folder) {
		if _, err := w.root.Lstat(folder); err == nil {
			break
		}
		n++
	}
	return n
}

// fitsBelow returns an error if a folder or its contents would be too deep at target. A folder that does not become
// deeper is not searched.
func (w *Workspace) fitsBelow(name, source, target string, isFolder bool) error {
	if !isFolder || depth(target) <= depth(source) {
		return nil
	}
	deepest := depth(source)
	_ = fs.WalkDir(w.root.FS(), source, func(inner string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			deepest = max(deepest, depth(inner))
		}
		return nil
	})
	if depth(target)+deepest-depth(source) > maxDepth {
		return tooDeep(name)
	}
	return nil
}

func tooDeep(name string) error {
	return failed(name, "ENAMETOOLONG", "at most %d folders can be inside of each other", maxDepth)
}

// depth returns the number of folders that a path names.
func depth(folder string) int {
	if folder == "." {
		return 0
	}
	return strings.Count(folder, "/") + 1
}

// Full measures the workspace again, including files that other processes have written, and reports whether it
// exceeds its quota.
func (w *Workspace) Full() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.used = w.below(".")
	return w.used.cost() > w.quota || w.used.entries > maxEntries
}
