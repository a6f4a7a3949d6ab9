package clientfiles

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// dialect selects the placeholders that a client replaces. Everything else is plain text.
type dialect struct {
	braces    bool // ${VAR} and ${VAR:-default}
	dollar    bool // $VAR
	percent   bool // %VAR%, on Windows
	prefixed  bool // ${env:VAR}, ${input:id}, ${workspaceFolder} and the like
	curly     bool // {env:VAR} and {file:path}
	inHeaders bool // ${VAR} and $VAR, and those in headers alone
}

// input describes a value that VS Code prompts the user for.
type input struct {
	ID, Description, Default string
}

// translator converts a client's strings so that they have the same meaning in Retort's server file.
type translator struct {
	dialect
	windows bool
	inputs  []input
	notes   []string // what a person should know
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*`)

func (t *translator) note(format string, args ...any) {
	if n := fmt.Sprintf(format, args...); !slices.Contains(t.notes, n) {
		t.notes = append(t.notes, n)
	}
}

// text translates one string. A ${ that the client would not replace becomes $${.
func (t *translator) text(s string) string {
	var b strings.Builder
	for s != "" {
		value, n := t.placeholder(s)
		switch {
		case n > 0:
			if before := b.String(); strings.HasSuffix(before, "$") && strings.HasPrefix(value, "${") {
				b.Reset()
				plain := strings.TrimRight(before, "$")
				b.WriteString(plain + "${RETORT_DOLLAR:-" + before[len(plain):] + "}") // $${ would be text
			}
			b.WriteString(value)
			s = s[n:]
		case strings.HasPrefix(s, "${"):
			b.WriteString("$${")
			s = s[2:]
		default:
			b.WriteByte(s[0])
			s = s[1:]
		}
	}
	return b.String()
}

// placeholder translates the placeholder at the beginning of s and returns its length in bytes. The length is 0 if
// s begins with no placeholder.
func (t *translator) placeholder(s string) (value string, n int) {
	if t.curly {
		if inside, ok := bracketed(s, "{env:"); ok && variable.FindString(inside) == inside && inside != "" {
			return "${" + inside + "}", len("{env:}") + len(inside)
		}
		if inside, ok := bracketed(s, "{file:"); ok {
			return t.unknown("file:" + inside), len("{file:}") + len(inside)
		}
	}
	if inside, ok := bracketed(s, "${"); ok {
		if value := t.inside(inside); value != "" {
			return value, len("${}") + len(inside)
		}
	}
	if t.dollar && len(s) > 1 && s[0] == '$' {
		if name := variable.FindString(s[1:]); name != "" {
			return "${" + name + "}", 1 + len(name)
		}
	}
	if t.percent && t.windows && s[0] == '%' {
		if name := variable.FindString(s[1:]); name != "" && strings.HasPrefix(s[1+len(name):], "%") {
			return "${" + name + "}", len("%%") + len(name)
		}
	}
	return "", 0
}

// bracketed returns the text between prefix at the beginning of s and the next }.
func bracketed(s, prefix string) (string, bool) {
	rest, ok := strings.CutPrefix(s, prefix)
	if !ok {
		return "", false
	}
	inside, _, found := strings.Cut(rest, "}")
	return inside, found
}

// inside translates the placeholder with s between ${ and }. It returns "" if the client would not replace it.
func (t *translator) inside(s string) string {
	if t.braces {
		name, fallback, has := strings.Cut(s, ":-")
		switch {
		case variable.FindString(name) != name || name == "":
		case has && strings.Contains(fallback, "${"):
			return t.unknown(s)
		default:
			return "${" + s + "}"
		}
	}
	if !t.prefixed {
		return ""
	}
	kind, rest, _ := strings.Cut(s, ":")
	switch kind {
	case "env":
		if variable.FindString(rest) == rest && rest != "" {
			return "${" + rest + "}"
		}
		return t.unknown(s)
	case "input":
		return t.input(rest)
	case "workspaceFolder", "userHome":
		return "${" + kind + "}"
	case "/", "pathSeparator":
		if t.windows {
			return `\`
		}
		return "/"
	case "file", "command", "config", "workspaceFolderBasename":
		return t.unknown(s)
	}
	return ""
}

// unknown returns a placeholder that only the client can replace. It is kept, so that the server has an error that
// names it.
func (t *translator) unknown(s string) string {
	t.note("${%s} means something only to the client: replace it before this server can start", s)
	return "${" + s + "}"
}

// input returns a variable in place of a value that VS Code prompts for.
func (t *translator) input(id string) string {
	name := inputVariable(id)
	asked := input{ID: id}
	for _, in := range t.inputs {
		if in.ID == id {
			asked = in
		} else if inputVariable(in.ID) == name && in.ID < id {
			name += "_2"
		}
	}
	if asked.Default != "" && !strings.ContainsAny(asked.Default, "${}") {
		return "${" + name + ":-" + asked.Default + "}"
	}
	if asked.Description != "" {
		t.note("set %s (%s)", name, asked.Description)
	} else {
		t.note("set %s, which the client asks for as %q", name, id)
	}
	return "${" + name + "}"
}

func inputVariable(id string) string {
	name := strings.Map(func(r rune) rune {
		if r == '_' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(id))
	if name == "" || '0' <= name[0] && name[0] <= '9' {
		name = "_" + name
	}
	return name
}
