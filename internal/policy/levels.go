package policy

import (
	"path"
	"slices"
	"strings"

	"retort/internal/core"
)

// LevelRules restrict what a principal with this level may reach other than tools: files, hosts and
// commands. A nil list restricts nothing; an empty list allows nothing. A principal's own level can only
// restrict further what the level for everybody allows.
type LevelRules struct {
	// Read and Write are folders and files of the workspace, relative to it; "." is all of it.
	// What may be written may be read. ReadOnly writes to Scratch and nothing else, whatever
	// its rules say.
	Read, Write []string
	// Hosts are domains, of which "*" is every host; DenyHosts, which are stronger, may be
	// addresses and ranges.
	Hosts, DenyHosts []string
	// Commands are names, of which "*" is every command; DenyCommands are stronger.
	Commands, DenyCommands []string
	// ApprovalRequired has a person asked about each program, and each call without one.
	ApprovalRequired bool
}

// Scratch is the folder of the workspace that ReadOnly may write to.
const Scratch = "scratch"

// FileUse describes what is done with a file of the workspace.
type FileUse uint8

// The uses.
const (
	LookAt FileUse = iota // its name, size and place
	ReadFile
	WriteFile // also make, remove and rename
)

// allLayers returns those of all policies that have to allow something.
func (v *View) allLayers() (all []*limitLayer) {
	v.eachSight(func(s *principalSight) { all = append(all, s.layers...) })
	return all
}

// levelRule names the rules of the layer's level.
func (l *limitLayer) levelRule() string { return "permission_levels." + string(l.level) }

// writableFolders returns the folders of the workspace that the layer lets be written.
func (l *limitLayer) writableFolders() []string {
	switch {
	case l.level == ReadOnly:
		return []string{Scratch}
	case l.rules.Write == nil:
		return []string{"."}
	}
	return l.rules.Write
}

// readableFolders returns the folders of the workspace that the layer lets be read.
func (l *limitLayer) readableFolders() []string {
	if l.rules.Read == nil {
		return []string{"."}
	}
	return slices.Concat(l.rules.Read, l.writableFolders(), kept)
}

// kept are the folders of the workspace in which Retort puts answers that are too large to
// return, and images. Whoever was given them can read them.
var kept = []string{"files", "results"}

// writeRule names what keeps files from being written.
func (l *limitLayer) writeRule() string {
	if l.level == ReadOnly {
		return l.prefix + "permissionLevel: " + string(ReadOnly)
	}
	return l.levelRule() + ".filesystem.write"
}

// File returns why a file or folder of the workspace may not be used so; nil if it may. The name is relative to the
// workspace and clean; "." is the workspace.
func (v *View) File(name string, use FileUse) *core.Error {
	for _, l := range v.allLayers() {
		switch allowed := l.readableFolders(); {
		case use == WriteFile && !coversPath(l.writableFolders(), name):
			return refusedFile(name, "written", l.writeRule()+"; "+whereToWrite(v.Writable(), name))
		case use == ReadFile && !coversPath(allowed, name):
			return refusedFile(name, "read", l.levelRule()+".filesystem.read")
		case use == LookAt && !coversPath(allowed, name) && !leadsTo(allowed, name):
			return refusedFile(name, "read", l.levelRule()+".filesystem.read")
		}
	}
	return nil
}

func refusedFile(name, what, rule string) *core.Error {
	// Guests take what stands before the first colon for a code, and what stands behind the last for the words.
	return core.Errorf(
		core.KindPolicy, "policy", "EACCES: ./workspace/%s: it must not be %s (%s)", strings.TrimPrefix(name, "."), what,
		strings.ReplaceAll(rule, ": ", " "),
	)
}

// whereToWrite returns which folders may be written.
func whereToWrite(folders []string, name string) string {
	if len(folders) == 0 {
		return "nothing may be written; return it instead"
	}
	return "write to ./workspace/" + path.Join(folders[0], path.Base(name))
}

// Writable returns the folders and files of the workspace that may be written, "." if all of it may be.
func (v *View) Writable() []string {
	all := []string{"."}
	for _, l := range v.allLayers() {
		all = commonFolders(all, l.writableFolders())
	}
	return all
}

// Readable returns the folders and files of the workspace that may be read, "." if all of it may be.
func (v *View) Readable() []string {
	all := []string{"."}
	for _, l := range v.allLayers() {
		all = commonFolders(all, l.readableFolders())
	}
	return all
}

// CommonPaths returns what lies in both lists of folders and files, none within another.
func CommonPaths(a, b []string) []string { return commonFolders(a, b) }

// commonFolders returns what lies in both lists of folders, none within another.
func commonFolders(a, b []string) []string {
	both := []string{}
	for _, x := range a {
		for _, y := range b {
			switch {
			case isWithin(x, y):
				both = append(both, x)
			case isWithin(y, x):
				both = append(both, y)
			}
		}
	}
	slices.Sort(both)
	both = slices.Compact(both)
	return slices.DeleteFunc(slices.Clone(both), func(x string) bool {
		return slices.ContainsFunc(both, func(y string) bool { return x != y && isWithin(x, y) })
	})
}

// isWithin reports whether a path is folder or lies below it.
func isWithin(name, folder string) bool {
	return folder == "." || name == folder || strings.HasPrefix(name, folder+"/")
}

func coversPath(folders []string, name string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return isWithin(name, f) })
}

// leadsTo reports whether a folder lies above one of those.
func leadsTo(folders []string, name string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return isWithin(f, name) })
}

// HostRules holds the hosts that one level lets be reached.
type HostRules struct {
	Allow []string // nil: every host
	Deny  []string // stronger
	Rule  string   // the setting that says so
}

// Hosts returns the rules of all levels that count, each of which a host must pass.
func (v *View) Hosts() (all []HostRules) {
	for _, l := range v.allLayers() {
		if l.rules.Hosts != nil || len(l.rules.DenyHosts) > 0 {
			all = append(all, HostRules{Allow: l.rules.Hosts, Deny: l.rules.DenyHosts, Rule: l.levelRule() + ".network"})
		}
	}
	return all
}

// ApprovalRequired returns the rule by which a person is asked about each program, "" if there is none.
func (v *View) ApprovalRequired() string {
	for _, l := range v.allLayers() {
		if l.rules.ApprovalRequired {
			return l.levelRule() + ".approval_required"
		}
	}
	return ""
}

// AllFiles reports whether nothing narrows which files of the workspace are used.
func (v *View) AllFiles() bool {
	return !slices.ContainsFunc(v.allLayers(), func(l *limitLayer) bool {
		return l.level == ReadOnly || l.rules.Read != nil || l.rules.Write != nil
	})
}
