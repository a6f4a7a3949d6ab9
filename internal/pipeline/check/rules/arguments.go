package rules

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// ArgumentTargets lists the files, hosts and commands that the arguments of a tool call name.
type ArgumentTargets struct {
	Files    []string // by keys such as path and filename
	Domains  []string // hosts of the addresses in its texts
	Commands []string // by keys such as command, with their arguments
	// Critical holds a command that destroys or takes over a system, as written in the arguments, or "".
	Critical string
}

var (
	fileKeys    = compileLazily(`(?i)(path|paths|file|files|file_?name|directory|folder)$|^(src|dst|dir|source|destination|dest)$`)
	shellKeys   = compileLazily(`(?i)(command|commands|cmd|shell|bash|script|executable|terminal|exec)$|^(program|run|line)$`)
	listKeys    = compileLazily(`(?i)^(args|arguments|argv|params|parameters|options|flags)$`)
	shellTools  = compileLazily(`(?i)(shell|bash|command|cmd|exec|terminal|ssh|run|script)`)
	inlineShell = compileLazily(`(?i)\b(sh|bash|zsh|dash|ksh|cmd|powershell|pwsh)(\.exe)?\s+(-\w+\s+)*[-/]c\w*\s+`)
)

// isCritical reports whether a command is so dangerous that a call with it always needs a person's approval.
func isCritical(c destructiveText) bool {
	return c.rule == "tool.shell" || c.critical
}

// ReadArguments finds the files, hosts and commands in the arguments of a call. The name of the tool indicates
// whether the arguments are commands. The result is empty if arguments is not valid JSON.
func ReadArguments(tool string, arguments []byte) ArgumentTargets {
	var value any
	if json.Unmarshal(arguments, &value) != nil {
		return ArgumentTargets{}
	}
	r := argumentReader{shell: shellTools().MatchString(tool)}
	r.readValue("", value, 0)
	return r.found
}

const maxNesting = 32 // levels of arguments that are read

type argumentReader struct {
	shell bool // the tool runs commands, by its name
	found ArgumentTargets
}

func (r *argumentReader) readValue(key string, value any, depth int) {
	if depth > maxNesting {
		return
	}
	switch v := value.(type) {
	case string:
		r.readText(key, v)
	case []any:
		if line := joinList(v); line != "" && (shellKeys().MatchString(key) || r.shell && listKeys().MatchString(key)) {
			r.readCommand(line)
		}
		for _, item := range v {
			r.readValue(key, item, depth+1)
		}
	case map[string]any:
		r.readObject(v, depth)
	}
}

// readObject reads the members of an object. It combines a command with the arguments next to it, as in {"command":
// "rm", "args": ["-rf", "/"]}.
func (r *argumentReader) readObject(object map[string]any, depth int) {
	keys := slices.Sorted(maps.Keys(object))
	for _, key := range keys {
		name, isText := object[key].(string)
		if !isText || !shellKeys().MatchString(key) {
			continue
		}
		for _, other := range keys {
			if list, isList := object[other].([]any); isList && listKeys().MatchString(other) {
				name += " " + joinList(list)
			} else if more, isText := object[other].(string); isText && listKeys().MatchString(other) {
				name += " " + more
			}
		}
		r.readCommand(name)
	}
	for _, key := range keys {
		r.readValue(key, object[key], depth+1)
	}
}

func (r *argumentReader) readText(key, text string) {
	for _, d := range textDomains(text) {
		r.found.Domains = addDistinct(r.found.Domains, d)
	}
	switch {
	case fileKeys().MatchString(key):
		r.found.Files = addDistinct(r.found.Files, shortenText(text))
	case shellKeys().MatchString(key): // as a part of its object
	case r.shell:
		r.judgeText(text)
	}
}

func (r *argumentReader) readCommand(line string) {
	r.found.Commands = addDistinct(r.found.Commands, shortenText(line))
	r.judgeText(line)
}

// judgeText finds critical commands in a text, including nested shell commands.
func (r *argumentReader) judgeText(text string) {
	if r.found.Critical != "" {
		return
	}
	if len(text) > maxCommand {
		r.found.Critical = "a command that is too long to be judged"
		return
	}
	plain := inlineShell().ReplaceAllString(strings.NewReplacer(`\`+"\n", " ", `"`, " ", "'", " ").Replace(text), "; ")
	for _, c := range shellCommands {
		if !isCritical(c) {
			continue
		}
		for _, spelled := range []string{text, plain} {
			if m := c.pattern().FindString(spelled); m != "" {
				r.found.Critical = shortenText(strings.TrimSpace(m))
				return
			}
		}
	}
}

func joinList(list []any) string {
	var parts []string
	for _, item := range list {
		if s, isText := item.(string); isText {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, " ")
}

const maxShown = 200 // bytes of one name or command

func shortenText(s string) string {
	if len(s) <= maxShown {
		return s
	}
	end := maxShown
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}
