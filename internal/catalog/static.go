package catalog

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"retort/internal/catalog/sanitize"
	"retort/internal/core"
)

const (
	maxStaticFile = 4 << 20 // size of a file in bytes
	maxStatic     = 50_000  // number of files
)

// LoadStatic reads definitions of tools without a running server from folders. It replaces the definitions that an
// earlier call has read. Each file <category>/<name>.json has the definition of one tool in MCP's format. Its
// member "server" names the server; without it, the category is used. A definition without a name gets that of the
// file. Its member "learnedOutput" has the result type that was learned with another data directory. This type
// also applies to the tool of a running server that lists the same definition. LoadStatic reports unusable files
// through ListProblems, but returns an error for a folder that cannot be read.
func (c *Catalog) LoadStatic(dirs []string) error {
	l := staticLoader{sources: map[string]*serverSource{}, scanner: c.scanner, isShowable: c.isShowable}
	for _, dir := range dirs {
		if err := l.readFolder(dir); err != nil {
			return core.Errorf(
				core.KindInvalidArguments, "catalog.static", "cannot read the tool definitions in %s: %w", dir, err,
			).WithHint("toolDefinitions must list folders that contain <category>/<name>.json")
		}
	}
	for _, s := range l.sources {
		assignIdentifiers(s.tools)
	}
	c.mu.Lock()
	c.static = l.sources
	c.staticProblems = l.problems
	c.learner.shareShapes(l.shared)
	c.invalidateToolset()
	c.mu.Unlock()
	c.notifyChange()
	return nil
}

type staticLoader struct {
	scanner    func() *sanitize.TextScanner
	isShowable func(schema json.RawMessage) bool
	sources    map[string]*serverSource
	shared     []sharedTool
	problems   []CatalogProblem
	files      int
}

func (l *staticLoader) addProblem(path, format string, args ...any) {
	l.problems = append(l.problems, CatalogProblem{File: path, Message: fmt.Sprintf(format, args...)})
}

// readFolder reads the category folders in one folder.
func (l *staticLoader) readFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(path)
		switch {
		case strings.HasPrefix(e.Name(), "."):
		case err != nil:
			l.addProblem(path, "it is ignored: %v", err)
		case info.IsDir():
			l.readCategory(path)
		case strings.HasSuffix(e.Name(), ".json"):
			l.addProblem(path, "it is ignored: a definition must be in a folder named after its category")
		}
	}
	return nil
}

func (l *staticLoader) readCategory(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		l.addProblem(dir, "it is ignored: %v", err)
		return
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.IsDir() || !strings.HasSuffix(e.Name(), ".json") || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if l.files++; l.files > maxStatic {
			l.addProblem(dir, "only the first %d definitions are used", maxStatic)
			return
		}
		if err := l.readFile(path, filepath.Base(dir)); err != nil {
			l.addProblem(path, "it is ignored: %v", err)
		}
	}
}

func (l *staticLoader) readFile(path, category string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() > maxStaticFile {
		return fmt.Errorf("it is not a file of at most %d bytes", maxStaticFile)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	server, definition, err := completeDefinition(data, category, strings.TrimSuffix(filepath.Base(path), ".json"))
	if err != nil {
		return err
	}
	t, notes, err := readDefinition(server, definition, l.scanner())
	if err != nil {
		return err
	}
	for _, note := range notes {
		l.addProblem(path, "%s", note)
	}
	t.Category = strings.ToLower(category)
	if shared, note := readShared(t, data); note != "" {
		l.addProblem(path, "%s", note)
	} else if shared.shape != nil && len(t.OutputSchema) == 0 {
		l.shared = append(l.shared, shared)
		if known := (&learnedTool{shared: &shared.sharedShape}).visible(); l.isShowable(known.Schema) {
			t.Learned = known
		}
	}
	return l.addTool(t)
}

func (l *staticLoader) addTool(t *core.Tool) error {
	s, ok := l.sources[t.Server]
	if !ok {
		s = &serverSource{static: true}
		l.sources[t.Server] = s
	}
	if slices.ContainsFunc(s.tools, func(other *core.Tool) bool { return other.Name == t.Name }) {
		return fmt.Errorf("the server %q already has a tool %q", t.Server, t.Name)
	}
	s.tools = append(s.tools, t)
	return nil
}

// completeDefinition returns the name of the server that a definition belongs to. It also returns the definition, to
// which a name is added if it has none.
func completeDefinition(data []byte, category, file string) (server string, definition []byte, err error) {
	if !json.Valid(data) {
		return "", nil, fmt.Errorf("it is not JSON")
	}
	d := parseJSON(data, 1)
	if !d.isObject() {
		return "", nil, fmt.Errorf("it is not an object")
	}
	server = category
	if value, ok := d.findMember("server"); ok {
		if server, ok = unquoteJSON(value.raw); !ok || server == "" || len(server) > maxName || !isPrintable(server) {
			return "", nil, fmt.Errorf("its server is not a valid name")
		}
	}
	if _, ok := d.findMember("name"); ok {
		return server, d.raw, nil
	}
	separator := []byte{','}
	if len(d.items) == 0 {
		separator = nil
	}
	named := append(append([]byte(`{"name":`), appendString(nil, file)...), separator...)
	return server, append(named, d.raw[1:]...), nil
}
