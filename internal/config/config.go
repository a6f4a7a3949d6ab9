// Package config reads the configuration: the server files of MCP clients, which it never changes, and Retort's own
// settings. It reports all problems at once, each with file, line, column and the nearest valid name.
package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"retort/internal/core"
)

// Options tells Load where to look for files.
type Options struct {
	// Files lists the files given with --config: JSON files of clients, and at most one YAML file with settings. If
	// it is empty, the servers come from .mcp.json in Dir. If there is no such file, they come from retort/mcp.json
	// in UserConfigDir.
	Files []string
	Dir   string // absolute path of the working directory
	Home  string // data directory given with --home; "": Load chooses it
	// UserHome is the user's home directory. UserConfigDir is the user's configuration directory; if empty, it is
	// XDG_CONFIG_HOME, else .config in UserHome.
	UserHome      string
	UserConfigDir string
	Getenv        func(string) (string, bool) // returns environment variables; nil: no variable is set
	// Note, if set, is called for each file that Load looks for, with its absolute path and its content. The content
	// is nil if the file does not exist or cannot be read.
	Note NoteFunc
	// Again says that an earlier call of Load has read the same files. A file that can be read only once, such as
	// a pipe, then causes an error.
	Again bool
}

// NoteFunc receives the absolute path and the content of a file that Load looks for. The content is nil if the file
// does not exist or cannot be read.
type NoteFunc func(path string, content []byte)

// Config holds everything that Load read. It is not changed after Load.
type Config struct {
	Servers  []Server // in the order of the files; each name occurs once
	Settings Settings // all defaults are filled in
	Files    []string // absolute paths of the files that were read
	Home     string   // absolute path of the data directory, which need not exist yet
	Warnings []string
	// Stated holds the position of each setting that a file states, by its path, such as http.addr.
	Stated map[string]Position
}

// Load reads the configuration. Without any file it returns an empty Config. Its error is a *core.Error of kind
// invalid_arguments that wraps Problems. A server with an invalid entry does not fail Load: the error is in the
// server's Err.
func Load(o Options) (*Config, error) {
	l := newLoader(o)
	clients := l.clientPaths()
	for _, f := range clients {
		l.readClient(f)
	}
	for _, f := range l.settingsPaths(clients) {
		l.readYAML(f)
	}
	l.chooseSettings()
	l.joinServerSettings()
	l.config.Home = l.chooseHome()
	l.config.Settings = l.config.Settings.WithDefaults()
	if err := l.problems.sortedError(); err != nil {
		return nil, err
	}
	return l.config, nil
}

// ParseSettings parses the text of a retort.yaml without reading any file. Its errors use file as the name of the
// file; relative paths in the text start at dir.
func ParseSettings(file, dir string, text []byte, getenv func(string) (string, bool)) (Settings, error) {
	var s Settings
	var problems Problems
	n, err := parseYAML(text)
	if err != nil {
		problems.addSyntaxError(file, err)
		return Settings{}, problems.sortedError()
	}
	r := &nodeReader{file: file, dir: dir, vars: variableLookup{getenv: getenv}}
	s.reader().read(r, n)
	if err := r.problems.sortedError(); err != nil {
		return Settings{}, err
	}
	return s.WithDefaults(), nil
}

// loader holds the state of one call of Load.
type loader struct {
	options  Options
	config   *Config
	problems Problems
	defined  map[string]Position // position of each server's entry, by name
	found    []foundSettings
}

// foundSettings holds the settings as read from one file, not yet converted, and the position at which they begin.
type foundSettings struct {
	place Position
	file  string // absolute path
	node  *valueNode
	user  bool // the file is the user's own, not a project's
}

// readClient reads a server file of an MCP client.
func (l *loader) readClient(file string) {
	root, ok := l.parseFile(file, parseJSON)
	if !ok {
		return
	}
	r := l.newReader(file)
	if root.kind != objectKind {
		r.addMismatch(root, "an object with the key mcpServers")
		l.problems = append(l.problems, r.problems...)
		return
	}
	servers := root.findEntry("mcpServers")
	if servers == nil {
		servers = root.findEntry("servers") // VS Code
	}
	settings := root.findEntry("mcpCodeExecution")
	if settings != nil {
		l.found = append(l.found, foundSettings{r.positionOf(settings.key), file, settings.value, false})
	}
	switch {
	case servers != nil:
		l.readServers(file, servers)
	case settings == nil:
		l.warnNoServers(file, root)
	}
}

func (l *loader) warnNoServers(file string, root *valueNode) {
	w := l.displayPath(file) + ": there is no key mcpServers"
	for _, e := range root.entries {
		if near := core.NearestNames(e.key.text, []string{"mcpServers", "mcpCodeExecution"}, 1); len(near) > 0 {
			w += "; did you mean " + near[0] + " in place of " + e.key.text + "?"
		}
	}
	l.addWarning("%s", w)
}

func (l *loader) addWarning(format string, args ...any) {
	l.config.Warnings = append(l.config.Warnings, fmt.Sprintf(format, args...))
}

func (l *loader) readServers(file string, servers *nodeEntry) {
	r := l.newReader(file)
	if servers.value.kind != objectKind && servers.value.kind != nullKind {
		r.path = []string{servers.key.text}
		r.addMismatch(servers.value, "an object of servers by name")
	}
	for _, e := range servers.value.entries {
		before := len(r.problems)
		checkServerName(r, e.key)
		if earlier, twice := l.defined[e.key.text]; twice {
			r.addProblem(e.key, "give one of them another name", "the server %q is defined twice, first at %s", e.key.text, earlier)
		}
		if len(r.problems) > before {
			continue
		}
		l.defined[e.key.text] = r.positionOf(e.key)
		s := readServer(l.newReader(file), e.key, e.value)
		if isOurselves(s) {
			l.addWarning("%s: the server %q is Retort itself and was left out", s.Source, s.Name)
			continue
		}
		l.config.Servers = append(l.config.Servers, s)
	}
	l.problems = append(l.problems, r.problems...)
}

// readYAML reads a YAML file with settings.
func (l *loader) readYAML(f settingsFile) {
	if n, ok := l.parseFile(f.path, parseYAML); ok {
		l.found = append(l.found, foundSettings{Position{File: l.displayPath(f.path)}, f.path, n, f.user})
	}
}

// chooseSettings parses the settings that were found in the files. It adds a problem if more than one file has
// settings.
func (l *loader) chooseSettings() {
	if len(l.found) > 1 {
		places := make([]string, len(l.found))
		for i, f := range l.found {
			places[i] = f.place.String()
		}
		l.problems.addProblem(l.found[1].place, "keep only one of them", "there are settings in more than one place: %s", strings.Join(places, ", "))
	}
	for _, f := range l.found {
		r := l.newReader(f.file)
		r.dir = filepath.Dir(f.file)
		r.stated = map[string]Position{}
		if f.place.Line > 0 {
			r.path, r.prefix = []string{"mcpCodeExecution"}, 1
		}
		l.config.Settings = Settings{}
		l.config.Settings.reader().read(r, f.node)
		l.config.Stated = r.stated
		l.problems = append(l.problems, r.problems...)
		l.warnUnreadGroups()
	}
}

// warnUnreadGroups adds a warning for the entries of groups if the settings do not say which claim lists the groups.
func (l *loader) warnUnreadGroups() {
	s := l.config.Settings
	for _, name := range slices.Sorted(maps.Keys(s.Principals)) {
		if strings.HasPrefix(name, core.GroupPrefix) && s.HTTP.OAuth.Groups == "" {
			l.addWarning(
				"principals.%s restricts nobody who logs in with a token: the setting http.oauth.groups, which names the claim with the groups, is missing", name,
			)
		}
	}
}

// joinServerSettings applies the settings of each server to its entry. Settings for an unknown server are an error if
// servers and settings belong to the same project, because a misspelt name would silently drop a rule that denies
// tools. Otherwise they are a warning.
func (l *loader) joinServerSettings() {
	s := &l.config.Settings
	for i := range l.config.Servers {
		server := &l.config.Servers[i]
		extra, ok := s.Servers[server.Name]
		if !ok {
			continue
		}
		server.Category, server.Reveal = extra.Category, extra.PII.Reveal
		server.Disabled = server.Disabled || extra.Disabled
		server.OAuth = extra.OAuth.fillFrom(server.OAuth)
		if extra.Timeout > 0 {
			server.Timeout = extra.Timeout
		}
	}
	l.config.ApplyClientRules()
	if len(l.found) != 1 {
		return
	}
	r := l.newReader(l.found[0].file)
	names := l.serverNames()
	for _, key := range namedServers(l.found[0].node) {
		if _, known := l.defined[key.text]; known {
			continue
		}
		r.addProblem(key, suggestName(key.text, names), "settings for the server %q, which is not configured", shortenText(key.text))
	}
	if !l.found[0].user && len(s.ToolDefinitions) == 0 && len(names) > 0 {
		l.problems = append(l.problems, r.problems...)
		return
	}
	for _, p := range r.problems {
		l.addWarning("%s", p)
	}
}

// ApplyClientRules merges the tool rules in the clients' entries into the settings. Tools that an entry denies are
// denied in addition to those that the settings deny. The list of tools that an entry allows applies only if the
// settings have no such list for the server.
func (c *Config) ApplyClientRules() {
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

// namedServers returns the keys in a settings file that are names of servers, as nodes: those in the general settings
// and those in the settings of single principals.
func namedServers(settings *valueNode) []*valueNode {
	var keys []*valueNode
	add := func(n *valueNode) {
		if servers := n.findEntry("servers"); servers != nil {
			for _, e := range servers.value.entries {
				keys = append(keys, e.key)
			}
		}
	}
	add(settings)
	if principals := settings.findEntry("principals"); principals != nil {
		for _, e := range principals.value.entries {
			add(e.value)
		}
	}
	return keys
}

// serverNames returns the names of the servers in all files, sorted.
func (l *loader) serverNames() []string {
	var names []string
	for name := range l.defined {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
