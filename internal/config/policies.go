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
	Read             []string // folders and files in the workspace, relative to it; ".": all of them
	Write            []string // like Read, for writing
	Hosts            []string // domains; "*": all hosts that the network settings allow
	DenyHosts        []string // domains, addresses and CIDR ranges; takes precedence over Hosts
	Commands         []string // names; "*": all commands in the settings
	DenyCommands     []string // names; takes precedence over Commands
	ApprovalRequired bool     // a person must approve each program
}

// Scratch names the only folder of the workspace that programs of level read_only may write to.
const Scratch = "scratch"

// policyBlocks holds the content of the blocks network_policy, permission_levels and sandbox_options in a settings
// file. translateAfter later converts it to other settings.
type policyBlocks struct {
	network    Network
	monitoring monitoringPolicy
	levels     map[PermissionLevel]LevelRules
	notes      []string // what is ignored, with the reason

	hasNetwork, hasPolicy, hasCommands bool // the file has the keys network, network_policy, commands
}

// monitoringPolicy holds the content of the block monitoring in network_policy.
type monitoringPolicy struct {
	all, blacklist, volume Switch
	rate                   Rate
}

// fieldReaders returns the readers for the keys of the policy blocks in a settings file: network_policy,
// permission_levels and sandbox_options.
func (p *policyBlocks) fieldReaders(levels *map[PermissionLevel]LevelRules) []fieldReader {
	return []fieldReader{
		{"network_policy", "Network rules as policy documents write them. Use network or network_policy, not both.", hidden(p.networkReader())},
		{"permission_levels", "What programs of each permission level may read, write, reach and start.", p.levelsReader(levels)},
		{"sandbox_options", "A description of the sandboxes. It changes nothing.", p.sandboxesReader()},
	}
}

func (p *policyBlocks) networkReader() settingReader {
	return readObject(
		fieldReader{"default", "Whether programs may reach hosts that are on neither list.", readOneOf(&p.network.Default, NetworkDeny, NetworkAllow)},
		fieldReader{"whitelist", "Hosts that programs may reach.", readList(&p.network.Whitelist, (*NetworkRule).reader)},
		fieldReader{"blacklist", "Domains, addresses and ranges that programs may not reach.", readList(&p.network.Blacklist, readNetworkTarget)},
		fieldReader{"monitoring", "What is recorded and reported about connections.", readObject(
			fieldReader{"log_all_connections", "Record all connections in the audit log. With auditLogging they always are, and false is an error.", p.readLogging()},
			fieldReader{"alert_on_blacklist", "Report attempts to reach something on the blacklist.", readSwitch(&p.monitoring.blacklist)},
			fieldReader{"alert_on_unusual_volume", "Report unusual amounts of data.", readSwitch(&p.monitoring.volume)},
			fieldReader{"rate_limit_per_domain", "Maximum rate of requests to one domain.", readRate(&p.monitoring.rate, 1_000_000)},
		)},
	)
}

func (p *policyBlocks) readLogging() settingReader {
	all := readSwitch(&p.monitoring.all)
	return all.checkedBy(func(r *nodeReader, n *valueNode) {
		all.read(r, n)
		if p.monitoring.all == Off {
			r.addProblem(n, "leave it out; to record nothing at all, set auditLogging: false", "connections cannot be excluded from the audit log")
		}
	})
}

// levelsReader returns the reader for permission_levels. It shows the levels in inForce, which apply after
// translation.
func (p *policyBlocks) levelsReader(inForce *map[PermissionLevel]LevelRules) settingReader {
	read := func(r *nodeReader, n *valueNode) {
		p.levels = map[PermissionLevel]LevelRules{}
		r.eachEntry(n, func(key, value *valueNode) {
			level := PermissionLevel(key.text)
			if !slices.Contains(permissionLevels(), level) {
				r.addProblem(key, suggestName(key.text, namesOf(permissionLevels())), "unknown level %q", shortenText(key.text))
				return
			}
			l := &levelReader{policies: p, level: level}
			r.readBelow(key.text, value, l.reader().read)
			p.levels[level] = l.rules.withoutStar()
		})
	}
	var levels []fieldReader
	for _, level := range permissionLevels() {
		levels = append(levels, fieldReader{string(level), "", (&levelReader{policies: p, level: level}).reader()})
	}
	return settingReader{read, objectSchema(levels, true), func() any { return showLevels(*inForce) }}
}

func (l *levelReader) reader() settingReader {
	return readMergedObjects(
		fieldReader{"filesystem", "Files and folders of the workspace.", readMergedObjects(
			fieldReader{"read", "Paths that programs may read.", l.readPaths(&l.rules.Read)},
			fieldReader{"write", "Paths that programs may write. With read_only, only /workspace/scratch and below it.", l.readWritePaths()},
		)},
		fieldReader{"network", "Hosts that programs may reach.", l.networkReader()},
		fieldReader{"commands", "Commands that programs may start.", readMergedObjects(
			fieldReader{"allow", "Names of commands, or * for those that the setting commands names. Without that setting, each name is allowed with any arguments.", l.readCommands()},
			fieldReader{"deny", "Names of commands that are refused, or *.", l.readDeniedCommands()},
		)},
		fieldReader{"approval_required", "A person must approve each program and each single call.", readBool(&l.rules.ApprovalRequired)},
	)
}

// withoutStar returns the rules without a "*" in DenyCommands, which would deny all commands. In its place, the list
// of allowed commands becomes empty, which has the same effect. A list that allows single commands by name stays
// unchanged.
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

// readMergedObjects returns a reader for an object whose keys may also be spread over a list of objects. It merges
// these objects.
func readMergedObjects(fields ...fieldReader) settingReader {
	object := readObject(fields...)
	read := func(r *nodeReader, n *valueNode) {
		if n.kind != listKind {
			object.read(r, n)
			return
		}
		whole := *n
		whole.kind, whole.items = objectKind, nil
		for _, item := range n.items {
			if item.kind != objectKind {
				r.addMismatch(item, "an object with one of the keys")
				continue
			}
			whole.entries = append(whole.entries, item.entries...)
		}
		object.read(r, &whole)
	}
	return settingReader{read, anyOf(object.schema, listSchema(func() settingReader { return object })), object.show}
}

// levelReader reads the rules of one permission level.
type levelReader struct {
	policies *policyBlocks
	level    PermissionLevel
	rules    LevelRules
}

// addNote adds a note for the user about the setting that is being read. The note says which part of the setting is
// ignored, and why.
func (l *levelReader) addNote(r *nodeReader, format string, args ...any) {
	l.policies.notes = append(l.policies.notes, strings.Join(r.path, ".")+": "+fmt.Sprintf(format, args...))
}

// readPaths returns a reader for folders and files, given by the paths that programs use.
func (l *levelReader) readPaths(to *[]string) settingReader {
	list := func(written *[]string) settingReader {
		return readList(written, func(s *string) settingReader {
			return readChecked(s, "a path such as /workspace/output, or *", isPolicyPath)
		})
	}
	return list(to).checkedBy(func(r *nodeReader, n *valueNode) {
		var written []string
		list(&written).read(r, n)
		*to = []string{}
		for _, w := range written {
			inside, ok := workspacePath(w)
			switch {
			case w == "":
			case !ok:
				l.addNote(r, "%s is left out: programs can see only /workspace, no other folder of the machine", w)
			default:
				*to = append(*to, inside)
			}
		}
	})
}

// readWritePaths returns a reader for the paths that may be written. Level read_only may write only to its scratch
// folder.
func (l *levelReader) readWritePaths() settingReader {
	paths := l.readPaths(&l.rules.Write)
	return paths.checkedBy(func(r *nodeReader, n *valueNode) {
		paths.read(r, n)
		for _, w := range l.rules.Write {
			if l.level == PermissionReadOnly && !isWithin(w, Scratch) {
				r.addProblem(
					n, "write [], and give principals who may write the level write_restricted",
					"with read_only, programs can write only files in /workspace/%s", Scratch,
				)
				return
			}
		}
	})
}

func isPolicyPath(s string) bool {
	inner := strings.TrimSuffix(strings.TrimSuffix(s, "/**"), "/*")
	return s == "*" || s != "" && !strings.ContainsAny(inner, "*?[]\\\x00\n") && !slices.Contains(strings.Split(s, "/"), "..")
}

// workspacePath converts an absolute path, as programs use it, to a path relative to the workspace. It returns false
// for a path outside the workspace.
func workspacePath(s string) (string, bool) {
	if s == "*" || s == "/" || s == "/*" || s == "/**" {
		return ".", true
	}
	clean := path.Clean("/" + strings.TrimSuffix(strings.TrimSuffix(s, "/**"), "/*"))
	rest, ok := strings.CutPrefix(clean+"/", "/workspace/")
	return path.Clean("./" + rest), ok
}

// isWithin reports whether a path equals folder or is below folder.
func isWithin(name, folder string) bool {
	return folder == "." || name == folder || strings.HasPrefix(name, folder+"/")
}

// networkReader returns a reader for the hosts that a level may reach and those that it may not.
func (l *levelReader) networkReader() settingReader {
	var deny []string
	hosts := readMergedObjects(
		fieldReader{"allow", "Domains, or *. If network and network_policy are not set, these hosts are allowed, and * means every host over http and https. Otherwise, only hosts that they also allow.", readList(&l.rules.Hosts, l.readHost)},
		fieldReader{"deny", "Domains, addresses and ranges that are refused, or *.", readList(&deny, func(s *string) settingReader {
			return readChecked(s, "a domain, an address, a range such as 10.0.0.0/8, or *", func(v string) bool { return v == "*" || isTarget(v) })
		})},
	)
	return hosts.checkedBy(func(r *nodeReader, n *valueNode) {
		deny = nil
		hosts.read(r, n)
		l.joinHosts(r, n, deny)
	})
}

// joinHosts adds the denied hosts of a level to its rules.
func (l *levelReader) joinHosts(r *nodeReader, n *valueNode, deny []string) {
	l.rules.Hosts = slices.DeleteFunc(l.rules.Hosts, func(s string) bool { return s == "" })
	everything := slices.Contains(deny, "*")
	switch {
	case everything && slices.Contains(l.rules.Hosts, "*"):
		r.addProblem(n, "leave one of them out", "allow and deny both contain *")
	case everything && l.rules.Hosts == nil:
		l.rules.Hosts = []string{}
	case everything:
		l.addNote(r, "deny: * means that only the hosts of allow are reached, which is always the case")
	}
	l.rules.DenyHosts = slices.DeleteFunc(deny, func(s string) bool { return s == "*" || s == "" })
}

// readHost returns a reader for one host that may be reached.
func (l *levelReader) readHost(s *string) settingReader {
	return readText(s).checkedBy(func(r *nodeReader, n *valueNode) {
		written, ok := r.scalarText(n)
		_, notRange := netip.ParsePrefix(written)
		_, notAddress := netip.ParseAddr(written)
		switch {
		case !ok:
		case notRange == nil || notAddress == nil:
			r.addProblem(
				n, "write the domain; a server inside a private network is reached through an MCP server",
				"%s cannot be allowed: programs reach hosts only by name", n.describeValue(),
			)
		case written != "*" && !isDomain(written):
			r.addMismatch(n, "a domain such as *.example.com, or *")
		default:
			*s = written
		}
	})
}

// readCommands returns a reader for the commands that a level may start.
func (l *levelReader) readCommands() settingReader {
	var written []string
	names := readList(&written, func(s *string) settingReader {
		return readChecked(s, "the name of a command, or *; its arguments belong in the setting commands", isCommandName)
	})
	return names.checkedBy(func(r *nodeReader, n *valueNode) {
		names.read(r, n)
		l.rules.Commands = append([]string{}, slices.DeleteFunc(written, func(s string) bool { return s == "" })...)
		if slices.Contains(written, "*") {
			l.addNote(r, "* means the commands that the settings name, never every program of the machine")
		}
	})
}

func isCommandName(s string) bool {
	return s != "" && s != "." && s != ".." && !strings.ContainsAny(s, "/ \t\n\x00")
}

// readDeniedCommands returns a reader for the commands that a level may not start. It ignores their arguments and
// denies the whole command, because the same effect can be written in many ways.
func (l *levelReader) readDeniedCommands() settingReader {
	var written []string
	names := readList(&written, readText)
	return names.checkedBy(func(r *nodeReader, n *valueNode) {
		names.read(r, n)
		l.denyCommands(r, written)
	})
}

func (l *levelReader) denyCommands(r *nodeReader, written []string) {
	for _, w := range written {
		words := strings.Fields(w)
		switch {
		case len(words) == 0:
		case words[0] == "*":
			l.rules.DenyCommands = append(l.rules.DenyCommands, "*")
		case strings.ContainsAny(words[0], "(){}|&;<>$`"):
			l.addNote(r, "%s is left out: it is for a shell, and Retort starts commands without one", shortenText(w))
		default:
			l.rules.DenyCommands = append(l.rules.DenyCommands, path.Base(words[0]))
			if len(words) > 1 {
				l.addNote(r, "%s denies %s with any arguments, because the same command can be written in other ways", shortenText(w), path.Base(words[0]))
			}
		}
	}
}

// sandboxesReader returns a reader for sandbox_options. It refuses a description that claims more isolation than
// the sandbox has.
func (p *policyBlocks) sandboxesReader() settingReader {
	var fields []fieldReader
	for mode, most := range map[SandboxMode]int{SandboxProcess: 1, SandboxDocker: 2, SandboxGVisor: 2, SandboxVM: 3} {
		var ignored string
		fields = append(fields, fieldReader{string(mode), "", readObject(
			fieldReader{"isolation", "Moderate, Strong or Maximum.", readIsolationClaim(mode, most)},
			fieldReader{"overhead", "", readText(&ignored)}, fieldReader{"use_case", "", readText(&ignored)}, fieldReader{"security", "", readText(&ignored)},
		)})
	}
	slices.SortFunc(fields, func(a, b fieldReader) int { return strings.Compare(a.key, b.key) })
	options := hidden(readObject(fields...))
	return options.checkedBy(func(r *nodeReader, n *valueNode) {
		options.read(r, n)
		p.notes = append(
			p.notes,
			"sandbox_options only describes the sandboxes and changes nothing; sandboxMode chooses one, or auto to choose by the risk of each program",
		)
	})
}

// readIsolationClaim returns a reader for the key isolation of a sandbox's description. It refuses a claim that is
// stronger than the isolation of this kind of sandbox.
func readIsolationClaim(mode SandboxMode, most int) settingReader {
	ranked := []string{"moderate", "strong", "maximum"}
	var claim string
	return readText(&claim).checkedBy(func(r *nodeReader, n *valueNode) {
		written, ok := r.scalarText(n)
		claimed := slices.Index(ranked, strings.ToLower(written)) + 1
		switch {
		case !ok:
		case claimed == 0:
			r.addMismatch(n, "Moderate, Strong or Maximum")
		case claimed > most:
			stronger := map[int]SandboxMode{2: SandboxDocker, 3: SandboxVM}[claimed]
			r.addProblem(
				n, fmt.Sprintf("for %s write sandboxMode: %s", n.describeValue(), stronger),
				"the sandbox %s is not as strong as %s", mode, n.describeValue(),
			)
		}
	})
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
