package policy

import (
	"path"
	"slices"
	"strings"

	"retort/internal/core"
)

// LevelRules restricts the files, hosts and commands that a principal with this permission level may use. A nil list
// restricts nothing, and an empty list allows nothing. A principal must obey both the rules of the principal's own
// level and the rules of the default level.
type LevelRules struct {
	// Read and Write list folders and files of the workspace, relative to it; "." means the whole workspace. Whatever
	// may be written may also be read. At the level ReadOnly, only the folder Scratch can be written, whatever these
	// lists allow.
	Read, Write []string
	// Hosts lists domains; "*" means every host. DenyHosts takes precedence and may also contain IP addresses and
	// address ranges.
	Hosts, DenyHosts []string
	// Commands lists command names; "*" means every command. DenyCommands takes precedence.
	Commands, DenyCommands []string
	// ApprovalRequired requires a person's approval for each program, and for each call made outside a program.
	ApprovalRequired bool
}

// Scratch is the only folder of the workspace that can be written at the level ReadOnly.
const Scratch = "scratch"

// FileUse says how a file of the workspace is accessed.
type FileUse uint8

// Each kind of access is checked against the rules for files.
const (
	LookAt FileUse = iota // its name, size and place
	ReadFile
	WriteFile // also make, remove and rename
)

// allLayers returns the limits of all active policies. An action must be allowed by each of them.
func (v *PrincipalView) allLayers() (all []*limitLayer) {
	v.eachSight(func(s *principalSight) { all = append(all, s.layers...) })
	return all
}

// levelRule returns the name of the setting with the rules of this layer's permission level, for error messages.
func (l *limitLayer) levelRule() string { return "permission_levels." + string(l.level) }

// writableFolders returns the folders of the workspace that this layer allows programs to write.
func (l *limitLayer) writableFolders() []string {
	switch {
	case l.level == ReadOnly:
		return []string{Scratch}
	case l.rules.Write == nil:
		return []string{"."}
	}
	return l.rules.Write
}

// readableFolders returns the folders of the workspace that this layer allows programs to read.
func (l *limitLayer) readableFolders() []string {
	if l.rules.Read == nil {
		return []string{"."}
	}
	return slices.Concat(l.rules.Read, l.writableFolders(), engineFolders)
}

// engineFolders lists the folders in which Retort stores images and large results. Programs may always read them,
// because they have received these results.
var engineFolders = []string{"files", "results"}

// writeRule returns the name of the rule that restricts writing, for error messages.
func (l *limitLayer) writeRule() string {
	if l.level == ReadOnly {
		return l.prefix + "permissionLevel: " + string(ReadOnly)
	}
	return l.levelRule() + ".filesystem.write"
}

// CheckFile returns an error if this access to a file or folder of the workspace is denied. The name must be a clean
// path relative to the workspace; "." is the workspace itself.
func (v *PrincipalView) CheckFile(name string, use FileUse) *core.Error {
	for _, l := range v.allLayers() {
		switch allowed := l.readableFolders(); {
		case use == WriteFile && !coversPath(l.writableFolders(), name):
			return refusedFile(name, "written", l.writeRule()+"; "+whereToWrite(v.WritableFolders(), name))
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
		core.KindPolicy, "policy", "EACCES: ./workspace/%s: it may not be %s (%s)", strings.TrimPrefix(name, "."), what,
		strings.ReplaceAll(rule, ": ", " "),
	)
}

// whereToWrite returns a hint that suggests a folder in which the file may be written.
func whereToWrite(folders []string, name string) string {
	if len(folders) == 0 {
		return "the program may not write any file; return the data instead"
	}
	return "write to ./workspace/" + path.Join(folders[0], path.Base(name))
}

// WritableFolders returns the folders and files of the workspace that the principal may write. The list is just "."
// if that is the whole workspace.
func (v *PrincipalView) WritableFolders() []string {
	all := []string{"."}
	for _, l := range v.allLayers() {
		all = commonFolders(all, l.writableFolders())
	}
	return all
}

// ReadableFolders returns the folders and files of the workspace that the principal may read. The list is just "." if
// that is the whole workspace.
func (v *PrincipalView) ReadableFolders() []string {
	all := []string{"."}
	for _, l := range v.allLayers() {
		all = commonFolders(all, l.readableFolders())
	}
	return all
}

// CommonPaths returns the paths that are allowed by each of two lists of folders and files. No returned path is
// inside another returned path.
func CommonPaths(a, b []string) []string { return commonFolders(a, b) }

// commonFolders returns the paths that are allowed by each of two lists of folders and files. No returned path is
// inside another returned path.
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

// isWithin reports whether a path is the folder itself or inside it.
func isWithin(name, folder string) bool {
	return folder == "." || name == folder || strings.HasPrefix(name, folder+"/")
}

func coversPath(folders []string, name string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return isWithin(name, f) })
}

// leadsTo reports whether the folder called name leads to one of the allowed paths, because it is that path or
// contains it. Such a folder must be visible, because a program passes through it on the way to the allowed path.
func leadsTo(folders []string, name string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return isWithin(f, name) })
}

// HostRules holds the hosts that one permission level allows and denies.
type HostRules struct {
	Allow []string // nil: every host
	Deny  []string // stronger
	Rule  string   // the setting that says so
}

// ListHostRules returns the host rules of all active levels. A host must be allowed by each of them.
func (v *PrincipalView) ListHostRules() (all []HostRules) {
	for _, l := range v.allLayers() {
		if l.rules.Hosts != nil || len(l.rules.DenyHosts) > 0 {
			all = append(all, HostRules{Allow: l.rules.Hosts, Deny: l.rules.DenyHosts, Rule: l.levelRule() + ".network"})
		}
	}
	return all
}

// ApprovalRequired returns the name of the rule that requires a person's approval for each program, or "" if there is
// none.
func (v *PrincipalView) ApprovalRequired() string {
	for _, l := range v.allLayers() {
		if l.rules.ApprovalRequired {
			return l.levelRule() + ".approval_required"
		}
	}
	return ""
}

// AllFiles reports whether no rule restricts the use of workspace files.
func (v *PrincipalView) AllFiles() bool {
	return !slices.ContainsFunc(v.allLayers(), func(l *limitLayer) bool {
		return l.level == ReadOnly || l.rules.Read != nil || l.rules.Write != nil
	})
}
