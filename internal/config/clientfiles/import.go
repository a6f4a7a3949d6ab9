package clientfiles

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"retort/internal/base/seal"
	"retort/internal/core"
	"retort/internal/home"
)

// ImportState says what an import did with a server.
type ImportState string

// The states of a server after an import.
const (
	Added  ImportState = "added"  // the server was added to Retort's server file
	Same   ImportState = "same"   // Retort's server file already has the same server
	Exists ImportState = "exists" // Retort's server file has a different server of this name, which stays
	Left   ImportState = "left"   // the server was not imported; Reason says why
)

// FoundServer describes one server of a client and what an import did with it.
type FoundServer struct {
	Name      string      `json:"name"`
	As        string      `json:"as,omitempty"` // name in Retort's server file, if it differs from Name
	Client    string      `json:"client"`
	Scope     FileScope   `json:"scope"`
	File      string      `json:"file"`
	Transport string      `json:"transport,omitempty"`
	Disabled  bool        `json:"disabled,omitempty"`
	State     ImportState `json:"state"`
	Reason    string      `json:"reason,omitempty"`
	Notes     []string    `json:"notes,omitempty"` // what the user should do or know

	entry serverEntry
	raw   objectMember
	at    []string
}

// BrokenFile describes a file that cannot be read, or whose servers have an unknown form.
type BrokenFile struct {
	Client string `json:"client"`
	File   string `json:"file"`
	Error  string `json:"error"`
}

// ImportResult describes what an import did, or would do in a dry run.
type ImportResult struct {
	File     string        `json:"file"` // Retort's server file
	Changed  bool          `json:"changed"`
	DryRun   bool          `json:"dry_run,omitempty"`
	Servers  []FoundServer `json:"servers"`
	Broken   []BrokenFile  `json:"broken,omitempty"`
	Warnings []string      `json:"warnings,omitempty"`
}

// ImportOptions selects what to import, and into which file.
type ImportOptions struct {
	From    string // name of a client; "": all clients
	Project bool   // import the project's servers instead of the user's
	Out     string // absolute path of Retort's server file
	Home    string // Retort's data directory
	DryRun  bool
}

// ImportServers reads the servers of clients and adds them to Retort's server file. Servers that this file already
// has stay. A client's file that cannot be read is listed in Broken, and the servers in the other files are imported.
func ImportServers(e Environment, o ImportOptions) (*ImportResult, error) {
	all := AllClients()
	if o.From != "" {
		c, err := FindClient(o.From)
		if err != nil {
			return nil, err
		}
		all = []Client{*c}
	}
	result := &ImportResult{File: o.Out, DryRun: o.DryRun, Servers: []FoundServer{}}
	for i := range all {
		for _, p := range all[i].places {
			if o.Project && p.scope == User {
				continue
			}
			for _, path := range e.existingPaths(p) {
				servers, err := e.readServers(&all[i], p, path)
				if err != nil && !slices.ContainsFunc(result.Broken, func(b BrokenFile) bool { return b.File == path }) {
					result.Broken = append(result.Broken, BrokenFile{all[i].Name, path, core.AsError(err).Message})
				}
				result.Servers = append(result.Servers, servers...)
				if !o.Project {
					result.Servers = append(result.Servers, e.serversElsewhere(&all[i], p, path)...)
				}
			}
		}
	}
	unlock, err := lockJournals(home.Dir(o.Home), o.DryRun)
	if err != nil {
		return nil, err
	}
	defer unlock()
	for i := range result.Servers {
		if s := &result.Servers[i]; s.Scope == Project && !o.Project && s.State != Left {
			s.State, s.Reason = Left, "it belongs to a project: run retort import --project"
		}
	}
	return result, e.mergeServers(result, scopeOf(o.Project), false)
}

// serversElsewhere returns the servers in a user's file that belong to other projects than the current one. The
// import only lists them. To add them, the user must run the import in those projects.
func (e Environment) serversElsewhere(c *Client, p filePlace, path string) (all []FoundServer) {
	if !slices.Contains(p.at, "{dir}") {
		return nil
	}
	f, err := e.openFile(path, p.scope)
	if err != nil {
		return nil // already reported in Broken
	}
	for _, at := range e.otherProjects(c, p, f.src) {
		list, err := c.readServers(e, f, at)
		if err != nil {
			continue
		}
		for _, s := range list {
			s.Scope, s.State, s.Notes = p.scope, Left, nil
			s.Reason = "it is for " + at[slices.Index(p.at, "{dir}")] + " only: run retort import --project there"
			all = append(all, s)
		}
	}
	return all
}

func scopeOf(project bool) FileScope {
	if project {
		return Project
	}
	return User
}

// lockJournals acquires the file lock that keeps imports and installs from running at the same time. It waits up
// to ten seconds for it. A dry run needs no lock. The returned function releases the lock.
func lockJournals(data home.Dir, dry bool) (func(), error) {
	if dry {
		return func() {}, nil
	}
	dir := data.Clients()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fileError(dir, err)
	}
	unlock, err := seal.Lock(filepath.Join(dir, "lock"), 10*time.Second)
	if err != nil {
		return nil, fileError(dir, err)
	}
	return unlock, nil
}

// readServers returns the servers that a client lists in the file at path, which is one of the files of the place p.
func (e Environment) readServers(c *Client, p filePlace, path string) ([]FoundServer, error) {
	f, err := e.openFile(path, p.scope)
	if err != nil || !f.exists {
		return nil, err
	}
	list, err := c.readServers(e, f, e.serversKeyPath(c, p, f.src))
	for i := range list {
		list[i].Scope = p.scope
	}
	return list, err
}

// readServers returns the servers that a client's file lists. The keys in the argument at lead to the object that
// contains them.
func (c *Client) readServers(e Environment, f clientFile, at []string) ([]FoundServer, error) {
	whole, err := c.format.decodeAll(f.src)
	if err != nil {
		return nil, fileError(f.path, err)
	}
	if len(at) == 0 {
		return nil, nil
	}
	members, err := c.format.readMembers(f.src, at)
	if err != nil {
		return nil, fileError(f.path, err)
	}
	inputs := c.readInputs(whole)
	var list []FoundServer
	for _, m := range members {
		t := &placeholderTranslator{placeholderDialect: c.placeholderDialect, windows: e.GOOS == "windows", inputs: inputs}
		s := FoundServer{Name: m.Name, Client: c.Name, File: f.path, raw: m, at: at}
		s.entry, s.Reason = c.readEntry(m.Value, t)
		s.entry.disabled = s.entry.disabled || c.isTurnedOff(whole, m.Name)
		if s.entry.startsRetort(m.Name) {
			s.Reason = "it is Retort itself"
		}
		if why := invalidNameReason(m.Name); why != "" {
			s.Reason = why
		}
		if s.Notes = t.notes; s.Reason != "" {
			s.State, s.Notes = Left, nil
		} else {
			s.Transport, s.Disabled = s.entry.transportName(), s.entry.disabled
		}
		list = append(list, s)
	}
	return list, nil
}

// readInputs returns the inputs that VS Code prompts the user for.
func (c *Client) readInputs(whole map[string]any) []promptInput {
	items, _ := whole["inputs"].([]any)
	var list []promptInput
	for _, item := range items {
		o, _ := item.(map[string]any)
		text := func(key string) string { s, _ := o[key].(string); return s }
		list = append(list, promptInput{text("id"), text("description"), text("default")})
	}
	return list
}

// mergeServers adds the found servers to Retort's server file, except those whose State is already Left. If the name
// of a server is taken, the server is skipped or, if keepAll is set, added under another name. mergeServers records
// in the State of each server what was done with it.
func (e Environment) mergeServers(result *ImportResult, scope FileScope, keepAll bool) error {
	f, err := e.openFile(result.File, scope)
	if err != nil {
		return err
	}
	before, err := jsonFile{}.readMembers(f.src, []string{"mcpServers"})
	if err != nil {
		return fileError(f.path, err)
	}
	if len(before) == 0 {
		if theirs, err := (jsonFile{}).readMembers(f.src, []string{"servers"}); err != nil || len(theirs) > 0 {
			return core.Errorf(
				core.KindInvalidArguments, "clients.merge", "%s has its servers under a key other than mcpServers", f.path,
			).WithHint("choose another file with --out")
		}
	}
	m := &serverMerge{before: before, known: map[string]json.RawMessage{}, keepAll: keepAll}
	for _, b := range before {
		m.known[b.Name] = b.Value
	}
	secret := false
	for i := range result.Servers {
		s := &result.Servers[i]
		if s.State == Left {
			continue
		}
		if err := m.placeServer(s); err != nil {
			return err
		}
		if s.State == Added && len(s.entry.secretValues()) > 0 {
			secret = true
			result.Warnings = append(result.Warnings, fmt.Sprintf("%s contains credentials in plain text; put them into variables: \"${NAME}\"", s.nameInOurFile()))
		}
	}
	src, err := editOnce(jsonFile{}, f.src, []string{"mcpServers"}, nil, m.add)
	if err != nil {
		return fileError(f.path, err)
	}
	if result.Changed = len(m.add) > 0; !result.Changed || result.DryRun {
		return nil
	}
	if secret {
		f.mode &= 0o700
	}
	return f.writeFile(src)
}

// nameInOurFile returns the server's name in Retort's server file.
func (s *FoundServer) nameInOurFile() string {
	if s.As != "" {
		return s.As
	}
	return s.Name
}

type serverMerge struct {
	before  []objectMember
	known   map[string]json.RawMessage // entries in Retort's server file, including added ones, by name
	add     []objectMember
	keepAll bool
}

// placeServer finds a place for a server in Retort's server file: it chooses the name under which the server is
// added, or records that the file already has the same server or another one of this name.
func (m *serverMerge) placeServer(s *FoundServer) error {
	value, err := s.entry.toJSON()
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		name := s.Name
		if n > 0 {
			name += "-" + s.Client
		}
		if n > 1 {
			name += "-" + strconv.Itoa(n)
		}
		there, taken := m.known[name]
		switch {
		case taken && sameText(there, value):
			s.State = Same
		case taken && n == 0 && !m.keepAll && slices.Contains(memberNames(m.before), name) && !sameText(m.known[name+"-"+s.Client], value):
			s.State, s.Reason = Exists, "Retort's file has another server with this name"
		case taken:
			continue
		default:
			s.State = Added
			m.known[name] = value
			m.add = append(m.add, objectMember{Name: name, Value: value})
		}
		if n > 0 {
			s.As = name
		}
		return nil
	}
}

func sameText(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && sameJSON(x, y)
}
