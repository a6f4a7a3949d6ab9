// Package catalog stores the data about each tool: its definition as received from the server, a hash of it (the
// pin), its identifiers and its category. Definitions are kept on disk, so that they are known before any server has
// started.
package catalog

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"retort/internal/catalog/sanitize"
	"retort/internal/core"
)

// Catalog holds the tool definitions of all known servers. It is safe for concurrent use.
type Catalog struct {
	dir     string // folder of the stored definitions; "": memory only
	counts  *tokenCounts
	learner *shapeLearner // learns result types; nil: nothing is learned
	book    *trustStore
	changes func(server string) core.ChangePolicy
	sealed  func(server, property string) string // see Options.Sealed; may be nil
	scanner func() *sanitize.TextScanner

	// writing is held from a change in memory until the file is written, so that files change in the same order.
	writing   sync.Mutex
	notifying sync.Mutex // held while listeners are called

	current atomic.Pointer[core.Toolset]  // cached toolset; nil: something has changed since it was built
	watched atomic.Pointer[[]watchedFile] // files with trusted definitions of the servers that have changed tools

	mu         sync.Mutex
	servers    map[string]*serverSource
	static     map[string]*serverSource
	trusts     map[string]*serverTrust // trusted definitions, by server
	kept       map[string]bool         // servers in the toolset; nil: all
	categories map[string]string
	problems   map[string][]CatalogProblem // by name of the server or path of the file
	listeners  map[int]func(*core.Toolset)
	lastID     int

	staticProblems []CatalogProblem
}

// serverSource holds the tools of one server. It also says whether their definitions come from the running server,
// from its stored file or from static files.
type serverSource struct {
	instructions string                // as the server sent them
	shown        string                // instructions without the suspicious parts
	flags        []core.DefinitionFlag // suspicious parts of the instructions
	tools        []*core.Tool          // without categories, unless static
	cached       bool
	static       bool

	category    string       // category of the server
	categorized []*core.Tool // copies of tools with their categories; nil until needed
}

// ListingChange says how a new list of a server's tools differs from the previous one.
type ListingChange struct {
	Added, Removed []string         // names of tools, in the order of the list that has them
	Changed        []string         // names of tools whose pin (definition hash) has changed
	Unchanged      int              // number of unchanged tools
	Problems       []CatalogProblem // definitions that were skipped or used only in part
}

// Options determines where a catalog is stored and how it treats changed tools.
type Options struct {
	Dir string // folder, created if missing; "": nothing is stored
	// Key is the path of the key that seals the trusted definitions. The key is created when first needed. No server
	// may be able to read it. If the path is empty, trusted definitions are not stored.
	Key string
	// Changes returns how tools of a server are treated when their definition differs from the trusted one. If it is
	// nil, such tools are blocked.
	Changes func(server string) core.ChangePolicy
	// Sealed returns the type of personal data, such as "email", for which the values of a property in a server's
	// results are hidden from programs. It returns "" if programs see the values. If Sealed is nil, nothing is
	// hidden.
	Sealed func(server, property string) string
	// Learn makes the catalog infer the result types of tools that do not declare them.
	Learn bool
}

// Open reads a catalog. Unreadable files are ignored and reported by ListProblems.
func Open(o Options) (*Catalog, error) {
	dir := o.Dir
	c := &Catalog{
		dir: dir, counts: newCounts(), book: &trustStore{dir: dir, key: o.Key}, changes: o.Changes, sealed: o.Sealed,
		scanner: sync.OnceValue(sanitize.New),
		servers: map[string]*serverSource{}, static: map[string]*serverSource{}, trusts: map[string]*serverTrust{},
		categories: map[string]string{}, problems: map[string][]CatalogProblem{}, listeners: map[int]func(*core.Toolset){},
	}
	if o.Learn {
		c.learner = newLearner(c)
	}
	if c.changes == nil {
		c.changes = func(string) core.ChangePolicy { return core.ChangesBlock }
	}
	if dir == "" {
		return c, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, core.Errorf(core.KindInternal, "catalog.open", "cannot store tool definitions: %w", err).WithHint(
			"make %s writable, or choose another data directory with --home", filepath.Dir(dir),
		)
	}
	removeLeftovers(dir, time.Now())
	if err := c.loadServers(); err != nil {
		return nil, core.Errorf(core.KindInternal, "catalog.open", "cannot read the stored tool definitions: %w", err)
	}
	c.learner.loadShapes()
	c.counts.path = filepath.Join(dir, countsFile)
	if err := c.counts.loadFile(); err != nil {
		c.addProblem(CatalogProblem{File: c.counts.path, Message: "it is ignored: " + err.Error()})
	}
	return c, nil
}

// BrokenFiles returns the definition files below dir that cannot be read. The catalog ignores such files and writes
// them again when their server is listed.
func BrokenFiles(dir string) (files []string) {
	all, _ := filepath.Glob(filepath.Join(dir, "*"+toolsSuffix))
	for _, path := range all {
		if _, _, err := readFile(path); err != nil {
			files = append(files, path)
		}
	}
	return files
}

// loadServers reads the files of all servers.
func (c *Catalog) loadServers() error {
	files, err := os.ReadDir(c.dir)
	if err != nil {
		return err
	}
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), toolsSuffix) {
			continue
		}
		path := filepath.Join(c.dir, file.Name())
		server, body, err := readFile(path)
		if err != nil {
			c.addProblem(CatalogProblem{File: path, Message: "it is ignored: " + err.Error()})
			continue
		}
		c.trusts[server] = c.book.readTrust(server)
		tools, problems := readStored(server, body, c.trusts[server], c.scanner)
		c.servers[server] = c.newSource(body.Instructions, tools)
		c.servers[server].cached = true
		c.problems[server] = problems
	}
	return nil
}

// Close stores unsaved data.
func (c *Catalog) Close() error {
	c.learner.stopLearning()
	return c.counts.saveFile(c.knownPins())
}

// ReplaceListing replaces the tools of a server by the definitions that the server sent. It skips broken
// definitions; if several have the same name, it uses the first. Both are reported in the ListingChange and by
// ListProblems, and so are errors of writing to disk. If ReplaceListing returns an error, it has changed nothing.
func (c *Catalog) ReplaceListing(server string, definitions []json.RawMessage, instructions string) (ListingChange, error) {
	if server == "" {
		return ListingChange{}, core.Errorf(core.KindInternal, "catalog.replace", "a server needs a name")
	}
	tools, problems := readAll(server, definitions, c.scanner())
	next := c.newSource(instructions, tools)
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mergeListing(server, tools)
	c.mu.Lock()
	change := compareTools(c.servers[server], tools)
	change.Problems = problems
	c.servers[server] = next
	c.problems[server] = problems
	c.learner.dropOutdated(server, tools)
	c.invalidateToolset()
	c.mu.Unlock()
	if err := c.writeServer(server, next); err != nil {
		c.addProblem(CatalogProblem{Server: server, Message: "its definitions are not stored for the next start: " + err.Error()})
	}
	c.notifyChange()
	return change, nil
}

func (c *Catalog) newSource(instructions string, tools []*core.Tool) *serverSource {
	s := &serverSource{instructions: instructions, tools: assignIdentifiers(tools)}
	if instructions != "" {
		s.shown, s.flags = cleanText("instructions", instructions, c.scanner())
	}
	return s
}

// compareTools returns how a new list of a server's tools differs from the known one.
func compareTools(known *serverSource, tools []*core.Tool) (change ListingChange) {
	before := map[string]string{}
	if known != nil {
		for _, t := range known.tools {
			before[t.Name] = t.Pin
		}
	}
	for _, t := range tools {
		switch pin, ok := before[t.Name]; {
		case !ok:
			change.Added = append(change.Added, t.Name)
		case pin != t.Pin:
			change.Changed = append(change.Changed, t.Name)
		default:
			change.Unchanged++
		}
		delete(before, t.Name)
	}
	if known != nil {
		for _, t := range known.tools {
			if _, gone := before[t.Name]; gone {
				change.Removed = append(change.Removed, t.Name)
			}
		}
	}
	return change
}

func (c *Catalog) writeServer(server string, s *serverSource) error {
	if c.dir == "" {
		return nil
	}
	b := fileBody{Instructions: s.instructions}
	for _, t := range s.tools {
		b.Tools, b.Pins = append(b.Tools, t.Raw), append(b.Pins, t.Pin)
	}
	data, err := encodeFile(server, b)
	if err != nil {
		return err
	}
	path := filepath.Join(c.dir, fileName(server))
	if hasContents(path, data) {
		return nil
	}
	return writeFile(path, data)
}

// ForgetServer removes everything about a server, including its files.
func (c *Catalog) ForgetServer(server string) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	delete(c.servers, server)
	delete(c.problems, server)
	c.learner.dropOutdated(server, nil)
	c.invalidateToolset()
	c.mu.Unlock()
	c.notifyChange()
	if c.dir == "" {
		return nil
	}
	if err := errors.Join(
		removeFile(filepath.Join(c.dir, fileName(server))), removeFile(filepath.Join(c.dir, shapesName(server))),
	); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return core.Errorf(core.KindInternal, "catalog.forget", "cannot remove the definitions of %s: %w", server, err)
	}
	return nil
}

// UnlistServer removes the tools of a server until it is listed again. Trusted definitions and files on disk stay.
func (c *Catalog) UnlistServer(server string) {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	delete(c.servers, server)
	delete(c.problems, server)
	c.invalidateToolset()
	c.mu.Unlock()
	c.notifyChange()
}

// RejudgeAll compares all tools with the trusted definitions again. It must be called when Options.Changes may return
// another result.
func (c *Catalog) RejudgeAll() {
	c.mu.Lock()
	for _, s := range c.servers {
		s.categorized = nil
	}
	c.invalidateToolset()
	c.mu.Unlock()
	c.notifyChange()
}

// KeepServers limits the toolset to these servers and to the static definitions, which LoadStatic has read from
// files. It does not delete the stored files of other servers.
func (c *Catalog) KeepServers(servers []string) {
	c.mu.Lock()
	c.kept = map[string]bool{}
	for _, s := range servers {
		c.kept[s] = true
	}
	c.invalidateToolset()
	c.mu.Unlock()
	c.notifyChange()
}

// SetCategory sets the category of a server and all its tools. An empty category means that it is derived from their
// names.
func (c *Catalog) SetCategory(server, category string) {
	c.mu.Lock()
	if category = strings.ToLower(strings.TrimSpace(category)); category == "" {
		delete(c.categories, server)
	} else {
		c.categories[server] = category
	}
	for _, sources := range []map[string]*serverSource{c.servers, c.static} {
		if s, ok := sources[server]; ok {
			s.categorized = nil
		}
	}
	c.invalidateToolset()
	c.mu.Unlock()
	c.notifyChange()
}

// OnChange calls f with the new toolset after changes, until stop is called. Calls do not overlap, and one call may
// cover several changes. f must not change the catalog.
func (c *Catalog) OnChange(f func(*core.Toolset)) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastID++
	id := c.lastID
	c.listeners[id] = f
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.listeners, id)
	}
}

func (c *Catalog) notifyChange() {
	c.notifying.Lock()
	defer c.notifying.Unlock()
	c.mu.Lock()
	ids := slices.Sorted(maps.Keys(c.listeners))
	listeners := make([]func(*core.Toolset), len(ids))
	for i, id := range ids {
		listeners[i] = c.listeners[id]
	}
	c.mu.Unlock()
	for _, f := range listeners {
		f(c.Toolset())
	}
}

// ListProblems returns the problems with stored servers, files and static definitions that retort doctor reports,
// sorted.
func (c *Catalog) ListProblems() []CatalogProblem {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []CatalogProblem
	for _, about := range slices.Sorted(maps.Keys(c.problems)) {
		for _, p := range c.problems[about] {
			if p.File != "" || c.kept == nil || c.kept[p.Server] {
				all = append(all, p)
			}
		}
	}
	return append(all, c.staticProblems...)
}

func (c *Catalog) addProblem(p CatalogProblem) {
	c.mu.Lock()
	defer c.mu.Unlock()
	about := p.Server
	if p.File != "" {
		about = p.File
	}
	c.problems[about] = append(slices.Clip(c.problems[about]), p)
}

// TokenCount returns the stored token count of the definition with this pin (hash).
func (c *Catalog) TokenCount(pin string) (int, bool) { return c.counts.tokenCount(pin) }

// SetTokenCount stores the token count of the definition with this pin (hash). It is written to disk from time to
// time and by Close. A count that is lost is computed again.
func (c *Catalog) SetTokenCount(pin string, tokens int) {
	if c.counts.setCount(pin, tokens) {
		_ = c.counts.saveFile(c.knownPins())
	}
}

// knownPins returns the pins (definition hashes) of all known tools.
func (c *Catalog) knownPins() map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	pins := map[string]bool{}
	for _, sources := range []map[string]*serverSource{c.servers, c.static} {
		for _, s := range sources {
			for _, t := range s.tools {
				pins[t.Pin] = true
			}
		}
	}
	return pins
}
