package rules

import (
	"regexp"
	"slices"
	"strings"
)

// toolPath returns the tool that a path refers to, as "server.tool", or "". A path whose first name has no other
// meaning begins with a server's name.
func (p *program) toolPath(path string) string {
	if rest, ok := strings.CutPrefix(path, "servers."); ok && strings.Contains(rest, ".") {
		return rest
	}
	if strings.HasPrefix(path, "@") {
		module, member := serverModule(path[1:])
		if module == "" {
			return ""
		}
		return strings.Trim(module+"."+member, ".")
	}
	server, tool, ok := strings.Cut(path, ".")
	if !ok || server == "?" || server == "function" || server == "class" || strings.ContainsAny(path, "()?") || strings.Contains(tool, ".") || p.globals()[server] {
		return ""
	}
	return path
}

// serverModule splits the path of a member of a server's module.
func serverModule(path string) (module, member string) {
	k := strings.LastIndex(path, "servers")
	if k < 0 {
		return "", ""
	}
	rest := strings.TrimLeft(path[k+len("servers"):], "/.")
	rest = strings.Replace(rest, ".js", "", 1)
	rest = strings.Replace(rest, ".ts", "", 1)
	rest = strings.Replace(rest, "/index", "", 1)
	if strings.ContainsAny(rest, "()?") {
		return "", ""
	}
	rest = strings.ReplaceAll(rest, "/", ".")
	module, member, _ = strings.Cut(rest, ".")
	return module, strings.TrimPrefix(member, "default.")
}

// rawCallers lists functions that call the tool named by their first argument.
var rawCallers = []string{"callMCPTool", "call_mcp_tool", "@./client.callMCPTool", "@client.call_mcp_tool", "@client.callMCPTool", "@servers.client.call_mcp_tool"}

// commandNames lists parameters, and parts of tool names, that take commands.
var commandNames = lazily(`(?i)(sql|query|queries|statement|command|cmd|script|shell|bash|exec|run|terminal|code|args|argv|input)`)

// sqlNames lists those of commandNames that take SQL.
var sqlNames = lazily(`(?i)(sql|query|queries|statement|database|db|exec|run|script|command)`)

// toolCall finds dangerous commands in a tool's arguments.
func (j *judge) toolCall(path string, args []int32) {
	tool := j.toolPath(path)
	raw := slices.Contains(rawCallers, path) && len(args) > 0
	if raw {
		tool, _ = j.text(args[0])
		args = args[1:]
	}
	if tool == "" && !raw {
		return
	}
	_, name, _ := strings.Cut(tool, ".")
	for _, arg := range args {
		j.given(arg, name, commandNames().MatchString(name), maxGiven)
	}
}

const maxGiven = 8 // how deep in an argument commands are looked for

// anyCall judges the arguments of an unknown function, which may be a tool. Only names with an obvious meaning count.
func (j *judge) anyCall(args []int32) {
	for _, arg := range args {
		list := []int32{arg}
		if o := j.only(arg); j.is(o, Object) {
			list = j.list(o)
		}
		for _, c := range list {
			if j.is(c, Property) && slices.Contains([]string{"sql", "statement", "command", "cmd"}, j.keyOf(c)) {
				j.given(c, "", false, maxGiven)
			}
		}
	}
}

// given judges one argument. isCommand means that the parameter takes commands.
func (j *judge) given(i int32, key string, isCommand bool, deep int) {
	if deep == 0 {
		return
	}
	i = j.only(i)
	if i < 0 {
		return
	}
	switch n := &j.Nodes[i]; {
	case n.Kind == Name && n.Bind > 0 && isCommand:
		for _, d := range j.defs[n.Bind] { // what a loop gives
			if list := j.only(d.node); len(d.keys) == 1 && d.keys[0] == "[]" && j.is(list, Array) {
				j.given(list, key, isCommand, deep-1)
			}
		}
	case n.Kind == Object || n.Kind == Array || n.Kind == Spread:
		if s, ok := j.concat(j.list(i), " "); ok && n.Kind == Array && isCommand {
			j.commandText(i, key, s)
		}
		for c := range j.children(i) {
			j.given(c, key, isCommand, deep-1)
		}
	case n.Kind == Property:
		key := j.keyOf(i)
		j.given(j.valueOf(i), key, commandNames().MatchString(key), deep-1)
	case isCommand:
		j.commandText(i, key, j.knownText(i))
	}
}

// knownText returns the constant parts of a string. Each other part is replaced by a blank name.
func (j *judge) knownText(i int32) string {
	if s, ok := j.text(i); ok {
		return s
	}
	var b strings.Builder
	for c := range j.inside(i) {
		switch n := &j.Nodes[c]; {
		case n.Kind == String:
			b.WriteString(n.Text)
		case n.Kind == Name:
			if s, ok := j.text(c); ok {
				b.WriteString(s)
			} else {
				b.WriteString("_x_")
			}
		}
		if b.Len() > maxCommand {
			break
		}
	}
	return placeholder().ReplaceAllString(b.String(), "x")
}

// placeholder matches the places where a format inserts values.
var placeholder = lazily(`%[sd]|\{\w*\}`)

const (
	maxCommand  = 20_000  // bytes of a command that are looked at
	maxCommands = 400_000 // of all of them
)

func (j *judge) commandText(i int32, key, text string) {
	if j.commands += len(text); len(text) > maxCommand || j.commands > maxCommands {
		j.find("obfuscation.huge", i, "")
		return
	}
	if sqlNames().MatchString(key) {
		for _, statement := range strings.Split(sqlComment().ReplaceAllString(text, " "), ";") {
			for _, c := range sqlCommands {
				if m := c.pattern().FindString(strings.TrimSpace(statement)); m != "" && (c.but == nil || !c.but().MatchString(statement)) {
					j.find(c.rule, i, m)
				}
			}
		}
	}
	for _, c := range shellCommands {
		if m := c.pattern().FindString(text); m != "" {
			j.find(c.rule, i, strings.TrimSpace(m))
		}
	}
}

var sqlComment = lazily(`(?s)/\*.*?\*/|--[^\n]*`)

// command matches a text that destroys something where it is run.
type command struct {
	rule    string
	pattern func() *regexp.Regexp
	but     func() *regexp.Regexp // what makes it harmless
	// critical means that a call with it is never approved automatically, although its rule is milder than
	// tool.shell.
	critical bool
}

const (
	quotable   = "[\"`\\[]?[\\w$-]+[\"`\\]]?"
	identifier = "(?:" + quotable + `(?:\.` + quotable + ")*)"
)

var sqlCommands = []command{
	{"tool.sql", lazily(`(?is)^drop\s+(table|database|schema|view|index|role|user|tablespace|owned)\s+(if\s+exists\s+)?` + identifier + `(\s*,\s*` + identifier + `)*\s*(cascade|restrict)?\s*(constraints)?$`), lazily(`(?i)drop\s+table\s+(if\s+exists\s+)?"?(te?mp|scratch|staging)_`), false},
	{"tool.sql", lazily(`(?is)^truncate\s+(table\s+)?` + identifier), nil, false},
	{"tool.sql", lazily(`(?is)\bxp_cmdshell\b|\bcopy\b.*\b(from|to)\s+program\b|\binto\s+(outfile|dumpfile)\b|\bload_file\s*\(|\bpg_read_file\s*\(|\blo_import\s*\(`), nil, false},
	{"tool.sqlall", lazily(`(?is)^delete\s+from\s+` + identifier + `\s*$`), nil, false},
	{"tool.sqlall", lazily(`(?is)^(delete\s+from|update)\s+` + identifier + `.*\bwhere\s+(1\s*=\s*1|true|'?(\w+)'?\s*=\s*'?(\w+)'?\s+or\s+1\s*=\s*1)\s*$`), nil, false},
	{"tool.sqlall", lazily(`(?is)^(delete\s+from|update)\s+` + identifier + `.*\b(where|or)\s+(not\s+)?('[^']*'|\d+)\s*(=|<>|!=|<=?|>=?|like)\s*('[^']*'|\d+)\s*($|;|\)|or\b|--)`), nil, false}, // what compares two constants is true of all rows, or of none
	{"tool.sqlall", lazily(`(?is)^update\s+` + identifier + `\s+set\s+.*`), lazily(`(?i)\bwhere\b`), false},
	{"tool.sqlall", lazily(`(?is)^alter\s+table\s+` + identifier + `\s+drop\s`), nil, false},
	{"tool.sqlall", lazily(`(?is)^grant\s+all\b|^alter\s+(user|role)\b|^create\s+(user|role)\b.*superuser`), nil, false},
	{"tool.sqlall", lazily(`(?is)^drop\s+table\s+(if\s+exists\s+)?"?(te?mp|scratch|staging)_`), nil, false},
}

// start matches the start of a shell command.
const start = `(?:^|[;&|(\n]\s*|\bsudo\s+|["'` + "`" + `]\s*|\s-c\s+["']?)`

var shellCommands = []command{
	{"tool.shell", lazily(`(?i)` + start + `rm\s+(?:-{1,2}[\w-]+\s+)*-\w*[rR]\w*\s+(?:-{1,2}[\w-]+\s+)*["']?(?:/|~|\.\.|\$HOME|\$\{HOME\}|\*|%)`), nil, false},
	{"tool.shell", lazily(`(?i)\brm\s+(?:-\w+\s+)*--no-preserve-root`), nil, false},
	{"tool.shell", lazily(`(?i)` + start + `(mkfs(\.\w+)?\s|wipefs\s|fdisk\s+/dev|shred\s|dd\s+.*\bof=/dev/)`), nil, false},
	{"tool.shell", lazily(`>\s*/dev/(sd|nvme|hd|vd|mem|kmem)|:\(\)\s*\{.*\|.*&\s*\}\s*;`), nil, false},
	{"tool.shell", lazily(`(?i)\b(curl|wget|fetch)\b[^\n|]*\|\s*(sudo\s+)?(ba|z|da|k)?sh\b|\bbase64\s+(-d|--decode|-D)\b[^\n|]*\|\s*(ba|z|da)?sh\b|\b(curl|wget)\b[^\n|]*\|\s*(python3?|perl|node)\b`), nil, false},
	{"tool.shell", lazily(`(?i)/dev/tcp/|\bnc(at)?\s+(-\w+\s+)*-e\b|\bnc\s+.*\|\s*(ba)?sh\b|\bsh\s+-i\s*[<>]&|\bbash\s+-i\b`), nil, false},
	{"tool.shell", lazily(`(?i)` + start + `(chmod\s+(-R\s+)?[0-7]?777\s+/\S*|chmod\s+-R\s+777|chown\s+-R\s+\S+\s+/|shutdown\b|reboot\b|halt\b|kill\s+-9\s+(-1|1)\b|killall\s+-9|userdel\s|iptables\s+-F|crontab\s+-r|format\s+c:|del\s+/[sfq])`), nil, false},
	{"tool.sudo", lazily(`(?i)` + start + `(sudo|su\s+-|doas)\b`), nil, true},
	{"tool.sudo", lazily(`(?i)` + start + `chmod\s+(-\w+\s+)*([0-7]?777|a\+rwx|\+s|[246][0-7]{3})\b`), nil, true},
	{"tool.sudo", lazily(`(?i)` + start + `rm\s+(?:-{1,2}[\w-]+\s+)*-\w*[rR]`), nil, true},
	{"tool.sudo", lazily(`(?i)` + start + `dd\s+(?:[^\s;&|]+\s+)*["']?if=`), nil, true},
	{"tool.sudo", lazily(`(?i)` + start + `git\s+(push\s+.*--force\b|reset\s+--hard|clean\s+-\w*f)`), nil, false},
}
