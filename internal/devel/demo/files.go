package demo

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

const (
	filesRoot    = "/srv/nordlys"
	maxFiles     = 50_000
	maxFileBytes = 16 << 20
)

type fileServer struct {
	*serverBase
	w     *demoWorld
	nodes map[string]*fileNode // by absolute path, including the root
}

type fileNode struct {
	dir      bool
	content  func() string // generates the content on first use
	mime     string
	modified time.Time
	readOnly bool
}

func buildFiles(b *serverBase) map[string]toolFunc {
	f := &fileServer{serverBase: b, w: newWorld(), nodes: map[string]*fileNode{filesRoot: {dir: true, modified: demoToday}}}
	f.fillFiles()
	return map[string]toolFunc{
		"read_file":                readTool(f.readFile),
		"read_multiple_files":      readTool(f.readMany),
		"read_media_file":          readTool(f.readMedia),
		"list_directory":           readTool(f.listDirectory),
		"directory_tree":           readTool(f.directoryTree),
		"search_files":             readTool(f.searchFiles),
		"get_file_info":            readTool(f.fileInfo),
		"list_allowed_directories": readTool(f.allowedDirectories),
		"get_change_log":           readTool(f.changeLog),
		"write_file":               writeTool(f.writeFile),
		"edit_file":                writeTool(f.editFile),
		"create_directory":         writeTool(f.makeDir),
		"move_file":                writeTool(f.moveFile),
		"delete_file":              writeTool(f.removeFile),
	}
}

func fixedContent(s string) func() string { return func() string { return s } }

// resolvePath returns the absolute form of a path. It returns an error for a path outside the root.
func (f *fileServer) resolvePath(name string) (string, error) {
	if !path.IsAbs(name) {
		name = path.Join(filesRoot, name)
	}
	name = path.Clean(name)
	if name != filesRoot && !strings.HasPrefix(name, filesRoot+"/") {
		return "", fmt.Errorf("access denied, path outside allowed directories: %s not in %s", name, filesRoot)
	}
	return name, f.provokedError(path.Base(name))
}

func (f *fileServer) findNode(name string) (string, *fileNode, error) {
	name, err := f.resolvePath(name)
	if err != nil {
		return name, nil, err
	}
	n, ok := f.nodes[name]
	if !ok {
		return name, nil, fmt.Errorf("ENOENT: no such file or directory, open '%s'", name)
	}
	return name, n, nil
}

func (f *fileServer) findFile(name string) (string, *fileNode, error) {
	name, n, err := f.findNode(name)
	if err == nil && n.dir {
		err = fmt.Errorf("EISDIR: illegal operation on a directory, read '%s'", name)
	}
	return name, n, err
}

func (f *fileServer) findDir(name string) (string, error) {
	name, n, err := f.findNode(name)
	if err == nil && !n.dir {
		err = fmt.Errorf("ENOTDIR: not a directory, scandir '%s'", name)
	}
	return name, err
}

// listDirectories returns the paths directly inside each directory, sorted by name.
func (f *fileServer) listDirectories() map[string][]string {
	index := map[string][]string{}
	for _, p := range sortedKeys(f.nodes) {
		if p != filesRoot {
			index[path.Dir(p)] = append(index[path.Dir(p)], p)
		}
	}
	return index
}

func (f *fileServer) readFile(in struct {
	Path string `json:"path"`
	Head int    `json:"head"`
	Tail int    `json:"tail"`
}) (toolResult, error) {
	_, n, err := f.findFile(in.Path)
	if err != nil {
		return toolResult{}, err
	}
	if n.mime != "" {
		return toolResult{}, errors.New("the file is not text; use read_media_file")
	}
	lines := strings.SplitAfter(n.content(), "\n")
	if in.Head > 0 {
		lines = lines[:min(in.Head, len(lines))]
	}
	if in.Tail > 0 {
		lines = lines[max(len(lines)-in.Tail, 0):]
	}
	return textResult("%s", strings.Join(lines, ""))
}

// readMany returns one content part for each file. A file that cannot be read does not make the others fail.
func (f *fileServer) readMany(in struct {
	Paths []string `json:"paths"`
}) (toolResult, error) {
	var content []any
	for _, p := range in.Paths {
		_, n, err := f.findFile(p)
		text := p + ":\n"
		if err != nil {
			text += "Error - " + err.Error()
		} else {
			text += n.content()
		}
		content = append(content, textPart{"text", text})
	}
	return partsResult(content...)
}

func (f *fileServer) readMedia(in struct {
	Path string `json:"path"`
}) (toolResult, error) {
	name, n, err := f.findFile(in.Path)
	if err != nil {
		return toolResult{}, err
	}
	if n.mime != pngMime {
		return toolResult{}, fmt.Errorf("'%s' is not an image or audio file", name)
	}
	return partsResult(imagePart{"image", []byte(n.content()), n.mime})
}

func (f *fileServer) listDirectory(in struct {
	Path string `json:"path"`
}) (toolResult, error) {
	dir, err := f.findDir(in.Path)
	if err != nil {
		return toolResult{}, err
	}
	var lines []string
	for _, p := range f.listDirectories()[dir] {
		lines = append(lines, map[bool]string{true: "[DIR] ", false: "[FILE] "}[f.nodes[p].dir]+path.Base(p))
	}
	return textResult("%s", strings.Join(lines, "\n"))
}

type treeEntry struct {
	Name     string       `json:"name"`
	Type     string       `json:"type"`
	Children *[]treeEntry `json:"children,omitempty"`
}

func (f *fileServer) directoryTree(in struct {
	Path  string `json:"path"`
	Depth int    `json:"depth"`
}) (toolResult, error) {
	dir, err := f.findDir(in.Path)
	if err != nil {
		return toolResult{}, err
	}
	return jsonText(f.treeEntries(f.listDirectories(), dir, orDefault(in.Depth, 10)))
}

func (f *fileServer) treeEntries(index map[string][]string, dir string, depth int) []treeEntry {
	list := []treeEntry{}
	if depth == 0 {
		return list
	}
	for _, p := range index[dir] {
		e := treeEntry{Name: path.Base(p), Type: "file"}
		if f.nodes[p].dir {
			inside := f.treeEntries(index, p, depth-1)
			e.Type, e.Children = "directory", &inside
		}
		list = append(list, e)
	}
	return list
}

func (f *fileServer) searchFiles(in struct {
	Path    string   `json:"path"`
	Pattern string   `json:"pattern"`
	Exclude []string `json:"excludePatterns"`
	Text    string   `json:"containing"`
}) (toolResult, error) {
	dir, err := f.findDir(in.Path)
	if err != nil {
		return toolResult{}, err
	}
	for _, pattern := range append([]string{in.Pattern}, in.Exclude...) {
		if _, err := path.Match(pattern, ""); err != nil {
			return toolResult{}, fmt.Errorf("the pattern '%s' is malformed", pattern)
		}
	}
	matches := func(pattern, name string) bool { ok, _ := path.Match(pattern, name); return ok }
	found := []string{}
	for _, p := range sortedKeys(f.nodes) {
		excluded := slices.ContainsFunc(in.Exclude, func(x string) bool { return matches(x, path.Base(p)) })
		if strings.HasPrefix(p, dir+"/") && !excluded && matches(in.Pattern, path.Base(p)) &&
			(in.Text == "" || !f.nodes[p].dir && containsFold(f.nodes[p].content(), in.Text)) {
			found = append(found, p)
		}
	}
	return structuredResult(struct {
		Paths []string `json:"paths"`
	}{found})
}

func (f *fileServer) fileInfo(in struct {
	Path string `json:"path"`
}) (toolResult, error) {
	_, n, err := f.findNode(in.Path)
	if err != nil {
		return toolResult{}, err
	}
	size := 0
	if !n.dir {
		size = len(n.content())
	}
	permissions := map[bool]string{true: "444", false: "644"}[n.readOnly]
	return textResult(
		"size: %d\nmodified: %s\nisDirectory: %v\nisFile: %v\npermissions: %s", size, n.modified.Format(time.RFC3339),
		n.dir, !n.dir, permissions,
	)
}

func (f *fileServer) allowedDirectories(struct{}) (toolResult, error) {
	return textResult("Allowed directories:\n%s", filesRoot)
}

func (f *fileServer) changeLog(in struct {
	Limit int `json:"limit"`
}) (toolResult, error) {
	return jsonText(pageByOffset(f.effectsOn(""), 0, orDefault(in.Limit, 100)))
}

// resolveTarget returns the absolute path at which a file called name can be written. It returns an error if that is
// not possible.
func (f *fileServer) resolveTarget(name string) (string, error) {
	name, err := f.resolvePath(name)
	if err != nil {
		return "", err
	}
	if _, err := f.findDir(path.Dir(name)); err != nil {
		return "", err
	}
	n, exists := f.nodes[name]
	switch {
	case exists && n.dir:
		return "", fmt.Errorf("EISDIR: illegal operation on a directory, open '%s'", name)
	case exists && n.readOnly:
		return "", fmt.Errorf("EACCES: permission denied, open '%s'", name)
	case !exists && len(f.nodes) >= maxFiles:
		return "", errors.New("ENOSPC: no space left on device")
	}
	return name, nil
}

func (f *fileServer) writeFile(in struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}) (toolResult, error) {
	name, err := f.resolveTarget(in.Path)
	if err == nil && len(in.Content) > maxFileBytes {
		err = fmt.Errorf("EFBIG: a file has at most %d bytes", maxFileBytes)
	}
	if err != nil {
		return toolResult{}, err
	}
	f.nodes[name] = &fileNode{content: fixedContent(in.Content), modified: f.nextTime()}
	f.recordEffect("write_file", name, "%d bytes", len(in.Content))
	return textResult("Successfully wrote to %s", in.Path)
}

func (f *fileServer) editFile(in struct {
	Path  string `json:"path"`
	Edits []struct {
		Old string `json:"oldText"`
		New string `json:"newText"`
	} `json:"edits"`
	DryRun bool `json:"dryRun"`
}) (toolResult, error) {
	name, n, err := f.findFile(in.Path)
	if err == nil {
		_, err = f.resolveTarget(name)
	}
	if err != nil {
		return toolResult{}, err
	}
	content := n.content()
	var diff strings.Builder
	fmt.Fprintf(&diff, "--- %s\n+++ %s\n", name, name)
	for _, e := range in.Edits {
		if strings.Count(content, e.Old) != 1 {
			return toolResult{}, fmt.Errorf(
				"the text to replace must occur exactly once, but occurs %d times: %q", strings.Count(content, e.Old), e.Old,
			)
		}
		content = strings.Replace(content, e.Old, e.New, 1)
		fmt.Fprintf(&diff, "-%s\n+%s\n", strings.ReplaceAll(e.Old, "\n", "\n-"), strings.ReplaceAll(e.New, "\n", "\n+"))
	}
	if !in.DryRun {
		n.content, n.modified = fixedContent(content), f.nextTime()
		f.recordEffect("edit_file", name, "%d edits", len(in.Edits))
	}
	return textResult("%s", diff.String())
}

func (f *fileServer) makeDir(in struct {
	Path string `json:"path"`
}) (toolResult, error) {
	name, err := f.resolvePath(in.Path)
	if err != nil {
		return toolResult{}, err
	}
	var missing []string
	for p := name; ; p = path.Dir(p) {
		if n, ok := f.nodes[p]; ok {
			if !n.dir {
				return toolResult{}, fmt.Errorf("EEXIST: file already exists, mkdir '%s'", p)
			}
			break
		}
		missing = append(missing, p)
	}
	if len(f.nodes)+len(missing) > maxFiles {
		return toolResult{}, errors.New("ENOSPC: no space left on device")
	}
	for _, p := range missing {
		f.nodes[p] = &fileNode{dir: true, modified: f.nextTime()}
		f.recordEffect("create_directory", p, "")
	}
	return textResult("Successfully created directory %s", in.Path)
}

func (f *fileServer) moveFile(in struct {
	Source      string `json:"source"`
	Destination string `json:"destination"`
}) (toolResult, error) {
	from, n, err := f.findNode(in.Source)
	if err != nil {
		return toolResult{}, err
	}
	to, err := f.resolveTarget(in.Destination)
	switch {
	case err != nil:
		return toolResult{}, err
	case f.nodes[to] != nil:
		return toolResult{}, fmt.Errorf("EEXIST: file already exists, rename '%s' -> '%s'", from, to)
	case n.readOnly || from == filesRoot:
		return toolResult{}, fmt.Errorf("EACCES: permission denied, rename '%s'", from)
	case strings.HasPrefix(to, from+"/"):
		return toolResult{}, fmt.Errorf("EINVAL: a directory cannot be moved into itself, rename '%s' -> '%s'", from, to)
	}
	for _, p := range sortedKeys(f.nodes) {
		if p == from || strings.HasPrefix(p, from+"/") {
			f.nodes[to+strings.TrimPrefix(p, from)] = f.nodes[p]
			delete(f.nodes, p)
		}
	}
	f.recordEffect("move_file", to, "from %s", from)
	return textResult("Successfully moved %s to %s", in.Source, in.Destination)
}

func (f *fileServer) removeFile(in struct {
	Path      string `json:"path"`
	Recursive bool   `json:"recursive"`
}) (toolResult, error) {
	name, n, err := f.findNode(in.Path)
	switch {
	case err != nil:
		return toolResult{}, err
	case n.readOnly || name == filesRoot:
		return toolResult{}, fmt.Errorf("EACCES: permission denied, unlink '%s'", name)
	case n.dir && !in.Recursive && len(f.listDirectories()[name]) > 0:
		return toolResult{}, fmt.Errorf("ENOTEMPTY: directory not empty, rmdir '%s'", name)
	}
	for p := range f.nodes {
		if p == name || strings.HasPrefix(p, name+"/") {
			delete(f.nodes, p)
		}
	}
	f.recordEffect("delete_file", name, "")
	return textResult("Successfully deleted %s", in.Path)
}
