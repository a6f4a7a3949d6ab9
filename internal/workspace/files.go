package workspace

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"time"

	"retort/internal/core"
)

// NormalizePath converts a path that a program uses to one relative to the workspace. The paths ./workspace/a.csv,
// workspace/a.csv, /workspace/a.csv and a.csv all name the same file. NormalizePath returns an error if the path is
// outside the workspace.
func NormalizePath(name string) (string, error) {
	t := FileTree{}
	folder, rest := t.splitTree(name)
	if folder != "workspace" && path.Clean("/"+name) != "/" {
		return "", toolError(name, "EACCES", "only files in ./workspace/ are accessible").WithHint("use a path such as results/a.json")
	}
	if strings.ContainsRune(rest, 0) {
		return "", toolError(name, "EINVAL", "a path must not contain a NUL character")
	}
	return path.Clean("/" + rest)[1:], nil
}

// FindFiles lists the files below a folder whose relative path matches a glob, sorted by path. An empty folder or glob
// means all files. In a glob, * and ? do not match a slash, but ** does. FindFiles returns at most limit files, and
// the total number of matching files.
func (w *Workspace) FindFiles(below, glob string, limit int) (files []core.FileEntry, total int, err error) {
	if _, err := path.Match(glob, ""); err != nil {
		return nil, 0, core.Errorf(core.KindInvalidArguments, "workspace.files", "the glob %q is malformed", glob)
	}
	from := localPath(below)
	err = fs.WalkDir(w.root.FS(), from, func(name string, e fs.DirEntry, err error) error {
		if err != nil && name == from {
			return err
		}
		if err != nil || !e.Type().IsRegular() {
			return nil // it was removed in the meantime
		}
		inner := strings.TrimPrefix(name, from+"/")
		if glob != "" && !fitsGlob(strings.Split(glob, "/"), strings.Split(inner, "/")) {
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return nil
		}
		if total++; total <= limit {
			files = append(files, core.FileEntry{Path: name, Bytes: info.Size(), Modified: info.ModTime().UTC().Format(time.RFC3339)})
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) && from == "." {
		err = nil
	}
	return files, total, explainError(below, err)
}

// fitsGlob reports whether a path matches a glob. Both are given as lists of their parts between slashes. A glob
// without a slash matches names in every folder, so *.csv matches all CSV files.
func fitsGlob(glob, name []string) bool {
	if len(glob) == 1 {
		name = name[len(name)-1:]
	}
	return fitsParts(glob, name)
}

func fitsParts(glob, name []string) bool {
	if len(glob) == 0 {
		return len(name) == 0
	}
	if glob[0] == "**" {
		return fitsParts(glob[1:], name) || len(name) > 0 && fitsParts(glob, name[1:])
	}
	if len(name) == 0 {
		return false
	}
	ok, _ := path.Match(glob[0], name[0])
	return ok && fitsParts(glob[1:], name[1:])
}
