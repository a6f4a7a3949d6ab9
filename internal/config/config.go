// Package config reads what people write: the files in which MCP clients keep
// their servers, unchanged, and the settings of Retort. It reports everything
// that is wrong at once, with file, line, column and the nearest right name.
package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"retort/internal/core"
)

// Options describes where to look.
type Options struct {
	// Files are those given with --config: clients' JSON files, and at most one
	// YAML file with settings. With none, the servers come from .mcp.json in Dir,
	// or, if there is no such file, from retort/mcp.json in UserConfigDir.
	Files []string
	Dir   string // working directory, absolute
	Home  string // given with --home; empty = chosen by Load
	// UserHome is the person's own directory, UserConfigDir their configuration
	// directory; empty = XDG_CONFIG_HOME, else .config in UserHome.
	UserHome      string
	UserConfigDir string
	Getenv        func(string) (string, bool) // nil = no variable is set
	// Note, if it is set, is told of each file that is looked for, with its absolute path and its
	// content; nil if it is not there or cannot be read.
	Note Note
	// Again says that the files were read before. One that can be read only once, such as a pipe, is an
	// error then.
	Again bool
}

// Note represents told of a file that is looked for: its absolute path and its content, nil if there is none.
type Note func(path string, content []byte)

// Config represents everything that was read. It is not changed after Load.
type Config struct {
	Servers  []Server // in the order of the files; each name once
	Settings Settings // complete
	Files    []string // absolute paths of what was read
	Home     string   // absolute; workspace, catalog and the rest live there. It may not exist yet.
	Warnings []string
}

// Load reads the configuration. No configuration at all is an empty Config. Its
// error is a *core.Error of kind invalid_arguments that holds Problems. A server
// whose own entry is wrong is no error: it carries its Err.
func Load(o Options) (*Config, error) {
	l := newLoader(o)
	clients := l.clients()
	for _, f := range clients {
		l.readClient(f)
	}
	for _, f := range l.settings(clients) {
		l.readYAML(f)
	}
	l.chooseSettings()
	l.join()
	l.config.Home = l.chooseHome()
	l.config.Settings = l.config.Settings.Defaults()
	if err := l.problems.err(); err != nil {
		return nil, err
	}
	return l.config, nil
}

// ParseSettings reads the text of a retort.yaml by itself; file names it in
// errors, and relative paths in it start at dir.
func ParseSettings(file, dir string, text []byte, getenv func(string) (string, bool)) (Settings, error) {
	var s Settings
	var problems Problems
	n, err := parseYAML(text)
	if err != nil {
		problems.syntax(file, err)
		return Settings{}, problems.err()
	}
	r := &reader{file: file, dir: dir, vars: variables{getenv: getenv}}
	s.read()(r, n)
	if err := r.problems.err(); err != nil {
		return Settings{}, err
	}
	return s.Defaults(), nil
}

// loader represents the state of one Load.
type loader struct {
	options  Options
	config   *Config
	problems Problems
	defined  map[string]Place // servers by name
	found    []foundSettings
}

// foundSettings represents a place where settings are written.
type foundSettings struct {
	place Place
	file  string // absolute
	node  *node
	user  bool // in the person's own directory: written for any servers
}

// readClient reads a client's file.
func (l *loader) readClient(file string) {
	root, ok := l.parse(file, parseJSON)
	if !ok {
		return
	}
	r := l.reader(file)
	if root.kind != objectKind {
		r.want(root, "an object with the key mcpServers")
		l.problems = append(l.problems, r.problems...)
		return
	}
	servers := root.find("mcpServers")
	if servers == nil {
		servers = root.find("servers") // VS Code
	}
	settings := root.find("mcpCodeExecution")
	if settings != nil {
		l.found = append(l.found, foundSettings{r.at(settings.key), file, settings.value, false})
	}
	switch {
	case servers != nil:
		l.readServers(file, servers)
	case settings == nil:
		l.warnNoServers(file, root)
	}
}

func (l *loader) warnNoServers(file string, root *node) {
	w := l.show(file) + ": there is no key mcpServers"
	for _, e := range root.entries {
		if near := core.NearestNames(e.key.text, []string{"mcpServers", "mcpCodeExecution"}, 1); len(near) > 0 {
			w += "; did you mean " + near[0] + " where it says " + e.key.text + "?"
		}
	}
	l.warn("%s", w)
}

func (l *loader) warn(format string, args ...any) {
	l.config.Warnings = append(l.config.Warnings, fmt.Sprintf(format, args...))
}

func (l *loader) readServers(file string, servers *entry) {
	r := l.reader(file)
	if servers.value.kind != objectKind && servers.value.kind != nullKind {
		r.path = []string{servers.key.text}
		r.want(servers.value, "an object of servers by name")
	}
	for _, e := range servers.value.entries {
		before := len(r.problems)
		serverName(r, e.key)
		if earlier, twice := l.defined[e.key.text]; twice {
			r.fail(e.key, "give one of them another name", "the server %q is defined twice, first at %s", e.key.text, earlier)
		}
		if len(r.problems) > before {
			continue
		}
		l.defined[e.key.text] = r.at(e.key)
		s := readServer(l.reader(file), e.key, e.value)
		if isOurselves(s) {
			l.warn("%s: the server %q is Retort itself and was left out", s.Source, s.Name)
			continue
		}
		l.config.Servers = append(l.config.Servers, s)
	}
	l.problems = append(l.problems, r.problems...)
}

// readYAML reads a file of settings.
func (l *loader) readYAML(f settingsFile) {
	if n, ok := l.parse(f.path, parseYAML); ok {
		l.found = append(l.found, foundSettings{Place{File: l.show(f.path)}, f.path, n, f.user})
	}
}

// chooseSettings reads the one place where settings are written.
func (l *loader) chooseSettings() {
	if len(l.found) > 1 {
		places := make([]string, len(l.found))
		for i, f := range l.found {
			places[i] = f.place.String()
		}
		l.problems.add(l.found[1].place, "keep one of them", "settings are written in more than one place: %s", strings.Join(places, ", "))
	}
	for _, f := range l.found {
		r := l.reader(f.file)
		r.dir = filepath.Dir(f.file)
		if f.place.Line > 0 {
			r.path = []string{"mcpCodeExecution"}
		}
		l.config.Settings = Settings{}
		l.config.Settings.read()(r, f.node)
		l.problems = append(l.problems, r.problems...)
	}
}

// join gives each server what the settings say about it. Settings for a server
// that does not exist are an error where both were written together, since a
// misspelt name would quietly drop a deny; else a warning.
func (l *loader) join() {
	s := &l.config.Settings
	for i := range l.config.Servers {
		server := &l.config.Servers[i]
		extra, ok := s.Servers[server.Name]
		if !ok {
			continue
		}
		server.Category, server.Reveal = extra.Category, extra.PII.Reveal
		server.Disabled = server.Disabled || extra.Disabled
		server.OAuth = extra.OAuth.with(server.OAuth)
		if extra.Timeout > 0 {
			server.Timeout = extra.Timeout
		}
	}
	l.config.Restrict()
	if len(l.found) != 1 {
		return
	}
	r := l.reader(l.found[0].file)
	names := l.names()
	for _, key := range namedServers(l.found[0].node) {
		if _, known := l.defined[key.text]; known {
			continue
		}
		r.fail(key, suggest(key.text, names), "settings for the server %q, which is not configured", shorten(key.text))
	}
	if !l.found[0].user && len(s.ToolDefinitions) == 0 && len(names) > 0 {
		l.problems = append(l.problems, r.problems...)
		return
	}
	for _, p := range r.problems {
		l.warn("%s", p)
	}
}

// Restrict makes the settings hold what entries say of their tools: a deny is added to
// those of the settings, and an allow counts where the settings have none.
func (c *Config) Restrict() {
	for _, server := range c.Servers {
		if len(server.Allow)+len(server.Deny) == 0 {
			continue
		}
		if c.Settings.Servers == nil {
			c.Settings.Servers = map[string]ServerSettings{}
		}
		s := c.Settings.Servers[server.Name]
		s.Deny = slices.Concat(s.Deny, server.Deny)
		if s.Allow == nil {
			s.Allow = server.Allow
		}
		c.Settings.Servers[server.Name] = s
	}
}

// namedServers returns the keys in settings that name servers.
func namedServers(settings *node) []*node {
	var keys []*node
	add := func(n *node) {
		if servers := n.find("servers"); servers != nil {
			for _, e := range servers.value.entries {
				keys = append(keys, e.key)
			}
		}
	}
	add(settings)
	if principals := settings.find("principals"); principals != nil {
		for _, e := range principals.value.entries {
			add(e.value)
		}
	}
	return keys
}

// names returns those of all servers of the files, sorted.
func (l *loader) names() []string {
	var names []string
	for name := range l.defined {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
