package clientfiles

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"retort/internal/core"
	"retort/internal/home"
)

// InstallOptions configures an install or uninstall for one client.
type InstallOptions struct {
	Client  string
	Project bool     // into the project's file instead of the person's own
	Keep    []string // servers that stay where they are
	Out     string   // our file, absolute
	Home    string   // of Retort's own files: journals and backups
	Command string   // how the client starts Retort
	Args    []string
	DryRun  bool
}

// Installed describes what an install or an uninstall did, or would do in a dry run.
type Installed struct {
	Client  string `json:"client"`
	File    string `json:"file"` // the client's
	Changed bool   `json:"changed"`
	DryRun  bool   `json:"dry_run,omitempty"`
	// Restored is the result of an uninstall. "exact" means that the file was restored byte for byte, "merged" that
	// it had been changed in between, and "none" that Retort was not in it.
	Restored string   `json:"restored,omitempty"`
	Moved    []Server `json:"moved,omitempty"`    // into our file
	PutBack  []string `json:"put_back,omitempty"` // servers, by name
	Kept     []Kept   `json:"kept,omitempty"`     // in the client's file
	Still    []string `json:"still,omitempty"`    // entries that start Retort and were not taken out, by name
	Ours     string   `json:"ours,omitempty"`     // our file
	Warnings []string `json:"warnings,omitempty"`
	Diff     string   `json:"diff,omitempty"` // of a dry run; credentials that are seen as such are left out
}

// Kept names a server that stays in the client's file next to Retort, with the reason.
type Kept struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

const ourName = "retort"

// installing holds the state of one install or uninstall.
type installing struct {
	Environment
	InstallOptions
	client *Client
	scope  Scope
	file   file
	at     [][]string // objects of servers; Retort goes into the first
	here   bool       // Retort is in the file
	result *Installed
}

// Install moves the servers of a client into Retort's server file, and puts an entry for Retort in their place.
// Servers that cannot be imported stay. Nothing is lost if the process is killed: it writes Retort's file first, then
// the journal, then the client's file.
func Install(e Environment, o InstallOptions) (*Installed, error) {
	unlock, err := lock(home.Dir(o.Home), o.DryRun)
	if err != nil {
		return nil, err
	}
	defer unlock()
	in, err := e.begin(o)
	if err != nil {
		return nil, err
	}
	moved, err := in.moving()
	if err != nil {
		return nil, err
	}
	s, src, err := in.plan(moved)
	if err != nil {
		return nil, err
	}
	imported := &Imported{File: o.Out, Servers: moved, DryRun: o.DryRun}
	if err := in.merge(imported, in.scope, true); err != nil {
		return nil, err
	}
	in.result.Moved, in.result.Warnings, in.result.Ours = imported.Servers, append(in.result.Warnings, imported.Warnings...), o.Out
	if in.result.Changed = string(src) != string(in.file.src); !in.result.Changed {
		return in.result, nil
	}
	if o.DryRun {
		in.result.Diff = diff(in.file.path, in.masked(in.file.src, moved), in.masked(src, moved))
		return in.result, nil
	}
	j, err := openJournal(home.Dir(o.Home), in.client.Name, in.file.target)
	if err != nil {
		return nil, err
	}
	j.settle(in.file, in.here)
	if err := j.begin(s, in.file.src); err != nil {
		return nil, err
	}
	return in.result, in.file.write(src)
}

// begin finds the client and reads its file.
func (e Environment) begin(o InstallOptions) (*installing, error) {
	c, err := Find(o.Client)
	if err != nil {
		return nil, err
	}
	in := &installing{Environment: e, InstallOptions: o, client: c, scope: scopeOf(o.Project)}
	n := slices.IndexFunc(c.places, func(p place) bool { return p.scope == in.scope && !p.readOnly })
	if n < 0 {
		return nil, core.Errorf(core.KindInvalidArguments, "clients.install", "%s has no servers of a project", c.Title).
			WithHint("leave out --project")
	}
	if in.file, err = e.open(e.first(c.places[n]), in.scope); err != nil {
		return nil, err
	}
	in.result = &Installed{Client: c.Name, File: in.file.path, DryRun: o.DryRun}
	in.at = [][]string{c.places[n].at}
	for _, p := range c.places {
		if p.scope == Local && in.scope == User {
			if at := e.keys(c, p, in.file.src); at != nil {
				in.at = append(in.at, at)
			}
		}
	}
	if in.here, err = in.installed(); err != nil {
		return nil, err
	}
	in.warn()
	return in, nil
}

// warn adds a warning for each reason why the client may use servers without Retort, or may not start Retort.
func (in *installing) warn() {
	for _, p := range in.client.places {
		for _, path := range in.paths(p) {
			if !p.readOnly {
				continue
			}
			if list, err := in.Environment.servers(in.client, p, path); err == nil && len(list) > 0 {
				in.result.Warnings = append(in.result.Warnings, path+" has servers of its own, and is not changed")
			}
		}
	}
	if whole, err := in.client.format.decode(in.file.src); err == nil && in.client.off(whole, ourName) {
		in.result.Warnings = append(in.result.Warnings, in.file.path+" has a list of servers that may start, without "+ourName)
	}
}

// installed reports whether Retort is in the file.
func (in *installing) installed() (bool, error) {
	members, err := in.client.format.members(in.file.src, in.at[0])
	if err != nil {
		return false, fileError(in.file.path, err)
	}
	return slices.ContainsFunc(members, in.client.isOurs), nil
}

// isOurs reports whether m is an entry that install writes. Other entries may start Retort with other settings; those
// belong to the user.
func (c *Client) isOurs(m member) bool {
	e, wrong := c.read(m.Value, &translator{dialect: c.dialect})
	return m.Name == ourName && wrong == "" && e.ourselves(m.Name)
}

// moving returns the servers to move into Retort's server file. It adds those that stay to the result.
func (in *installing) moving() ([]Server, error) {
	if other, err := in.open(in.Out, in.scope); err != nil {
		return nil, err
	} else if other.target == in.file.target {
		return nil, core.Errorf(
			core.KindInvalidArguments, "clients.install", "%s cannot be both the client's file and ours", in.Out,
		).WithHint("name another file with --out")
	}
	var moved []Server
	keep := slices.Clone(in.Keep)
	for i, at := range in.at {
		list, err := in.client.servers(in.Environment, in.file, at)
		if err != nil {
			return nil, err
		}
		for _, s := range list {
			s.Scope = in.scope
			if i > 0 {
				s.Scope = Local
			}
			switch {
			case in.client.isOurs(s.raw):
			case slices.Contains(in.Keep, s.Name):
				keep = slices.DeleteFunc(keep, func(name string) bool { return name == s.Name })
				in.result.Kept = append(in.result.Kept, Kept{s.Name, "--keep"})
			case s.State == Left:
				in.result.Kept = append(in.result.Kept, Kept{s.Name, s.Reason})
			default:
				moved = append(moved, s)
			}
		}
	}
	if len(keep) > 0 {
		return nil, core.Errorf(core.KindInvalidArguments, "clients.install", "%s has no server %q", in.file.path, keep[0]).
			WithHint("--keep takes names of servers that are in the file; retort import shows them")
	}
	return moved, nil
}

// plan returns the new content of the client's file, and the journal's step for it.
func (in *installing) plan(moved []Server) (step, []byte, error) {
	value, err := ordered(in.client.entry(in.Command, in.Args))
	if err != nil {
		return step{}, nil, err
	}
	s := step{
		Time: time.Now().UTC(), Existed: in.file.exists, Mode: in.file.mode, Before: hash(in.file.src), Entry: ourName,
		Command: in.Command,
	}
	changes := make([]change, len(in.at))
	for i, at := range in.at {
		r := removal{At: at}
		for _, server := range moved {
			if slices.Equal(server.at, at) {
				r.Members = append(r.Members, server.raw)
			}
		}
		out := names(r.Members)
		var put []member
		if i == 0 {
			if out, put, err = in.ours(in.file.src, at, out, value); err != nil {
				return s, nil, err
			}
		}
		changes[i] = change{at, out, put}
		if len(r.Members) > 0 {
			s.Removed = append(s.Removed, r)
		}
	}
	src, err := editedAll(in.client.format, in.file.src, changes)
	if err != nil {
		return s, nil, fileError(in.file.path, err)
	}
	s.After = hash(src)
	return s, src, nil
}

// ours returns the names to remove and the members to insert so that Retort's entry is value. It adds an outdated
// entry of Retort to out.
func (in *installing) ours(src []byte, at, out []string, value json.RawMessage) ([]string, []member, error) {
	members, err := in.client.format.members(src, at)
	if err != nil {
		return nil, nil, fileError(in.file.path, err)
	}
	there := false
	for _, m := range members {
		switch {
		case in.client.isOurs(m) && sameText(m.Value, value):
			there = true
		case in.client.isOurs(m):
			out = append(out, m.Name)
		case m.Name == ourName && !slices.Contains(out, m.Name):
			return nil, nil, core.Errorf(
				core.KindInvalidArguments, "clients.install", "%s has a server of its own that is called %s, and stays there",
				in.file.path, ourName,
			).
				WithHint("give it another name in %s", in.file.path)
		}
	}
	if there {
		return out, nil, nil
	}
	return out, []member{{Name: ourName, Value: value}}, nil
}

// masked returns src without the credentials of servers.
func (in *installing) masked(src []byte, servers []Server) []byte {
	for _, s := range servers {
		src = mask(src, s.entry.secrets())
	}
	return src
}

// Uninstall removes Retort from a client's file. If the file has not changed since the install, it restores the
// earlier file byte for byte. Otherwise it puts back each removed server whose name is free.
func Uninstall(e Environment, o InstallOptions) (*Installed, error) {
	unlock, err := lock(home.Dir(o.Home), o.DryRun)
	if err != nil {
		return nil, err
	}
	defer unlock()
	in, err := e.begin(o)
	if err != nil {
		return nil, err
	}
	j, err := openJournal(home.Dir(o.Home), in.client.Name, in.file.target)
	if err != nil {
		return nil, err
	}
	known := len(j.Steps) > 0
	j.settle(in.file, true)
	src, exists, err := in.undo(j)
	if err != nil {
		return nil, err
	}
	if known && len(j.Steps) == 0 {
		in.result.Restored = "exact" // by an uninstall that was killed before its end
	}
	if exists {
		if in.result.Still, err = in.starting(src); err != nil {
			return nil, err
		}
	}
	in.result.Changed = exists != in.file.exists || string(src) != string(in.file.src)
	switch {
	case o.DryRun:
		gone := in.gone(j)
		in.result.Diff = diff(in.file.path, in.masked(in.file.src, gone), in.masked(src, gone))
		return in.result, nil
	case !in.result.Changed:
	case !exists:
		err = in.file.remove()
	default:
		if len(j.Steps) > 0 && in.file.exists {
			in.file.mode = j.mode(in.file.mode)
		}
		err = in.file.write(src)
	}
	if err == nil {
		sweep(filepath.Dir(in.file.target))
		j.end()
	}
	return in.result, err
}

// starting returns the names of the entries in a file that start Retort.
func (in *installing) starting(src []byte) (list []string, err error) {
	for _, at := range in.at {
		members, err := in.client.format.members(src, at)
		if err != nil {
			return nil, fileError(in.file.path, err)
		}
		for _, m := range members {
			if e, _ := in.client.read(m.Value, &translator{dialect: in.client.dialect}); e.ourselves(m.Name) {
				list = append(list, m.Name)
			}
		}
	}
	return list, nil
}

// isInstalled reports whether an entry is the one that a step wrote. Its arguments may have been changed since.
func (in *installing) isInstalled(m member, s step) bool {
	if in.client.isOurs(m) {
		return true
	}
	e, _ := in.client.read(m.Value, &translator{dialect: in.client.dialect})
	return m.Name == ourName && s.Command != "" && e.command == s.Command && slices.Contains(e.args, "serve")
}

// gone returns the servers that the steps of a journal removed.
func (in *installing) gone(j *journal) []Server {
	var list []Server
	for _, s := range j.Steps {
		for _, r := range s.Removed {
			for _, m := range r.Members {
				e, _ := in.client.read(m.Value, &translator{dialect: in.client.dialect})
				list = append(list, Server{Name: m.Name, entry: e})
			}
		}
	}
	return list
}

// mode returns the mode that the file had before it was first written, or now if it did not exist then.
func (j *journal) mode(now fs.FileMode) fs.FileMode {
	if first := j.Steps[0]; first.Existed {
		return first.Mode
	}
	return now
}

// undo reverts the steps of a journal, beginning with the last.
func (in *installing) undo(j *journal) (src []byte, exists bool, err error) {
	src, exists = in.file.src, in.file.exists
	in.result.Restored = "exact"
	if len(j.Steps) == 0 && !in.here {
		in.result.Restored = "none"
	}
	for n := len(j.Steps) - 1; n >= 0; n-- {
		s := j.Steps[n]
		if hash(src) == s.After && exists || !exists && s.Existed {
			if src, err = j.backup(s); err != nil {
				return nil, false, err
			}
			exists = s.Existed
			in.result.PutBack = append(in.result.PutBack, s.removed()...)
			continue
		}
		if src, err = in.mergeBack(src, s); err != nil {
			return nil, false, err
		}
	}
	if len(j.Steps) == 0 && in.here {
		in.result.Warnings = append(
			in.result.Warnings,
			"there is no journal of an install below "+in.Home+": servers that it has moved are still in our file alone",
		)
		src, err = in.mergeBack(src, step{})
	}
	return src, exists, err
}

func (s step) removed() []string {
	var list []string
	for _, r := range s.Removed {
		list = append(list, names(r.Members)...)
	}
	return list
}

// mergeBack reverts a step in a file that was changed after it.
func (in *installing) mergeBack(src []byte, s step) ([]byte, error) {
	in.result.Restored = "merged"
	format := in.client.format
	backs := s.Removed
	if len(backs) == 0 || !slices.Equal(backs[0].At, in.at[0]) {
		backs = append([]removal{{At: in.at[0]}}, backs...)
	}
	changes := make([]change, len(backs))
	for i, r := range backs {
		now, err := format.members(src, r.At)
		if err != nil {
			return nil, fileError(in.file.path, err)
		}
		var out []string
		for _, m := range now {
			if in.isInstalled(m, s) {
				out = append(out, m.Name)
			} else {
				in.kept(m.Name, slices.ContainsFunc(r.Members, func(old member) bool { return old.Name == m.Name }))
			}
		}
		var back []member
		for _, m := range r.Members {
			if !slices.Contains(names(now), m.Name) || slices.Contains(out, m.Name) {
				back = append(back, m)
			}
		}
		in.result.PutBack = append(in.result.PutBack, names(back)...)
		changes[i] = change{r.At, out, back}
	}
	src, err := editedAll(format, src, changes)
	if err != nil {
		return nil, fileError(in.file.path, fmt.Errorf("%w; the earlier file is among the backups in %s", err, in.Home))
	}
	return src, nil
}

// kept adds to the result a server that was put into the file after the install.
func (in *installing) kept(name string, again bool) {
	reason := "it came after the install"
	if again {
		reason = "it is there again, so the former one was not put back"
	}
	if !slices.ContainsFunc(in.result.Kept, func(k Kept) bool { return k.Name == name }) {
		in.result.Kept = append(in.result.Kept, Kept{name, reason})
	}
}
