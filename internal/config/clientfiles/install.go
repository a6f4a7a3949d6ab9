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
	Project bool     // use the project's file instead of the user's
	Keep    []string // names of servers that stay in the client's file
	Out     string   // absolute path of Retort's server file
	Home    string   // Retort's data directory, which has the journals and backups
	Command string   // command with which the client starts Retort
	Args    []string
	DryRun  bool
}

// InstallResult describes what an install or an uninstall did, or would do in a dry run.
type InstallResult struct {
	Client  string `json:"client"`
	File    string `json:"file"` // the client's file
	Changed bool   `json:"changed"`
	DryRun  bool   `json:"dry_run,omitempty"`
	// Restored says how an uninstall ended. It is "exact" if the client's file was restored byte for byte. It is
	// "merged" if others had changed the file after the install, so that their changes were kept. It is "none" if
	// Retort was not in the file.
	Restored string        `json:"restored,omitempty"`
	Moved    []FoundServer `json:"moved,omitempty"`    // servers moved to Retort's server file
	PutBack  []string      `json:"put_back,omitempty"` // names of servers that an uninstall put back
	Kept     []KeptServer  `json:"kept,omitempty"`     // servers that stay in the client's file
	Still    []string      `json:"still,omitempty"`    // names of remaining entries that start Retort
	Ours     string        `json:"ours,omitempty"`     // Retort's server file
	Warnings []string      `json:"warnings,omitempty"`
	Diff     string        `json:"diff,omitempty"` // only in a dry run; recognised credentials are masked
}

// KeptServer names a server that stays in the client's file next to Retort, with the reason.
type KeptServer struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

const ourName = "retort"

// installation holds the state of one install or uninstall.
type installation struct {
	Environment
	InstallOptions
	client    *Client
	scope     FileScope
	file      clientFile
	at        [][]string // key paths of the objects with servers; Retort is added to the first
	installed bool       // whether the file has an entry for Retort
	result    *InstallResult
}

// Install moves the servers of a client into Retort's server file, and puts an entry for Retort in their place.
// Servers that cannot be imported stay. Nothing is lost if the process is killed: it writes Retort's file first, then
// the journal, then the client's file.
func Install(e Environment, o InstallOptions) (*InstallResult, error) {
	unlock, err := lockJournals(home.Dir(o.Home), o.DryRun)
	if err != nil {
		return nil, err
	}
	defer unlock()
	in, err := e.beginInstall(o)
	if err != nil {
		return nil, err
	}
	moved, err := in.serversToMove()
	if err != nil {
		return nil, err
	}
	s, src, err := in.planChanges(moved)
	if err != nil {
		return nil, err
	}
	imported := &ImportResult{File: o.Out, Servers: moved, DryRun: o.DryRun}
	if err := in.mergeServers(imported, in.scope, true); err != nil {
		return nil, err
	}
	in.result.Moved, in.result.Warnings, in.result.Ours = imported.Servers, append(in.result.Warnings, imported.Warnings...), o.Out
	if in.result.Changed = string(src) != string(in.file.src); !in.result.Changed {
		return in.result, nil
	}
	if o.DryRun {
		in.result.Diff = diffText(in.file.path, in.maskSecrets(in.file.src, moved), in.maskSecrets(src, moved))
		return in.result, nil
	}
	j, err := openJournal(home.Dir(o.Home), in.client.Name, in.file.target)
	if err != nil {
		return nil, err
	}
	j.dropStaleSteps(in.file, in.installed)
	if err := j.beginStep(s, in.file.src); err != nil {
		return nil, err
	}
	return in.result, in.file.writeFile(src)
}

// beginInstall finds the client and reads its file.
func (e Environment) beginInstall(o InstallOptions) (*installation, error) {
	c, err := FindClient(o.Client)
	if err != nil {
		return nil, err
	}
	in := &installation{Environment: e, InstallOptions: o, client: c, scope: scopeOf(o.Project)}
	n := slices.IndexFunc(c.places, func(p filePlace) bool { return p.scope == in.scope && !p.readOnly })
	if n < 0 {
		return nil, core.Errorf(core.KindInvalidArguments, "clients.install", "%s has no settings for servers of a single project", c.Title).
			WithHint("leave out --project")
	}
	if in.file, err = e.openFile(e.firstPath(c.places[n]), in.scope); err != nil {
		return nil, err
	}
	in.result = &InstallResult{Client: c.Name, File: in.file.path, DryRun: o.DryRun}
	in.at = [][]string{c.places[n].at}
	for _, p := range c.places {
		if p.scope == Local && in.scope == User {
			if at := e.serversKeyPath(c, p, in.file.src); at != nil {
				in.at = append(in.at, at)
			}
		}
	}
	if in.installed, err = in.hasRetort(); err != nil {
		return nil, err
	}
	in.addWarnings()
	return in, nil
}

// addWarnings adds warnings to the result: the client may use servers without Retort, because another of its files
// has servers, or it may not start Retort, because a list of the client does not allow it.
func (in *installation) addWarnings() {
	for _, p := range in.client.places {
		for _, path := range in.existingPaths(p) {
			if !p.readOnly {
				continue
			}
			if list, err := in.Environment.readServers(in.client, p, path); err == nil && len(list) > 0 {
				in.result.Warnings = append(in.result.Warnings, path+" has its own servers and is not changed")
			}
		}
	}
	if whole, err := in.client.format.decodeAll(in.file.src); err == nil && in.client.isTurnedOff(whole, ourName) {
		in.result.Warnings = append(in.result.Warnings, in.file.path+" has a list of servers that may start, which does not contain "+ourName)
	}
}

// hasRetort reports whether Retort is in the file.
func (in *installation) hasRetort() (bool, error) {
	members, err := in.client.format.readMembers(in.file.src, in.at[0])
	if err != nil {
		return false, fileError(in.file.path, err)
	}
	return slices.ContainsFunc(members, in.client.isOurs), nil
}

// isOurs reports whether m is an entry for Retort that install has written. It returns false for a user's own
// entry that starts Retort with other settings.
func (c *Client) isOurs(m objectMember) bool {
	e, wrong := c.readEntry(m.Value, &placeholderTranslator{placeholderDialect: c.placeholderDialect})
	return m.Name == ourName && wrong == "" && e.startsRetort(m.Name)
}

// serversToMove returns the servers to move from the client's file into Retort's server file. It records the servers
// that stay in the client's file in the result of the install.
func (in *installation) serversToMove() ([]FoundServer, error) {
	if other, err := in.openFile(in.Out, in.scope); err != nil {
		return nil, err
	} else if other.target == in.file.target {
		return nil, core.Errorf(
			core.KindInvalidArguments, "clients.install", "%s cannot be both the client's file and Retort's own file", in.Out,
		).WithHint("choose another file with --out")
	}
	var moved []FoundServer
	keep := slices.Clone(in.Keep)
	for i, at := range in.at {
		list, err := in.client.readServers(in.Environment, in.file, at)
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
				in.result.Kept = append(in.result.Kept, KeptServer{s.Name, "--keep"})
			case s.State == Left:
				in.result.Kept = append(in.result.Kept, KeptServer{s.Name, s.Reason})
			default:
				moved = append(moved, s)
			}
		}
	}
	if len(keep) > 0 {
		return nil, core.Errorf(core.KindInvalidArguments, "clients.install", "%s has no server %q", in.file.path, keep[0]).
			WithHint("--keep takes the names of servers in the file; run retort import to see them")
	}
	return moved, nil
}

// planChanges returns the new content of the client's file, and the step that describes this change in the journal.
func (in *installation) planChanges(moved []FoundServer) (installStep, []byte, error) {
	value, err := marshalSorted(in.client.entry(in.Command, in.Args))
	if err != nil {
		return installStep{}, nil, err
	}
	s := installStep{
		Time: time.Now().UTC(), Existed: in.file.exists, Mode: in.file.mode, Before: hashHex(in.file.src), Entry: ourName,
		Command: in.Command,
	}
	changes := make([]memberChange, len(in.at))
	for i, at := range in.at {
		r := removedMembers{At: at}
		for _, server := range moved {
			if slices.Equal(server.at, at) {
				r.Members = append(r.Members, server.raw)
			}
		}
		out := memberNames(r.Members)
		var put []objectMember
		if i == 0 {
			if out, put, err = in.planRetortEntry(in.file.src, at, out, value); err != nil {
				return s, nil, err
			}
		}
		changes[i] = memberChange{at, out, put}
		if len(r.Members) > 0 {
			s.Removed = append(s.Removed, r)
		}
	}
	src, err := applyChanges(in.client.format, in.file.src, changes)
	if err != nil {
		return s, nil, fileError(in.file.path, err)
	}
	s.After = hashHex(src)
	return s, src, nil
}

// planRetortEntry plans the change of a client's file after which its entry for Retort is value. It returns the names
// of the members to remove: those in out, and outdated entries for Retort. It also returns the entry to insert,
// unless the file already has exactly this entry.
func (in *installation) planRetortEntry(src []byte, at, out []string, value json.RawMessage) ([]string, []objectMember, error) {
	members, err := in.client.format.readMembers(src, at)
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
				core.KindInvalidArguments, "clients.install", "%s already has another server with the name %s",
				in.file.path, ourName,
			).
				WithHint("give that server another name in %s", in.file.path)
		}
	}
	if there {
		return out, nil, nil
	}
	return out, []objectMember{{Name: ourName, Value: value}}, nil
}

// maskSecrets returns src without the credentials of servers.
func (in *installation) maskSecrets(src []byte, servers []FoundServer) []byte {
	for _, s := range servers {
		src = maskValues(src, s.entry.secretValues())
	}
	return src
}

// Uninstall removes Retort from a client's file. If the file has not changed since the install, it restores the
// earlier file byte for byte. Otherwise it puts back each removed server whose name is free.
func Uninstall(e Environment, o InstallOptions) (*InstallResult, error) {
	unlock, err := lockJournals(home.Dir(o.Home), o.DryRun)
	if err != nil {
		return nil, err
	}
	defer unlock()
	in, err := e.beginInstall(o)
	if err != nil {
		return nil, err
	}
	j, err := openJournal(home.Dir(o.Home), in.client.Name, in.file.target)
	if err != nil {
		return nil, err
	}
	known := len(j.Steps) > 0
	j.dropStaleSteps(in.file, true)
	src, exists, err := in.undoSteps(j)
	if err != nil {
		return nil, err
	}
	if known && len(j.Steps) == 0 {
		in.result.Restored = "exact" // by an uninstall that was killed before its end
	}
	if exists {
		if in.result.Still, err = in.retortEntries(src); err != nil {
			return nil, err
		}
	}
	in.result.Changed = exists != in.file.exists || string(src) != string(in.file.src)
	switch {
	case o.DryRun:
		gone := in.removedServers(j)
		in.result.Diff = diffText(in.file.path, in.maskSecrets(in.file.src, gone), in.maskSecrets(src, gone))
		return in.result, nil
	case !in.result.Changed:
	case !exists:
		err = in.file.removeFile()
	default:
		if len(j.Steps) > 0 && in.file.exists {
			in.file.mode = j.originalMode(in.file.mode)
		}
		err = in.file.writeFile(src)
	}
	if err == nil {
		removeLeftovers(filepath.Dir(in.file.target))
		j.removeFiles()
	}
	return in.result, err
}

// retortEntries returns the names of the entries in a file that start Retort.
func (in *installation) retortEntries(src []byte) (list []string, err error) {
	for _, at := range in.at {
		members, err := in.client.format.readMembers(src, at)
		if err != nil {
			return nil, fileError(in.file.path, err)
		}
		for _, m := range members {
			if e, _ := in.client.readEntry(m.Value, &placeholderTranslator{placeholderDialect: in.client.placeholderDialect}); e.startsRetort(m.Name) {
				list = append(list, m.Name)
			}
		}
	}
	return list, nil
}

// isInstalled reports whether an entry is the one that install has written in the given step of the journal. An entry
// whose arguments were changed after that step still counts.
func (in *installation) isInstalled(m objectMember, s installStep) bool {
	if in.client.isOurs(m) {
		return true
	}
	e, _ := in.client.readEntry(m.Value, &placeholderTranslator{placeholderDialect: in.client.placeholderDialect})
	return m.Name == ourName && s.Command != "" && e.command == s.Command && slices.Contains(e.args, "serve")
}

// removedServers returns the servers that the steps of a journal removed.
func (in *installation) removedServers(j *installJournal) []FoundServer {
	var list []FoundServer
	for _, s := range j.Steps {
		for _, r := range s.Removed {
			for _, m := range r.Members {
				e, _ := in.client.readEntry(m.Value, &placeholderTranslator{placeholderDialect: in.client.placeholderDialect})
				list = append(list, FoundServer{Name: m.Name, entry: e})
			}
		}
	}
	return list
}

// originalMode returns the file mode that the client's file had originally, before install first wrote it. If the
// file did not exist then, it returns its argument now, the present mode of the file.
func (j *installJournal) originalMode(now fs.FileMode) fs.FileMode {
	if first := j.Steps[0]; first.Existed {
		return first.Mode
	}
	return now
}

// undoSteps undoes the steps of a journal, which are the changes that install made to the client's file. It begins
// with the last step.
func (in *installation) undoSteps(j *installJournal) (src []byte, exists bool, err error) {
	src, exists = in.file.src, in.file.exists
	in.result.Restored = "exact"
	if len(j.Steps) == 0 && !in.installed {
		in.result.Restored = "none"
	}
	for n := len(j.Steps) - 1; n >= 0; n-- {
		s := j.Steps[n]
		if hashHex(src) == s.After && exists || !exists && s.Existed {
			if src, err = j.readBackup(s); err != nil {
				return nil, false, err
			}
			exists = s.Existed
			in.result.PutBack = append(in.result.PutBack, s.removedNames()...)
			continue
		}
		if src, err = in.mergeBack(src, s); err != nil {
			return nil, false, err
		}
	}
	if len(j.Steps) == 0 && in.installed {
		in.result.Warnings = append(
			in.result.Warnings,
			"there is no journal of an installation in "+in.Home+": servers that it moved remain only in Retort's own file",
		)
		src, err = in.mergeBack(src, installStep{})
	}
	return src, exists, err
}

func (s installStep) removedNames() []string {
	var list []string
	for _, r := range s.Removed {
		list = append(list, memberNames(r.Members)...)
	}
	return list
}

// mergeBack undoes a step of the journal, which is one change by install, in a client's file that others have changed
// after that step. The later changes by others are kept.
func (in *installation) mergeBack(src []byte, s installStep) ([]byte, error) {
	in.result.Restored = "merged"
	format := in.client.format
	backs := s.Removed
	if len(backs) == 0 || !slices.Equal(backs[0].At, in.at[0]) {
		backs = append([]removedMembers{{At: in.at[0]}}, backs...)
	}
	changes := make([]memberChange, len(backs))
	for i, r := range backs {
		now, err := format.readMembers(src, r.At)
		if err != nil {
			return nil, fileError(in.file.path, err)
		}
		var out []string
		for _, m := range now {
			if in.isInstalled(m, s) {
				out = append(out, m.Name)
			} else {
				in.noteKept(m.Name, slices.ContainsFunc(r.Members, func(old objectMember) bool { return old.Name == m.Name }))
			}
		}
		var back []objectMember
		for _, m := range r.Members {
			if !slices.Contains(memberNames(now), m.Name) || slices.Contains(out, m.Name) {
				back = append(back, m)
			}
		}
		in.result.PutBack = append(in.result.PutBack, memberNames(back)...)
		changes[i] = memberChange{r.At, out, back}
	}
	src, err := applyChanges(format, src, changes)
	if err != nil {
		return nil, fileError(in.file.path, fmt.Errorf("%w; the earlier file is among the backups in %s", err, in.Home))
	}
	return src, nil
}

// noteKept records in the result that a server stays in the client's file because it was added there after the
// install. The argument again says that a removed server had the same name.
func (in *installation) noteKept(name string, again bool) {
	reason := "it was added after the install"
	if again {
		reason = "it exists again, so the earlier one was not put back"
	}
	if !slices.ContainsFunc(in.result.Kept, func(k KeptServer) bool { return k.Name == name }) {
		in.result.Kept = append(in.result.Kept, KeptServer{name, reason})
	}
}
