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

// State describes what an import did with a server.
type State string

// The states of a server.
const (
	Added  State = "added"  // written into our file
	Same   State = "same"   // our file has it already
	Exists State = "exists" // our file has another one of this name, which wins
	Left   State = "left"   // it stays where it is; Reason says why
)

// Server describes one server of a client and what an import did with it.
type Server struct {
	Name      string   `json:"name"`
	As        string   `json:"as,omitempty"` // its name in our file, if it is another
	Client    string   `json:"client"`
	Scope     Scope    `json:"scope"`
	File      string   `json:"file"`
	Transport string   `json:"transport,omitempty"`
	Disabled  bool     `json:"disabled,omitempty"`
	State     State    `json:"state"`
	Reason    string   `json:"reason,omitempty"`
	Notes     []string `json:"notes,omitempty"` // what a person should do or know

	entry entry
	raw   member
	at    []string
}

// Broken describes a file that cannot be read, or whose servers have an unknown form.
type Broken struct {
	Client string `json:"client"`
	File   string `json:"file"`
	Error  string `json:"error"`
}

// Imported describes what an import did, or would do in a dry run.
type Imported struct {
	File     string   `json:"file"` // ours
	Changed  bool     `json:"changed"`
	DryRun   bool     `json:"dry_run,omitempty"`
	Servers  []Server `json:"servers"`
	Broken   []Broken `json:"broken,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// ImportOptions selects what to import, and into which file.
type ImportOptions struct {
	From    string // a client's name; empty = all
	Project bool   // the project's servers instead of the person's own
	Out     string // our file, absolute
	Home    string // of Retort's own files
	DryRun  bool
}

// Import reads the servers of clients and adds them to Retort's server file. Entries already there stay. A client's
// file that cannot be read is listed in Broken, and the others are imported.
func Import(e Environment, o ImportOptions) (*Imported, error) {
	all := Table()
	if o.From != "" {
		c, err := Find(o.From)
		if err != nil {
			return nil, err
		}
		all = []Client{*c}
	}
	result := &Imported{File: o.Out, DryRun: o.DryRun, Servers: []Server{}}
	for i := range all {
		for _, p := range all[i].places {
			if o.Project && p.scope == User {
				continue
			}
			for _, path := range e.paths(p) {
				servers, err := e.servers(&all[i], p, path)
				if err != nil && !slices.ContainsFunc(result.Broken, func(b Broken) bool { return b.File == path }) {
					result.Broken = append(result.Broken, Broken{all[i].Name, path, core.AsError(err).Message})
				}
				result.Servers = append(result.Servers, servers...)
				if !o.Project {
					result.Servers = append(result.Servers, e.elsewhere(&all[i], p, path)...)
				}
			}
		}
	}
	unlock, err := lock(home.Dir(o.Home), o.DryRun)
	if err != nil {
		return nil, err
	}
	defer unlock()
	for i := range result.Servers {
		if s := &result.Servers[i]; s.Scope == Project && !o.Project && s.State != Left {
			s.State, s.Reason = Left, "it is a project's: import --project"
		}
	}
	return result, e.merge(result, scopeOf(o.Project), false)
}

// elsewhere returns the servers that a user's file has for other projects. They are only listed; to import them, run
// the import in those projects.
func (e Environment) elsewhere(c *Client, p place, path string) (all []Server) {
	if !slices.Contains(p.at, "{dir}") {
		return nil
	}
	f, err := e.open(path, p.scope)
	if err != nil {
		return nil // already reported in Broken
	}
	for _, at := range e.others(c, p, f.src) {
		list, err := c.servers(e, f, at)
		if err != nil {
			continue
		}
		for _, s := range list {
			s.Scope, s.State, s.Notes = p.scope, Left, nil
			s.Reason = "it is for " + at[slices.Index(p.at, "{dir}")] + " alone: import --project there"
			all = append(all, s)
		}
	}
	return all
}

func scopeOf(project bool) Scope {
	if project {
		return Project
	}
	return User
}

// lock makes a second import or install wait, for up to ten seconds.
func lock(data home.Dir, dry bool) (func(), error) {
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

// servers returns the servers of one place of a client in one file.
func (e Environment) servers(c *Client, p place, path string) ([]Server, error) {
	f, err := e.open(path, p.scope)
	if err != nil || !f.exists {
		return nil, err
	}
	list, err := c.servers(e, f, e.keys(c, p, f.src))
	for i := range list {
		list[i].Scope = p.scope
	}
	return list, err
}

// servers returns the servers of a file at the key path at.
func (c *Client) servers(e Environment, f file, at []string) ([]Server, error) {
	whole, err := c.format.decode(f.src)
	if err != nil {
		return nil, fileError(f.path, err)
	}
	if len(at) == 0 {
		return nil, nil
	}
	members, err := c.format.members(f.src, at)
	if err != nil {
		return nil, fileError(f.path, err)
	}
	inputs := c.inputs(whole)
	var list []Server
	for _, m := range members {
		t := &translator{dialect: c.dialect, windows: e.GOOS == "windows", inputs: inputs}
		s := Server{Name: m.Name, Client: c.Name, File: f.path, raw: m, at: at}
		s.entry, s.Reason = c.read(m.Value, t)
		s.entry.disabled = s.entry.disabled || c.off(whole, m.Name)
		if s.entry.ourselves(m.Name) {
			s.Reason = "it is Retort itself"
		}
		if why := badName(m.Name); why != "" {
			s.Reason = why
		}
		if s.Notes = t.notes; s.Reason != "" {
			s.State, s.Notes = Left, nil
		} else {
			s.Transport, s.Disabled = s.entry.transport(), s.entry.disabled
		}
		list = append(list, s)
	}
	return list, nil
}

// inputs returns the inputs that VS Code prompts the user for.
func (c *Client) inputs(whole map[string]any) []input {
	items, _ := whole["inputs"].([]any)
	var list []input
	for _, item := range items {
		o, _ := item.(map[string]any)
		text := func(key string) string { s, _ := o[key].(string); return s }
		list = append(list, input{text("id"), text("description"), text("default")})
	}
	return list
}

// merge sets the State of each server that is not Left, and writes Retort's server file. With keepAll, a server whose
// name is taken is added under another name instead of being skipped.
func (e Environment) merge(result *Imported, scope Scope, keepAll bool) error {
	f, err := e.open(result.File, scope)
	if err != nil {
		return err
	}
	before, err := jsonFile{}.members(f.src, []string{"mcpServers"})
	if err != nil {
		return fileError(f.path, err)
	}
	if len(before) == 0 {
		if theirs, err := (jsonFile{}).members(f.src, []string{"servers"}); err != nil || len(theirs) > 0 {
			return core.Errorf(
				core.KindInvalidArguments, "clients.merge", "%s has its servers below another key than mcpServers", f.path,
			).WithHint("name another file with --out")
		}
	}
	m := &merging{before: before, known: map[string]json.RawMessage{}, keepAll: keepAll}
	for _, b := range before {
		m.known[b.Name] = b.Value
	}
	secret := false
	for i := range result.Servers {
		s := &result.Servers[i]
		if s.State == Left {
			continue
		}
		if err := m.place(s); err != nil {
			return err
		}
		if s.State == Added && len(s.entry.secrets()) > 0 {
			secret = true
			result.Warnings = append(result.Warnings, fmt.Sprintf("%s has credentials written out; put them into variables: \"${NAME}\"", s.name()))
		}
	}
	src, err := edited(jsonFile{}, f.src, []string{"mcpServers"}, nil, m.add)
	if err != nil {
		return fileError(f.path, err)
	}
	if result.Changed = len(m.add) > 0; !result.Changed || result.DryRun {
		return nil
	}
	if secret {
		f.mode &= 0o700
	}
	return f.write(src)
}

// name returns the server's name in Retort's server file.
func (s *Server) name() string {
	if s.As != "" {
		return s.As
	}
	return s.Name
}

type merging struct {
	before  []member
	known   map[string]json.RawMessage // by name, with what is added
	add     []member
	keepAll bool
}

// place chooses the name under which a server is added to Retort's server file.
func (m *merging) place(s *Server) error {
	value, err := s.entry.json()
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
		case taken && n == 0 && !m.keepAll && slices.Contains(names(m.before), name) && !sameText(m.known[name+"-"+s.Client], value):
			s.State, s.Reason = Exists, "our file has another server of this name"
		case taken:
			continue
		default:
			s.State = Added
			m.known[name] = value
			m.add = append(m.add, member{Name: name, Value: value})
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
