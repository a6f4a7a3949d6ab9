// Package clientfiles imports servers from the configuration files of MCP clients and installs Retort into these
// files. It reads and writes files and starts no processes.
package clientfiles

import (
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"retort/internal/core"
)

// FileScope says where the servers that a client's file lists can be used: by the user in all projects, or in one
// project only.
type FileScope string

// The scopes of a file. Local means the part of a user's own file that applies to one project.
const (
	User    FileScope = "user"
	Local   FileScope = "local"
	Project FileScope = "project"
)

// Client describes an MCP client that lists its servers in a file.
type Client struct {
	Name  string // as in the command "retort install cursor"
	Title string // product name, as its maker spells it

	format fileFormat
	placeholderDialect
	fields map[string]fieldMeaning // meaning of an entry's fields, by key; other fields are kept without effect
	entry  func(command string, args []string) map[string]any
	// problem returns why an entry cannot be imported, or "" if it can.
	problem func(entry map[string]any) string
	places  []filePlace
	// disabled reports whether a server is disabled by a part of the file other than the server's entry. The function
	// is nil for clients whose files have no such part.
	disabled func(whole map[string]any, name string) bool
}

func (c *Client) isTurnedOff(whole map[string]any, name string) bool {
	return c.disabled != nil && c.disabled(whole, name)
}

// filePlace describes a place where a client stores its list of servers: the paths of the possible files, and the
// keys that lead to the list in a file. If several of the files exist, only the first one counts.
type filePlace struct {
	scope FileScope
	files []string // patterns such as "{home}/.cursor/mcp.json"; * matches any one folder
	at    []string // keys that lead to the object of servers; "{dir}" stands for the project's folder
	// readOnly says that Retort reads the files at this place but never changes them.
	readOnly bool
}

// Environment holds what determines the paths of clients' files, such as the operating system and the user's home
// directory.
type Environment struct {
	GOOS     string // operating system, in the form of runtime.GOOS
	Getenv   func(string) string
	UserHome string // absolute path
	Dir      string // absolute path of the project
}

// FindClient returns the client with this name, or an error whose hint lists all names.
func FindClient(name string) (*Client, error) {
	all := AllClients()
	known := make([]string, len(all))
	for i := range all {
		if all[i].Name == name {
			return &all[i], nil
		}
		known[i] = all[i].Name
	}
	err := core.Errorf(core.KindInvalidArguments, "clients.find", "there is no client %q", name)
	if near := core.NearestNames(name, known, 1); len(near) > 0 {
		return nil, err.WithHint("did you mean %s? The known clients are %s", near[0], strings.Join(known, ", "))
	}
	return nil, err.WithHint("the known clients are %s", strings.Join(known, ", "))
}

// rootFolder returns the directory with which the path of a client's file begins. The argument name says which: for
// example, "project" in the path {project}/.mcp.json stands for the directory of the project.
func (e Environment) rootFolder(name string) string {
	or := func(variable string, fallback ...string) string {
		if dir := e.Getenv(variable); dir != "" && filepath.IsAbs(dir) {
			return dir
		}
		return filepath.Join(append([]string{e.UserHome}, fallback...)...)
	}
	switch name {
	case "project":
		return e.Dir
	case "claude":
		return or("CLAUDE_CONFIG_DIR")
	case "codex":
		return or("CODEX_HOME", ".codex")
	case "config": // by the XDG convention, on every system
		return or("XDG_CONFIG_HOME", ".config")
	case "app": // by the convention of the system
		switch e.GOOS {
		case "windows":
			return or("APPDATA", "AppData", "Roaming")
		case "darwin":
			return filepath.Join(e.UserHome, "Library", "Application Support")
		}
		return or("XDG_CONFIG_HOME", ".config")
	case "zed":
		if e.GOOS == "windows" {
			return filepath.Join(or("APPDATA", "AppData", "Roaming"), "Zed")
		}
		if e.GOOS == "darwin" {
			return filepath.Join(e.UserHome, ".config", "zed")
		}
		return filepath.Join(or("XDG_CONFIG_HOME", ".config"), "zed")
	case "goose":
		if e.GOOS == "windows" {
			return filepath.Join(or("APPDATA", "AppData", "Roaming"), "Block", "goose", "config")
		}
		return filepath.Join(or("XDG_CONFIG_HOME", ".config"), "goose")
	}
	return e.UserHome
}

// existingPaths returns the paths of a client's files that exist. The argument p lists patterns for these paths. A
// pattern with * may match several files, all of which count. Of the files that the other patterns name, only the
// first existing one counts.
func (e Environment) existingPaths(p filePlace) []string {
	var found []string
	for _, pattern := range p.files {
		name, rest, _ := strings.Cut(strings.TrimPrefix(pattern, "{"), "}/")
		file := filepath.Join(e.rootFolder(name), filepath.FromSlash(rest))
		if strings.Contains(pattern, "*") {
			matches, _ := filepath.Glob(escapeGlob(e.rootFolder(name)) + string(filepath.Separator) + filepath.FromSlash(rest))
			found = append(found, matches...)
			continue
		}
		if len(found) == 0 && pathExists(file) {
			found = append(found, file)
		}
	}
	return found
}

// firstPath returns the path of the file in which a client stores servers, at the place p: the first file that exists
// there or, if none exists, the file to create.
func (e Environment) firstPath(p filePlace) string {
	if found := e.existingPaths(p); len(found) > 0 {
		return found[0]
	}
	name, rest, _ := strings.Cut(strings.TrimPrefix(p.files[0], "{"), "}/")
	return filepath.Join(e.rootFolder(name), filepath.FromSlash(rest))
}

// otherProjects returns where a user's file lists servers for projects other than the current one. For each of
// these projects it returns the keys that lead to its servers, sorted by project.
func (e Environment) otherProjects(c *Client, p filePlace, src []byte) (all [][]string) {
	n := slices.Index(p.at, "{dir}")
	whole, err := c.format.decodeAll(src)
	if n < 0 || err != nil {
		return nil
	}
	projects, _ := objectAt(whole, p.at[:n]) // what is no object has none
	own := e.serversKeyPath(c, p, src)
	for _, key := range slices.Sorted(maps.Keys(projects)) {
		at := slices.Concat(p.at[:n], []string{key}, p.at[n+1:])
		if o, err := objectAt(whole, at); err == nil && len(o) > 0 && !slices.Equal(at, own) {
			all = append(all, at)
		}
	}
	return all
}

func escapeGlob(s string) string {
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(s)
}

func pathExists(file string) bool {
	_, err := statLink(file)
	return !errors.Is(err, fs.ErrNotExist)
}

// serversKeyPath returns the key path to the servers in a file: the keys that lead to the object that contains them.
// If the file lists servers for each project folder, the path leads to the servers for Dir or, if there are none, for
// the nearest folder above Dir that has servers. If there is no such folder, the path is nil.
func (e Environment) serversKeyPath(c *Client, p filePlace, src []byte) []string {
	n := slices.Index(p.at, "{dir}")
	if n < 0 {
		return p.at
	}
	whole, err := c.format.decodeAll(src)
	if err != nil {
		return nil
	}
	projects, err := objectAt(whole, p.at[:n])
	if err != nil {
		return nil
	}
	for dir := e.Dir; ; dir = filepath.Dir(dir) {
		for key := range projects {
			at := slices.Concat(p.at[:n], []string{key}, p.at[n+1:])
			if o, err := objectAt(whole, at); filepath.ToSlash(key) == filepath.ToSlash(dir) && err == nil && len(o) > 0 {
				return at
			}
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}
