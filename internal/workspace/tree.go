package workspace

import (
	"context"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"retort/internal/core"
)

// VirtualFolder represents a folder of generated files in the file tree that a program sees. The folder is read-only
// unless Write is set.
type VirtualFolder struct {
	// File returns the text of a file. Its second result is false if the file does not exist. name is the path within
	// the folder.
	File func(name string) (string, bool)
	// List returns the names in a folder. Its second result is false if the folder does not exist. Names of folders
	// end with a slash.
	List func(name string) ([]string, bool)
	// Write replaces a file in the folder, or appends to it if appends is set. If Write is nil, the folder is
	// read-only. shown is the path as the program wrote it, for error messages.
	Write func(ctx context.Context, name, shown string, data []byte, appends bool) error
}

// FileTree is the tree of files that a program sees. It consists of workspace/, which the program can read and write,
// and other folders next to it. These other folders are read-only unless they have a Write function. A relative path
// that begins with none of the folders, such as out.csv or files/a.png, refers to a file in workspace/.
type FileTree struct {
	Workspace *Workspace
	Folders   map[string]VirtualFolder // folders next to workspace/ by name, such as "servers"
	// May returns an error if the program must not access a file or folder of the workspace in this way. name is a
	// clean path relative to the workspace. If May is nil, the program may access everything.
	May func(name string, use AccessKind) *core.Error
}

// AccessKind says how a program uses a file.
type AccessKind uint8

// Values of AccessKind.
const (
	LookAt    AccessKind = iota // read its name, size and existence
	ReadFile                    // read all of its content or a part
	WriteFile                   // write, create, remove or rename it
)

// checkAccess returns an error if the program must not access a path of the workspace in the given way. If access to
// files is restricted, it refuses symbolic links on the path, because they could lead to other files.
func (t *FileTree) checkAccess(rest string, use AccessKind) error {
	if t.May == nil {
		return nil
	}
	name := localPath(rest)
	if refused := t.May(name, use); refused != nil {
		return refused
	}
	if t.Workspace.crossesLink(name) {
		return toolError("./workspace/"+name, "EACCES", "its path contains a symbolic link, which is not allowed for a program that may use only some folders")
	}
	return nil
}

// maxRead bounds the result of one read, in bytes. The guest, which is the interpreter that runs the program, reads
// the rest with further calls.
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

// ReadAnswer holds the result of the function read_file.
type ReadAnswer struct {
	Data  []byte `json:"data"`
	Bytes int64  `json:"bytes"` // size of the whole file in bytes
	EOF   bool   `json:"eof"`
}

// FileFunctions returns the functions with which programs use files, by name.
func (t *FileTree) FileFunctions() map[string]func(context.Context, json.RawMessage) (any, error) {
	return map[string]func(context.Context, json.RawMessage) (any, error){
		"read_file":   withPath(t.readFile),
		"write_file":  t.writeFile,
		"list_files":  withPath(t.listFolder),
		"stat_file":   withPath(t.statFile),
		"make_dir":    withPath(t.makeFolder),
		"remove_file": withPath(t.removeFile),
		"rename_file": withPath(t.renameFile),
	}
}

func withPath(f func(pathArgument) (any, error)) func(context.Context, json.RawMessage) (any, error) {
	return func(_ context.Context, raw json.RawMessage) (any, error) {
		var a pathArgument
		if err := json.Unmarshal(raw, &a); err != nil {
			return nil, core.Errorf(core.KindInvalidArguments, "workspace", "%v", err)
		}
		return f(a)
	}
}

// splitTree splits a path into the top folder of the tree and the path within that folder. The top folder is for
// example "workspace" or "servers", or "" for the root.
func (t *FileTree) splitTree(name string) (folder, rest string) {
	if isBarePath(name) {
		return "workspace", path.Clean(name)
	}
	clean := strings.TrimPrefix(path.Clean("/"+name), "/")
	folder, rest, _ = strings.Cut(clean, "/")
	return folder, rest
}

// InWorkspace reports whether a path, as a program writes it, refers to the workspace.
func (t *FileTree) InWorkspace(name string) bool {
	folder, _ := t.splitTree(name)
	return folder == "workspace"
}

// isBarePath reports whether a path is relative and begins with none of the tree's folders. Such a path, for example
// out.csv, refers to a file in the workspace. The Python guest applies the same rule to its current folder.
func isBarePath(name string) bool {
	first, _, _ := strings.Cut(path.Clean(name), "/")
	return !path.IsAbs(name) && !isVisible(first) && !isVisible(firstWritten(name))
}

func firstWritten(name string) string {
	for part := range strings.SplitSeq(name, "/") {
		if part != "" && part != "." {
			return part
		}
	}
	return "."
}

func isVisible(component string) bool {
	switch component {
	case ".", "..", "servers", "skills", "workspace":
		return true
	}
	return false
}

func (t *FileTree) readFile(a pathArgument) (any, error) {
	if a.Offset < 0 || a.Length < 0 {
		return nil, toolError(a.Path, "EINVAL", "offset and length must not be negative")
	}
	if a.Length == 0 || a.Length > maxRead {
		a.Length = maxRead
	}
	folder, rest := t.splitTree(a.Path)
	if folder == "workspace" {
		if err := t.checkAccess(rest, ReadFile); err != nil {
			return nil, err
		}
		data, size, err := t.Workspace.ReadAt(rest, a.Offset, a.Length)
		if err != nil {
			return nil, renamePathInError(err, rest, a.Path)
		}
		return ReadAnswer{Data: data, Bytes: size, EOF: a.Offset+int64(len(data)) >= size}, nil
	}
	if f, ok := t.Folders[folder]; ok {
		if text, ok := f.File(rest); ok {
			size := int64(len(text))
			start := min(a.Offset, size)
			end := min(start+a.Length, size)
			return ReadAnswer{Data: []byte(text[start:end]), Bytes: size, EOF: end == size}, nil
		}
	}
	return nil, t.missingError(a.Path)
}

func (t *FileTree) listFolder(a pathArgument) (any, error) {
	type answer struct {
		Entries []FileEntry `json:"entries"`
	}
	folder, rest := t.splitTree(a.Path)
	switch f, readOnly := t.Folders[folder]; {
	case folder == "":
		entries := []FileEntry{{Name: "workspace", Dir: true}}
		for name := range t.Folders {
			entries = append(entries, FileEntry{Name: name, Dir: true})
		}
		slices.SortFunc(entries, func(a, b FileEntry) int { return strings.Compare(a.Name, b.Name) })
		return answer{entries}, nil
	case folder == "workspace":
		if err := t.checkAccess(rest, LookAt); err != nil {
			return nil, err
		}
		entries, err := t.Workspace.ListFolder(rest)
		return answer{t.visibleEntries(rest, entries)}, renamePathInError(err, rest, a.Path)
	case readOnly:
		if names, ok := f.List(rest); ok {
			return answer{virtualEntries(names)}, nil
		}
	}
	return nil, t.missingError(a.Path)
}

// visibleEntries returns those entries of a folder that the program may see.
func (t *FileTree) visibleEntries(folder string, entries []FileEntry) []FileEntry {
	if t.May == nil {
		return entries
	}
	return slices.DeleteFunc(entries, func(f FileEntry) bool { return t.May(path.Join(localPath(folder), f.Name), LookAt) != nil })
}

func virtualEntries(names []string) []FileEntry {
	entries := make([]FileEntry, len(names))
	for i, name := range names {
		plain, dir := strings.CutSuffix(name, "/")
		entries[i] = FileEntry{Name: plain, Dir: dir}
	}
	return entries
}

func (t *FileTree) statFile(a pathArgument) (any, error) {
	folder, rest := t.splitTree(a.Path)
	f, readOnly := t.Folders[folder]
	switch {
	case folder == "" || readOnly && rest == "":
		return FileEntry{Name: folder, Dir: true}, nil
	case folder == "workspace":
		if err := t.checkAccess(rest, LookAt); err != nil {
			return nil, err
		}
		info, err := t.Workspace.Stat(rest)
		return info, renamePathInError(err, rest, a.Path)
	case readOnly:
		if text, ok := f.File(rest); ok {
			return FileEntry{Name: path.Base(rest), Bytes: int64(len(text))}, nil
		}
		if _, ok := f.List(rest); ok {
			return FileEntry{Name: path.Base(rest), Dir: true}, nil
		}
	}
	return nil, t.missingError(a.Path)
}

// writablePath converts a path to one relative to the workspace. It returns an error if the program must not write to
// the path.
func (t *FileTree) writablePath(name string) (string, error) {
	folder, rest := t.splitTree(name)
	if folder == "workspace" {
		return rest, t.checkAccess(rest, WriteFile)
	}
	return "", toolError(name, "EROFS", "only files in ./workspace/ can be written").
		WithHint("write to ./workspace/%s", path.Base(name))
}

func (t *FileTree) writeFile(ctx context.Context, raw json.RawMessage) (any, error) {
	return withPath(func(a pathArgument) (any, error) {
		folder, rest := t.splitTree(a.Path)
		if f := t.Folders[folder]; f.Write != nil {
			return map[string]int{"bytes": len(a.Data)}, f.Write(ctx, rest, a.Path, a.Data, a.Append)
		}
		return t.writeWorkspace(a)
	})(ctx, raw)
}

func (t *FileTree) writeWorkspace(a pathArgument) (any, error) {
	rest, err := t.writablePath(a.Path)
	if err != nil {
		return nil, err
	}
	if a.Append {
		err = t.Workspace.AppendFile(rest, a.Data)
	} else {
		err = t.Workspace.Write(rest, a.Data)
	}
	return map[string]int{"bytes": len(a.Data)}, renamePathInError(err, rest, a.Path)
}

func (t *FileTree) makeFolder(a pathArgument) (any, error) {
	if folder, rest := t.splitTree(a.Path); rest == "" && a.Recursive && t.Folders[folder].Write != nil {
		return struct{}{}, nil // it exists
	}
	rest, err := t.writablePath(a.Path)
	if err != nil {
		return nil, err
	}
	return struct{}{}, renamePathInError(t.Workspace.MkdirAll(rest), rest, a.Path)
}

func (t *FileTree) removeFile(a pathArgument) (any, error) {
	rest, err := t.writablePath(a.Path)
	if err != nil {
		return nil, err
	}
	return struct{}{}, renamePathInError(t.Workspace.RemovePath(rest, a.Recursive), rest, a.Path)
}

func (t *FileTree) renameFile(a pathArgument) (any, error) {
	from, err := t.writablePath(a.From)
	if err != nil {
		return nil, err
	}
	if err := t.checkAccess(from, ReadFile); err != nil {
		return nil, err
	}
	to, err := t.writablePath(a.To)
	if err != nil {
		return nil, err
	}
	return struct{}{}, renamePathInError(t.Workspace.RenamePath(from, to), from, a.From)
}

func (t *FileTree) missingError(name string) error {
	return toolError(name, "ENOENT", "no such file or folder").
		WithHint("a program sees ./servers/ and ./skills/ (read-only) and ./workspace/; a name without a folder is a file of ./workspace/")
}

// renamePathInError returns an error whose message has the path that the program wrote instead of the internal path.
func renamePathInError(err error, inner, written string) error {
	if err == nil {
		return nil
	}
	e := *core.AsError(err)
	e.Message = strings.Replace(e.Message, ": "+inner+": ", ": "+written+": ", 1)
	return &e
}
