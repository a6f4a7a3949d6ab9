package config

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"
)

// LevelRules restricts what programs of one permission level may reach apart from tools. A nil list restricts
// nothing.
type LevelRules struct {
	Read             []string // folders and files of the workspace, relative to it; "." is all of it
	Write            []string // the same
	Hosts            []string // domains; "*" is every host that the network allows
	DenyHosts        []string // domains, addresses and ranges; stronger
	Commands         []string // names; "*" is every command that the settings name
	DenyCommands     []string // names; stronger
	ApprovalRequired bool     // a person is asked about each program
}

// Scratch names the only folder of the workspace that programs of level read_only may write to.
const Scratch = "scratch"

// policies holds the blocks network_policy, permission_levels and sandbox_options as read, before translate converts
// them to settings.
type policies struct {
	network    Network
	monitoring monitoring
	levels     map[PermissionLevel]LevelRules
	notes      []string // what is ignored, and why

	hasNetwork, hasPolicy, hasCommands bool // the keys network, network_policy, commands are written
}

// monitoring holds the monitoring block of network_policy.
type monitoring struct {
	all, blacklist, volume Switch
	rate                   Rate
}

// fields returns the keys of the policy blocks in a settings file, with their readers.
func (p *policies) fields() []field {
	return []field{
		{"network_policy", p.readNetwork()},
		{"permission_levels", p.readLevels},
		{"sandbox_options", p.readSandboxes},
	}
}

func (p *policies) readNetwork() into {
	return object(
		field{"default", oneOf(&p.network.Default, NetworkDeny, NetworkAllow)},
		field{"whitelist", list(&p.network.Whitelist, (*NetworkRule).read)},
		field{"blacklist", list(&p.network.Blacklist, target)},
		field{"monitoring", object(
			field{"log_all_connections", p.readLogging},
			field{"alert_on_blacklist", toggle(&p.monitoring.blacklist)},
			field{"alert_on_unusual_volume", toggle(&p.monitoring.volume)},
			field{"rate_limit_per_domain", rate(&p.monitoring.rate, 1_000_000)},
		)},
	)
}

func (p *policies) readLogging(r *reader, n *node) {
	toggle(&p.monitoring.all)(r, n)
	if p.monitoring.all == Off {
		r.fail(n, "leave it out; auditLogging: false records nothing at all", "connections cannot be left out of the audit log")
	}
}

func (p *policies) readLevels(r *reader, n *node) {
	p.levels = map[PermissionLevel]LevelRules{}
	r.each(n, func(key, value *node) {
		level := PermissionLevel(key.text)
		if !slices.Contains(permissionLevels(), level) {
			r.fail(key, suggest(key.text, namesOf(permissionLevels())), "unknown level %q", shorten(key.text))
			return
		}
		l := &levelReader{policies: p, level: level}
		r.below(key.text, value, spread(
			field{"filesystem", spread(field{"read", l.paths(&l.rules.Read)}, field{"write", l.writes})},
			field{"network", l.network},
			field{"commands", spread(field{"allow", l.commands}, field{"deny", l.deniedCommands})},
			field{"approval_required", boolean(&l.rules.ApprovalRequired)},
		))
		p.levels[level] = l.rules.withoutStar()
	})
}

// withoutStar returns the rules without a "*" in DenyCommands. It replaces the "*" by an empty list of allowed
// commands, unless commands are allowed by name.
func (l LevelRules) withoutStar() LevelRules {
	if !slices.Contains(l.DenyCommands, "*") {
		return l
	}
	l.DenyCommands = slices.DeleteFunc(l.DenyCommands, func(s string) bool { return s == "*" })
	if l.Commands == nil || slices.Contains(l.Commands, "*") {
		l.Commands = []string{}
	}
	return l
}

// spread reads an object, or a list of objects that each have some of its keys.
func spread(fields ...field) into {
	return func(r *reader, n *node) {
		if n.kind != listKind {
			object(fields...)(r, n)
			return
		}
		whole := *n
		whole.kind, whole.items = objectKind, nil
		for _, item := range n.items {
			if item.kind != objectKind {
				r.want(item, "an object with one of the keys")
				continue
			}
			whole.entries = append(whole.entries, item.entries...)
		}
		object(fields...)(r, &whole)
	}
}

// levelReader reads the rules of one permission level.
type levelReader struct {
	policies *policies
	level    PermissionLevel
	rules    LevelRules
}

// note adds a note on the value being read: what in it is ignored, and why.
func (l *levelReader) note(r *reader, format string, args ...any) {
	l.policies.notes = append(l.policies.notes, strings.Join(r.path, ".")+": "+fmt.Sprintf(format, args...))
}

// paths reads folders and files, given by the paths that programs use.
func (l *levelReader) paths(to *[]string) into {
	return func(r *reader, n *node) {
		var written []string
		list(&written, func(s *string) into { return checked(s, "a path such as /workspace/output, or *", isPolicyPath) })(r, n)
		*to = []string{}
		for _, w := range written {
			inside, ok := workspacePath(w)
			switch {
			case w == "":
			case !ok:
				l.note(r, "%s is left out: programs see no folder of the machine, only /workspace", w)
			default:
				*to = append(*to, inside)
			}
		}
	}
}

// writes reads the paths that may be written. Level read_only may write only to its scratch folder.
func (l *levelReader) writes(r *reader, n *node) {
	l.paths(&l.rules.Write)(r, n)
	for _, w := range l.rules.Write {
		if l.level == PermissionReadOnly && !within(w, Scratch) {
			r.fail(
				n, "write [], and give who is to write the level write_restricted",
				"read_only writes no file but those in /workspace/%s", Scratch,
			)
			return
		}
	}
}

func isPolicyPath(s string) bool {
	inner := strings.TrimSuffix(strings.TrimSuffix(s, "/**"), "/*")
	return s == "*" || s != "" && !strings.ContainsAny(inner, "*?[]\\\x00\n") && !slices.Contains(strings.Split(s, "/"), "..")
}

// workspacePath converts a path that programs use to one relative to the workspace. It returns false for a path
// outside the workspace.
func workspacePath(s string) (string, bool) {
	if s == "*" || s == "/" || s == "/*" || s == "/**" {
		return ".", true
	}
	clean := path.Clean("/" + strings.TrimSuffix(strings.TrimSuffix(s, "/**"), "/*"))
	rest, ok := strings.CutPrefix(clean+"/", "/workspace/")
	return path.Clean("./" + rest), ok
}

// within reports whether a path is folder or is below it.
func within(name, folder string) bool {
	return folder == "." || name == folder || strings.HasPrefix(name, folder+"/")
}

// network reads the hosts that a level may reach, and those that it may not.
func (l *levelReader) network(r *reader, n *node) {
	var deny []string
	spread(
		field{"allow", list(&l.rules.Hosts, func(s *string) into { return l.host(s) })},
		field{"deny", list(&deny, func(s *string) into {
			return checked(s, "a domain, an address, a range such as 10.0.0.0/8, or *", func(v string) bool { return v == "*" || isTarget(v) })
		})},
	)(r, n)
	l.rules.Hosts = slices.DeleteFunc(l.rules.Hosts, func(s string) bool { return s == "" })
	everything := slices.Contains(deny, "*")
	switch {
	case everything && slices.Contains(l.rules.Hosts, "*"):
		r.fail(n, "leave one of them out", "allow and deny both say *")
	case everything && l.rules.Hosts == nil:
		l.rules.Hosts = []string{}
	case everything:
		l.note(r, "deny: * says that no other host than those of allow is reached, which holds anyway")
	}
	l.rules.DenyHosts = slices.DeleteFunc(deny, func(s string) bool { return s == "*" || s == "" })
}

// host reads one host that may be reached.
func (l *levelReader) host(s *string) into {
	return func(r *reader, n *node) {
		written, ok := r.scalar(n)
		_, notRange := netip.ParsePrefix(written)
		_, notAddress := netip.ParseAddr(written)
		switch {
		case !ok:
		case notRange == nil || notAddress == nil:
			r.fail(
				n, "write the domain; a server inside a private network is reached through an MCP server",
				"%s cannot be allowed: programs reach hosts by their names", n.describe(),
			)
		case written != "*" && !isDomain(written):
			r.want(n, "a domain such as *.example.com, or *")
		default:
			*s = written
		}
	}
}

// commands reads the commands that a level may start.
func (l *levelReader) commands(r *reader, n *node) {
	var written []string
	list(&written, func(s *string) into {
		return checked(s, "the name of a command, or *; its arguments are for the setting commands", isCommandName)
	})(r, n)
	l.rules.Commands = append([]string{}, slices.DeleteFunc(written, func(s string) bool { return s == "" })...)
	if slices.Contains(written, "*") {
		l.note(r, "* stands for the commands that the settings name, never for any program of the machine")
	}
}

func isCommandName(s string) bool {
	return s != "" && s != "." && s != ".." && !strings.ContainsAny(s, "/ \t\n\x00")
}

// deniedCommands reads the commands that a level may not start. It does not look at arguments: their effect can be
// written in many ways, so the whole command is denied.
func (l *levelReader) deniedCommands(r *reader, n *node) {
	var written []string
	list(&written, text)(r, n)
	for _, w := range written {
		words := strings.Fields(w)
		switch {
		case len(words) == 0:
		case words[0] == "*":
			l.rules.DenyCommands = append(l.rules.DenyCommands, "*")
		case strings.ContainsAny(words[0], "(){}|&;<>$`"):
			l.note(r, "%s is left out: it is for a shell, and no command is started by one", shorten(w))
		default:
			l.rules.DenyCommands = append(l.rules.DenyCommands, path.Base(words[0]))
			if len(words) > 1 {
				l.note(r, "%s denies %s with any arguments: the same can be written in other ways", shorten(w), path.Base(words[0]))
			}
		}
	}
}

// readSandboxes reads sandbox_options. It refuses a description that claims a sandbox is stronger than it is.
func (p *policies) readSandboxes(r *reader, n *node) {
	var fields []field
	for mode, most := range map[SandboxMode]int{SandboxProcess: 1, SandboxDocker: 2, SandboxGVisor: 2, SandboxVM: 3} {
		var ignored string
		fields = append(fields, field{string(mode), object(
			field{"isolation", isolationWord(mode, most)},
			field{"overhead", text(&ignored)}, field{"use_case", text(&ignored)}, field{"security", text(&ignored)},
		)})
	}
	slices.SortFunc(fields, func(a, b field) int { return strings.Compare(a.key, b.key) })
	object(fields...)(r, n)
	p.notes = append(
		p.notes,
		"sandbox_options: it describes the sandboxes and changes nothing; sandboxMode chooses one, or auto by the risk of each program",
	)
}

// isolationWord checks the isolation that the file claims for a sandbox.
func isolationWord(mode SandboxMode, most int) into {
	ranked := []string{"moderate", "strong", "maximum"}
	return func(r *reader, n *node) {
		written, ok := r.scalar(n)
		claimed := slices.Index(ranked, strings.ToLower(written)) + 1
		switch {
		case !ok:
		case claimed == 0:
			r.want(n, "Moderate, Strong or Maximum")
		case claimed > most:
			stronger := map[int]SandboxMode{2: SandboxDocker, 3: SandboxVM}[claimed]
			r.fail(
				n, fmt.Sprintf("for %s write sandboxMode: %s", n.describe(), stronger),
				"the sandbox %s is not as strong as %s", mode, n.describe(),
			)
		}
	}
}

func permissionLevels() []PermissionLevel {
	return []PermissionLevel{PermissionReadOnly, PermissionWriteRestricted, PermissionExecuteFull}
}

func namesOf[T ~string](values []T) (all []string) {
	for _, v := range values {
		all = append(all, string(v))
	}
	return all
}
