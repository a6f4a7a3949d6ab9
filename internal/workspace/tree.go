package workspace

import (
	"context"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"retort/internal/core"
)

// Folder represents a read-only part of the visible tree. Its files are generated when they are read.
type Folder struct {
	// File returns the text of a file, given its path within the folder.
	File func(name string) (string, bool)
	// List returns the names in a folder. Names of folders end with a slash.
	List func(name string) ([]string, bool)
	// Write writes or appends to a file of the folder. If it is nil, the folder is read-only. Its errors name the
	// file as shown, which is how the program wrote it.
	Write func(ctx context.Context, name, shown string, data []byte, appends bool) error
}

// Tree is the tree of files that a program sees: workspace/, which it can read and write, and other folders next to
// it, which are read-only unless they have a Write. Nothing else exists. A relative path that begins with none of
// these folders, such as out.csv or files/a.png, means a file in workspace/.
type Tree struct {
	Workspace *Workspace
	Folders   map[string]Folder // by name: "servers"
	// May returns an error if a file or folder of the workspace may not be used in this way. Its name is clean and
	// relative to the workspace. A nil May allows everything.
	May func(name string, use Access) *core.Error
}

// Access is a kind of access to a file.
type Access uint8

// The kinds of access.
const (
	LookAt    Access = iota // its name, size and place
	ReadFile                // also a part of it
	WriteFile               // also make, remove and rename
)

// check returns an error if a path within the workspace may not be used in this way. If files are restricted,
// symbolic links on the path are not allowed, because they could lead elsewhere.
func (t *Tree) check(rest string, use Access) error {
	if t.May == nil {
		return nil
	}
	name := local(rest)
	if refused := t.May(name, use); refused != nil {
		return refused
	}
	if t.Workspace.crossesLink(name) {
		return failed("./workspace/"+name, "EACCES", "its path has a symbolic link, and this program may use only some folders")
	}
	return nil
}

// maxRead bounds one read, in bytes. The guest reads the rest with further calls.
const maxRead = 4 << 20

type pathArgument struct {
	Path      string `json:"path"`
	Offset    int64  `json:"offset"`
	Length    int64  `json:"length"`
	Data      []byte `json:"data"`
	Append    bool   `json:"append"`
	Recursive bool   `json:"recursive"`
	From      string `json:"from"`
	To        string `json:"to"`
}

// Read represents the result of read_file.
type Read struct {
	Data  []byte `json:"data"`
	Bytes int64  `json:"bytes"` // of the whole file
	EOF   bool   `json:"eof"`
}

// Functions returns the file functions that programs call, by name.
func (t *Tree) Functions() map[string]func(context.Context, json.RawMessage) (any, error) {
	return map[string]func(context.Context, json.RawMessage) (any, error){
		"read_file":   with(t.read),
		"write_file":  t.write,
		"list_files":  with(t.list),
		"stat_file":   with(t.stat),
		"make_dir":    with(t.mkdir),
		"remove_file": with(t.remove),
		"rename_file": with(t.rename),
	}
}

func with(f func(pathArgument) (any, error)) func(context.Context, json.RawMessage) (any, error) {
	return func(_ context.Context, raw json.RawMessage) (any, error) {
		var a pathArgument
		if err := json.Unmarshal(raw, &a); err != nil {
			return nil, core.Errorf(core.KindInvalidArguments, "workspace", "%v", err)
		}
		return f(a)
	}
}

// place splits a path into the folder of the tree ("workspace", "servers", "" for the root) and the path within it.
func (t *Tree) place(name string) (folder, rest string) {
	if bare(name) {
		return "workspace", path.Clean(name)
	}
	clean := strings.TrimPrefix(path.Clean("/"+name), "/")
	folder, rest, _ = strings.Cut(clean, "/")
	return folder, rest
}

// InWorkspace reports whether a path, as a program writes it, leads to the workspace.
func (t *Tree) InWorkspace(name string) bool {
	folder, _ := t.place(name)
	return folder == "workspace"
}

// bare reports whether a path is relative and begins with none of the tree's folders, neither as written nor cleaned:
// out.csv. It means a file in the workspace. The Python guest has the same rule for its current folder.
func bare(name string) bool {
	first, _, _ := strings.Cut(path.Clean(name), "/")
	return !path.IsAbs(name) && !visible(first) && !visible(firstWritten(name))
}

func firstWritten(name string) string {
	for part := range strings.SplitSeq(name, "/") {
		if part != "" && part != "." {
			return part
		}
	}
	return "."
}

func visible(component string) bool {
	switch component {
	case ".", "..", "servers", "skills", "workspace":
		return true
	}
	return false
}

func (t *Tree) read(a pathArgument) (any, error) {
	if a.Offset < 0 || a.Length < 0 {
		return nil, failed(a.Path, "EINVAL", "offset and length must not be negative")
	}
	if a.Length == 0 || a.Length > maxRead {
		a.Length = maxRead
	}
	folder, rest := t.place(a.Path)
	if folder == "workspace" {
		if err := t.check(rest, ReadFile); err != nil {
			return nil, err
		}
		data, size, err := t.Workspace.ReadAt(rest, a.Offset, a.Length)
		if err != nil {
			return nil, renamed(err, rest, a.Path)
		}
		return Read{Data: data, Bytes: size, EOF: a.Offset+int64(len(data)) >= size}, nil
	}
	if f, ok := t.Folders[folder]; ok {
		if text, ok := f.File(rest); ok {
			size := int64(len(text))
			start := min(a.Offset, size)
			end := min(start+a.Length, size)
			return Read{Data: []byte(text[start:end]), Bytes: size, EOF: end == size}, nil
		}
	}
	return nil, t.missing(a.Path)
}

func (t *Tree) list(a pathArgument) (any, error) {
	type answer struct {
		Entries []File `json:"entries"`
	}
	folder, rest := t.place(a.Path)
	switch f, readOnly := t.Folders[folder]; {
	case folder == "":
		entries := []File{{Name: "workspace", Dir: true}}
		for name := range t.Folders {
			entries = append(entries, File{Name: name, Dir: true})
		}
		slices.SortFunc(entries, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
		return answer{entries}, nil
	case folder == "workspace":
		if err := t.check(rest, LookAt); err != nil {
			return nil, err
		}
		entries, err := t.Workspace.List(rest)
		return answer{t.shown(rest, entries)}, renamed(err, rest, a.Path)
	case readOnly:
		if names, ok := f.List(rest); ok {
			return answer{virtual(names)}, nil
		}
	}
	return nil, t.missing(a.Path)
}

// shown returns the entries of a folder that may be seen.
func (t *Tree) shown(folder string, entries []File) []File {
	if t.May == nil {
		return entries
	}
	return slices.DeleteFunc(entries, func(f File) bool { return t.May(path.Join(local(folder), f.Name), LookAt) != nil })
}

func virtual(names []string) []File {
	entries := make([]File, len(names))
	for i, name := range names {
		plain, dir := strings.CutSuffix(name, "/")
		entries[i] = File{Name: plain, Dir: dir}
	}
	return entries
}

func (t *Tree) stat(a pathArgument) (any, error) {
	folder, rest := t.place(a.Path)
	f, readOnly := t.Folders[folder]
	switch {
	case folder == "" || readOnly && rest == "":
		return File{Name: folder, Dir: true}, nil
	case folder == "workspace":
		if err := t.check(rest, LookAt); err != nil {
			return nil, err
		}
		info, err := t.Workspace.Stat(rest)
		return info, renamed(err, rest, a.Path)
	case readOnly:
		if text, ok := f.File(rest); ok {
			return File{Name: path.Base(rest), Bytes: int64(len(text))}, nil
		}
		if _, ok := f.List(rest); ok {
			return File{Name: path.Base(rest), Dir: true}, nil
		}
	}
	return nil, t.missing(a.Path)
}

// writable returns the path within the workspace, or an error if it can't be written.
func (t *Tree) writable(name string) (string, error) {
	folder, rest := t.place(name)
	if folder == "workspace" {
		return rest, t.check(rest, WriteFile)
	}
	return "", failed(name, "EROFS", "only ./workspace/ can be written").
		WithHint("write to ./workspace/%s", path.Base(name))
}

func (t *Tree) write(ctx context.Context, raw json.RawMessage) (any, error) {
	return with(func(a pathArgument) (any, error) {
		folder, rest := t.place(a.Path)
		if f := t.Folders[folder]; f.Write != nil {
			return map[string]int{"bytes": len(a.Data)}, f.Write(ctx, rest, a.Path, a.Data, a.Append)
		}
		return t.writeWorkspace(a)
	})(ctx, raw)
}

func (t *Tree) writeWorkspace(a pathArgument) (any, error) {
	rest, err := t.writable(a.Path)
	if err != nil {
		return nil, err
	}
	if a.Append {
		err = t.Workspace.Append(rest, a.Data)
	} else {
		err = t.Workspace.Write(rest, a.Data)
	}
	return map[string]int{"bytes": len(a.Data)}, renamed(err, rest, a.Path)
}

func (t *Tree) mkdir(a pathArgument) (any, error) {
	if folder, rest := t.place(a.Path); rest == "" && a.Recursive && t.Folders[folder].Write != nil {
		return struct{}{}, nil // it exists
	}
	rest, err := t.writable(a.Path)
	if err != nil {
		return nil, err
	}
	return struct{}{}, renamed(t.Workspace.MkdirAll(rest), rest, a.Path)
}

func (t *Tree) remove(a pathArgument) (any, error) {
	rest, err := t.writable(a.Path)
	if err != nil {
		return nil, err
	}
	return struct{}{}, renamed(t.Workspace.Remove(rest, a.Recursive), rest, a.Path)
}

func (t *Tree) rename(a pathArgument) (any, error) {
	from, err := t.writable(a.From)
	if err != nil {
		return nil, err
	}
	if err := t.check(from, ReadFile); err != nil {
		return nil, err
	}
	to, err := t.writable(a.To)
	if err != nil {
		return nil, err
	}
	return struct{}{}, renamed(t.Workspace.Rename(from, to), from, a.From)
}

func (t *Tree) missing(name string) error {
	return failed(name, "ENOENT", "no such file or folder").
		WithHint("a program sees ./servers/ and ./skills/ (read-only) and ./workspace/; a name without a folder is a file of ./workspace/")
}

// renamed replaces the inner path in an error with the path as the program wrote it.
func renamed(err error, inner, written string) error {
	if err == nil {
		return nil
	}
	e := *core.AsError(err)
	e.Message = strings.Replace(e.Message, ": "+inner+": ", ": "+written+": ", 1)
	return &e
}
