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

type files struct {
	*base
	w     *world
	nodes map[string]*node // by absolute path, the root included
}

type node struct {
	dir      bool
	content  func() string // generated when asked for
	mime     string
	modified time.Time
	readOnly bool
}

func buildFiles(b *base) map[string]tool {
	f := &files{base: b, w: newWorld(), nodes: map[string]*node{filesRoot: {dir: true, modified: now}}}
	f.fill()
	return map[string]tool{
		"read_file":                read(f.readFile),
		"read_multiple_files":      read(f.readMany),
		"read_media_file":          read(f.readMedia),
		"list_directory":           read(f.list),
		"directory_tree":           read(f.tree),
		"search_files":             read(f.search),
		"get_file_info":            read(f.info),
		"list_allowed_directories": read(f.allowed),
		"get_change_log":           read(f.changeLog),
		"write_file":               write(f.writeFile),
		"edit_file":                write(f.edit),
		"create_directory":         write(f.makeDir),
		"move_file":                write(f.move),
		"delete_file":              write(f.remove),
	}
}

func fixed(s string) func() string { return func() string { return s } }

// resolve makes an absolute path and keeps it inside the root.
func (f *files) resolve(name string) (string, error) {
	if !path.IsAbs(name) {
		name = path.Join(filesRoot, name)
	}
	name = path.Clean(name)
	if name != filesRoot && !strings.HasPrefix(name, filesRoot+"/") {
		return "", fmt.Errorf("access denied, path outside allowed directories: %s not in %s", name, filesRoot)
	}
	return name, f.provoked(path.Base(name))
}

func (f *files) find(name string) (string, *node, error) {
	name, err := f.resolve(name)
	if err != nil {
		return name, nil, err
	}
	n, ok := f.nodes[name]
	if !ok {
		return name, nil, fmt.Errorf("ENOENT: no such file or directory, open '%s'", name)
	}
	return name, n, nil
}

func (f *files) findFile(name string) (string, *node, error) {
	name, n, err := f.find(name)
	if err == nil && n.dir {
		err = fmt.Errorf("EISDIR: illegal operation on a directory, read '%s'", name)
	}
	return name, n, err
}

func (f *files) findDir(name string) (string, error) {
	name, n, err := f.find(name)
	if err == nil && !n.dir {
		err = fmt.Errorf("ENOTDIR: not a directory, scandir '%s'", name)
	}
	return name, err
}

// byDirectory lists the paths directly inside each directory, in the order of
// their names.
func (f *files) byDirectory() map[string][]string {
	index := map[string][]string{}
	for _, p := range sortedKeys(f.nodes) {
		if p != filesRoot {
			index[path.Dir(p)] = append(index[path.Dir(p)], p)
		}
	}
	return index
}

func (f *files) readFile(in struct {
	Path string `json:"path"`
	Head int    `json:"head"`
	Tail int    `json:"tail"`
}) (result, error) {
	_, n, err := f.findFile(in.Path)
	if err != nil {
		return result{}, err
	}
	if n.mime != "" {
		return result{}, errors.New("the file is not text; use read_media_file")
	}
	lines := strings.SplitAfter(n.content(), "\n")
	if in.Head > 0 {
		lines = lines[:min(in.Head, len(lines))]
	}
	if in.Tail > 0 {
		lines = lines[max(len(lines)-in.Tail, 0):]
	}
	return plain("%s", strings.Join(lines, ""))
}

// readMany answers with one part for each file; a file that cannot be read does
// not fail the others.
func (f *files) readMany(in struct {
	Paths []string `json:"paths"`
}) (result, error) {
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
	return parts(content...)
}

func (f *files) readMedia(in struct {
	Path string `json:"path"`
}) (result, error) {
	name, n, err := f.findFile(in.Path)
	if err != nil {
		return result{}, err
	}
	if n.mime != pngMime {
		return result{}, fmt.Errorf("'%s' is not an image or audio file", name)
	}
	return parts(imagePart{"image", []byte(n.content()), n.mime})
}

func (f *files) list(in struct {
	Path string `json:"path"`
}) (result, error) {
	dir, err := f.findDir(in.Path)
	if err != nil {
		return result{}, err
	}
	var lines []string
	for _, p := range f.byDirectory()[dir] {
		lines = append(lines, map[bool]string{true: "[DIR] ", false: "[FILE] "}[f.nodes[p].dir]+path.Base(p))
	}
	return plain("%s", strings.Join(lines, "\n"))
}

type treeEntry struct {
	Name     string       `json:"name"`
	Type     string       `json:"type"`
	Children *[]treeEntry `json:"children,omitempty"`
}

func (f *files) tree(in struct {
	Path  string `json:"path"`
	Depth int    `json:"depth"`
}) (result, error) {
	dir, err := f.findDir(in.Path)
	if err != nil {
		return result{}, err
	}
	return jsonText(f.entries(f.byDirectory(), dir, or(in.Depth, 10)))
}

func (f *files) entries(index map[string][]string, dir string, depth int) []treeEntry {
	list := []treeEntry{}
	if depth == 0 {
		return list
	}
	for _, p := range index[dir] {
		e := treeEntry{Name: path.Base(p), Type: "file"}
		if f.nodes[p].dir {
			inside := f.entries(index, p, depth-1)
			e.Type, e.Children = "directory", &inside
		}
		list = append(list, e)
	}
	return list
}

func (f *files) search(in struct {
	Path    string   `json:"path"`
	Pattern string   `json:"pattern"`
	Exclude []string `json:"excludePatterns"`
	Text    string   `json:"containing"`
}) (result, error) {
	dir, err := f.findDir(in.Path)
	if err != nil {
		return result{}, err
	}
	for _, pattern := range append([]string{in.Pattern}, in.Exclude...) {
		if _, err := path.Match(pattern, ""); err != nil {
			return result{}, fmt.Errorf("the pattern '%s' is malformed", pattern)
		}
	}
	matches := func(pattern, name string) bool { ok, _ := path.Match(pattern, name); return ok }
	found := []string{}
	for _, p := range sortedKeys(f.nodes) {
		excluded := slices.ContainsFunc(in.Exclude, func(x string) bool { return matches(x, path.Base(p)) })
		if strings.HasPrefix(p, dir+"/") && !excluded && matches(in.Pattern, path.Base(p)) && (in.Text == "" || !f.nodes[p].dir && has(f.nodes[p].content(), in.Text)) {
			found = append(found, p)
		}
	}
	return structured(struct {
		Paths []string `json:"paths"`
	}{found})
}

func (f *files) info(in struct {
	Path string `json:"path"`
}) (result, error) {
	_, n, err := f.find(in.Path)
	if err != nil {
		return result{}, err
	}
	size := 0
	if !n.dir {
		size = len(n.content())
	}
	permissions := map[bool]string{true: "444", false: "644"}[n.readOnly]
	return plain("size: %d\nmodified: %s\nisDirectory: %v\nisFile: %v\npermissions: %s", size, n.modified.Format(time.RFC3339), n.dir, !n.dir, permissions)
}

func (f *files) allowed(struct{}) (result, error) {
	return plain("Allowed directories:\n%s", filesRoot)
}

func (f *files) changeLog(in struct {
	Limit int `json:"limit"`
}) (result, error) {
	return jsonText(pageByOffset(f.effectsOn(""), 0, or(in.Limit, 100)))
}

// place checks that a file can be created at name and returns its path.
func (f *files) place(name string) (string, error) {
	name, err := f.resolve(name)
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

func (f *files) writeFile(in struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}) (result, error) {
	name, err := f.place(in.Path)
	if err == nil && len(in.Content) > maxFileBytes {
		err = fmt.Errorf("EFBIG: a file has at most %d bytes", maxFileBytes)
	}
	if err != nil {
		return result{}, err
	}
	f.nodes[name] = &node{content: fixed(in.Content), modified: f.clock()}
	f.did("write_file", name, "%d bytes", len(in.Content))
	return plain("Successfully wrote to %s", in.Path)
}

func (f *files) edit(in struct {
	Path  string `json:"path"`
	Edits []struct {
		Old string `json:"oldText"`
		New string `json:"newText"`
	} `json:"edits"`
	DryRun bool `json:"dryRun"`
}) (result, error) {
	name, n, err := f.findFile(in.Path)
	if err == nil {
		_, err = f.place(name)
	}
	if err != nil {
		return result{}, err
	}
	content := n.content()
	var diff strings.Builder
	fmt.Fprintf(&diff, "--- %s\n+++ %s\n", name, name)
	for _, e := range in.Edits {
		if strings.Count(content, e.Old) != 1 {
			return result{}, fmt.Errorf("the text to replace must occur exactly once, but occurs %d times: %q", strings.Count(content, e.Old), e.Old)
		}
		content = strings.Replace(content, e.Old, e.New, 1)
		fmt.Fprintf(&diff, "-%s\n+%s\n", strings.ReplaceAll(e.Old, "\n", "\n-"), strings.ReplaceAll(e.New, "\n", "\n+"))
	}
	if !in.DryRun {
		n.content, n.modified = fixed(content), f.clock()
		f.did("edit_file", name, "%d edits", len(in.Edits))
	}
	return plain("%s", diff.String())
}

func (f *files) makeDir(in struct {
	Path string `json:"path"`
}) (result, error) {
	name, err := f.resolve(in.Path)
	if err != nil {
		return result{}, err
	}
	var missing []string
	for p := name; ; p = path.Dir(p) {
		if n, ok := f.nodes[p]; ok {
			if !n.dir {
				return result{}, fmt.Errorf("EEXIST: file already exists, mkdir '%s'", p)
			}
			break
		}
		missing = append(missing, p)
	}
	if len(f.nodes)+len(missing) > maxFiles {
		return result{}, errors.New("ENOSPC: no space left on device")
	}
	for _, p := range missing {
		f.nodes[p] = &node{dir: true, modified: f.clock()}
		f.did("create_directory", p, "")
	}
	return plain("Successfully created directory %s", in.Path)
}

func (f *files) move(in struct {
	Source      string `json:"source"`
	Destination string `json:"destination"`
}) (result, error) {
	from, n, err := f.find(in.Source)
	if err != nil {
		return result{}, err
	}
	to, err := f.place(in.Destination)
	switch {
	case err != nil:
		return result{}, err
	case f.nodes[to] != nil:
		return result{}, fmt.Errorf("EEXIST: file already exists, rename '%s' -> '%s'", from, to)
	case n.readOnly || from == filesRoot:
		return result{}, fmt.Errorf("EACCES: permission denied, rename '%s'", from)
	case strings.HasPrefix(to, from+"/"):
		return result{}, fmt.Errorf("EINVAL: a directory cannot be moved into itself, rename '%s' -> '%s'", from, to)
	}
	for _, p := range sortedKeys(f.nodes) {
		if p == from || strings.HasPrefix(p, from+"/") {
			f.nodes[to+strings.TrimPrefix(p, from)] = f.nodes[p]
			delete(f.nodes, p)
		}
	}
	f.did("move_file", to, "from %s", from)
	return plain("Successfully moved %s to %s", in.Source, in.Destination)
}

func (f *files) remove(in struct {
	Path      string `json:"path"`
	Recursive bool   `json:"recursive"`
}) (result, error) {
	name, n, err := f.find(in.Path)
	switch {
	case err != nil:
		return result{}, err
	case n.readOnly || name == filesRoot:
		return result{}, fmt.Errorf("EACCES: permission denied, unlink '%s'", name)
	case n.dir && !in.Recursive && len(f.byDirectory()[name]) > 0:
		return result{}, fmt.Errorf("ENOTEMPTY: directory not empty, rmdir '%s'", name)
	}
	for p := range f.nodes {
		if p == name || strings.HasPrefix(p, name+"/") {
			delete(f.nodes, p)
		}
	}
	f.did("delete_file", name, "")
	return plain("Successfully deleted %s", in.Path)
}
