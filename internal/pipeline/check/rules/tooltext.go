package rules

import (
	"regexp"
	"slices"
	"strings"
)

// toolPath returns the tool that a dotted path refers to, as "server.tool", or "". If the first name in the path has
// no other meaning, it is assumed to be a server.
func (p *analyzedTree) toolPath(path string) string {
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
	if !ok || server == "?" || server == "function" || server == "class" || strings.ContainsAny(path, "()?") || strings.Contains(tool, ".") ||
		p.globalNames()[server] {
		return ""
	}
	return path
}

// serverModule returns the server and the tool that a path names, such as github and createIssue for
// ./servers/github/index.createIssue. It returns the server as the name of its module. Both names are empty for paths
// that do not lead into the folder of servers.
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

// rawCallers lists functions that call the tool whose name is their first argument.
var rawCallers = []string{
	"callMCPTool", "call_mcp_tool", "@./client.callMCPTool", "@client.call_mcp_tool", "@client.callMCPTool",
	"@servers.client.call_mcp_tool",
}

// pageReaders lists functions that call the tool that is their first argument, once for each page of a list.
var pageReaders = []string{
	"pages", "@./client.pages", "@./servers/client.pages", "@./servers.pages", "@client.pages", "@servers.client.pages",
	"@servers.pages",
}

// pagedTools returns the tools that a call of pages reads.
func (j *treeJudge) pagedTools(path string, args []int32) []string {
	if !slices.Contains(pageReaders, path) || len(args) == 0 {
		return nil
	}
	return j.possiblePaths(args[0])
}

// commandNames matches names of parameters and tools that suggest that an argument is a command.
var commandNames = compileLazily(`(?i)(sql|query|queries|statement|command|cmd|script|shell|bash|exec|run|terminal|code|args|argv|input)`)

// sqlNames matches names of parameters and tools that suggest that an argument is SQL.
var sqlNames = compileLazily(`(?i)(sql|query|queries|statement|database|db|exec|run|script|command)`)

// toolCall finds dangerous commands in a tool's arguments.
func (j *treeJudge) toolCall(path string, args []int32) {
	for _, paged := range j.pagedTools(path, args) {
		j.toolCall(paged, args[1:])
	}
	tool := j.toolPath(path)
	raw := slices.Contains(rawCallers, path) && len(args) > 0
	if raw {
		tool, _ = j.constantText(args[0])
		args = args[1:]
	}
	if tool == "" && !raw {
		return
	}
	_, name, _ := strings.Cut(tool, ".")
	for _, arg := range args {
		j.judgeArgument(arg, name, commandNames().MatchString(name), maxGiven)
	}
}

const maxGiven = 8 // how deep in an argument commands are looked for

// anyCall judges the arguments of a call of an unknown function, which may be a tool. It judges only arguments whose
// names clearly mean a command or SQL.
func (j *treeJudge) anyCall(args []int32) {
	for _, arg := range args {
		list := []int32{arg}
		if o := j.onlyValue(arg); j.hasKind(o, Object) {
			list = j.childList(o)
		}
		for _, c := range list {
			if j.hasKind(c, Property) && slices.Contains([]string{"sql", "statement", "command", "cmd"}, j.keyOf(c)) {
				j.judgeArgument(c, "", false, maxGiven)
			}
		}
	}
}

// judgeArgument judges one argument. isCommand means that the tool probably runs the argument as a command.
func (j *treeJudge) judgeArgument(i int32, key string, isCommand bool, deep int) {
	if deep == 0 {
		return
	}
	i = j.onlyValue(i)
	if i < 0 {
		return
	}
	switch n := &j.Nodes[i]; {
	case n.Kind == Name && n.Bind > 0 && isCommand:
		for _, d := range j.defs[n.Bind] { // what a loop gives
			if list := j.onlyValue(d.node); len(d.keys) == 1 && d.keys[0] == "[]" && j.hasKind(list, Array) {
				j.judgeArgument(list, key, isCommand, deep-1)
			}
		}
	case n.Kind == Object || n.Kind == Array || n.Kind == Spread:
		if s, ok := j.concatConstants(j.childList(i), " "); ok && n.Kind == Array && isCommand {
			j.commandText(i, key, s)
		}
		for c := range j.childNodes(i) {
			j.judgeArgument(c, key, isCommand, deep-1)
		}
	case n.Kind == Property:
		key := j.keyOf(i)
		j.judgeArgument(j.valueOf(i), key, commandNames().MatchString(key), deep-1)
	case isCommand:
		j.commandText(i, key, j.knownText(i))
	}
}

// knownText returns the constant parts of a string expression, with a placeholder for each variable part.
func (j *treeJudge) knownText(i int32) string {
	if s, ok := j.constantText(i); ok {
		return s
	}
	var b strings.Builder
	for c := range j.subtreeNodes(i) {
		switch n := &j.Nodes[c]; {
		case n.Kind == String:
			b.WriteString(n.Text)
		case n.Kind == Name:
			if s, ok := j.constantText(c); ok {
				b.WriteString(s)
			} else {
				b.WriteString("_x_")
			}
		}
		if b.Len() > maxCommand {
			break
		}
	}
	return placeholderPattern().ReplaceAllString(b.String(), "x")
}

// placeholderPattern matches the placeholders in a format string, such as %s or {name}.
var placeholderPattern = compileLazily(`%[sd]|\{\w*\}`)

const (
	maxCommand  = 20_000  // bytes of a command that are looked at
	maxCommands = 400_000 // of all of them
)

func (j *treeJudge) commandText(i int32, key, text string) {
	if j.commands += len(text); len(text) > maxCommand || j.commands > maxCommands {
		j.addFinding("obfuscation.huge", i, "")
		return
	}
	if sqlNames().MatchString(key) {
		for _, statement := range strings.Split(sqlComment().ReplaceAllString(text, " "), ";") {
			for _, c := range sqlCommands {
				if m := c.pattern().FindString(strings.TrimSpace(statement)); m != "" && (c.but == nil || !c.but().MatchString(statement)) {
					j.addFinding(c.rule, i, m)
				}
			}
		}
	}
	for _, c := range shellCommands {
		if m := c.pattern().FindString(text); m != "" {
			j.addFinding(c.rule, i, strings.TrimSpace(m))
		}
	}
}

var sqlComment = compileLazily(`(?s)/\*.*?\*/|--[^\n]*`)

// destructiveText holds a pattern that matches destructive commands, and the rule that such a command violates.
type destructiveText struct {
	rule    string
	pattern func() *regexp.Regexp
	but     func() *regexp.Regexp // what makes it harmless
	// critical is set if a call with such a command must never be approved automatically, although its rule is less
	// severe than tool.shell.
	critical bool
}

const (
	quotablePattern   = "[\"`\\[]?[\\w$-]+[\"`\\]]?"
	identifierPattern = "(?:" + quotablePattern + `(?:\.` + quotablePattern + ")*)"
)

var sqlCommands = []destructiveText{
	{
		"tool.sql",
		compileLazily(
			`(?is)^drop\s+(table|database|schema|view|index|role|user|tablespace|owned)\s+(if\s+exists\s+)?` + identifierPattern + `(\s*,\s*` +
				identifierPattern +
				`)*\s*(cascade|restrict)?\s*(constraints)?$`,
		),
		compileLazily(`(?i)drop\s+table\s+(if\s+exists\s+)?"?(te?mp|scratch|staging)_`), false,
	},
	{"tool.sql", compileLazily(`(?is)^truncate\s+(table\s+)?` + identifierPattern), nil, false},
	{
		"tool.sql",
		compileLazily(
			`(?is)\bxp_cmdshell\b|\bcopy\b.*\b(from|to)\s+program\b|\binto\s+(outfile|dumpfile)\b|\bload_file\s*\(|\bpg_read_file\s*\(|\blo_import\s*\(`,
		),
		nil, false,
	},
	{"tool.sqlall", compileLazily(`(?is)^delete\s+from\s+` + identifierPattern + `\s*$`), nil, false},
	{
		"tool.sqlall",
		compileLazily(
			`(?is)^(delete\s+from|update)\s+` + identifierPattern + `.*\bwhere\s+(1\s*=\s*1|true|'?(\w+)'?\s*=\s*'?(\w+)'?\s+or\s+1\s*=\s*1)\s*$`,
		),
		nil, false,
	},
	{
		"tool.sqlall",
		compileLazily(
			`(?is)^(delete\s+from|update)\s+` + identifierPattern +
				`.*\b(where|or)\s+(not\s+)?('[^']*'|\d+)\s*(=|<>|!=|<=?|>=?|like)\s*('[^']*'|\d+)\s*($|;|\)|or\b|--)`,
		),
		nil, false,
	}, // what compares two constants is true of all rows, or of none
	{"tool.sqlall", compileLazily(`(?is)^update\s+` + identifierPattern + `\s+set\s+.*`), compileLazily(`(?i)\bwhere\b`), false},
	{"tool.sqlall", compileLazily(`(?is)^alter\s+table\s+` + identifierPattern + `\s+drop\s`), nil, false},
	{"tool.sqlall", compileLazily(`(?is)^grant\s+all\b|^alter\s+(user|role)\b|^create\s+(user|role)\b.*superuser`), nil, false},
	{"tool.sqlall", compileLazily(`(?is)^drop\s+table\s+(if\s+exists\s+)?"?(te?mp|scratch|staging)_`), nil, false},
}

// commandStart matches the start of a shell command.
const commandStart = `(?:^|[;&|(\n]\s*|\bsudo\s+|["'` + "`" + `]\s*|\s-c\s+["']?)`

var shellCommands = []destructiveText{
	{
		"tool.shell",
		compileLazily(
			`(?i)` + commandStart + `rm\s+(?:-{1,2}[\w-]+\s+)*-\w*[rR]\w*\s+(?:-{1,2}[\w-]+\s+)*["']?(?:/|~|\.\.|\$HOME|\$\{HOME\}|\*|%)`,
		),
		nil, false,
	},
	{"tool.shell", compileLazily(`(?i)\brm\s+(?:-\w+\s+)*--no-preserve-root`), nil, false},
	{"tool.shell", compileLazily(`(?i)` + commandStart + `(mkfs(\.\w+)?\s|wipefs\s|fdisk\s+/dev|shred\s|dd\s+.*\bof=/dev/)`), nil, false},
	{"tool.shell", compileLazily(`>\s*/dev/(sd|nvme|hd|vd|mem|kmem)|:\(\)\s*\{.*\|.*&\s*\}\s*;`), nil, false},
	{
		"tool.shell",
		compileLazily(
			`(?i)\b(curl|wget|fetch)\b[^\n|]*\|\s*(sudo\s+)?(ba|z|da|k)?sh\b|\bbase64\s+(-d|--decode|-D)\b[^\n|]*\|\s*(ba|z|da)?sh\b|\b(curl|wget)\b[^\n|]*\|\s*(python3?|perl|node)\b`,
		),
		nil, false,
	},
	{
		"tool.shell",
		compileLazily(`(?i)/dev/tcp/|\bnc(at)?\s+(-\w+\s+)*-e\b|\bnc\s+.*\|\s*(ba)?sh\b|\bsh\s+-i\s*[<>]&|\bbash\s+-i\b`),
		nil, false,
	},
	{
		"tool.shell",
		compileLazily(
			`(?i)` + commandStart +
				`(chmod\s+(-R\s+)?[0-7]?777\s+/\S*|chmod\s+-R\s+777|chown\s+-R\s+\S+\s+/|shutdown\b|reboot\b|halt\b|kill\s+-9\s+(-1|1)\b|killall\s+-9|userdel\s|iptables\s+-F|crontab\s+-r|format\s+c:|del\s+/[sfq])`,
		),
		nil, false,
	},
	{"tool.sudo", compileLazily(`(?i)` + commandStart + `(sudo|su\s+-|doas)\b`), nil, true},
	{"tool.sudo", compileLazily(`(?i)` + commandStart + `chmod\s+(-\w+\s+)*([0-7]?777|a\+rwx|\+s|[246][0-7]{3})\b`), nil, true},
	{"tool.sudo", compileLazily(`(?i)` + commandStart + `rm\s+(?:-{1,2}[\w-]+\s+)*-\w*[rR]`), nil, true},
	{"tool.sudo", compileLazily(`(?i)` + commandStart + `dd\s+(?:[^\s;&|]+\s+)*["']?if=`), nil, true},
	{"tool.sudo", compileLazily(`(?i)` + commandStart + `git\s+(push\s+.*--force\b|reset\s+--hard|clean\s+-\w*f)`), nil, false},
}
