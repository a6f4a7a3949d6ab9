package clientfiles

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// placeholderDialect says which forms of placeholders a client replaces in the strings of its file. It leaves all
// other text unchanged.
type placeholderDialect struct {
	braces    bool // ${VAR} and ${VAR:-default}
	dollar    bool // $VAR
	percent   bool // %VAR%, on Windows
	prefixed  bool // ${env:VAR}, ${input:id}, ${workspaceFolder} and the like
	curly     bool // {env:VAR} and {file:path}
	inHeaders bool // ${VAR} and $VAR, but only in headers
}

// promptInput describes a value that VS Code prompts the user for.
type promptInput struct {
	ID, Description, Default string
}

// placeholderTranslator converts a client's strings so that they have the same meaning in Retort's server file.
type placeholderTranslator struct {
	placeholderDialect
	windows bool
	inputs  []promptInput
	notes   []string // what the user should know
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*`)

func (t *placeholderTranslator) addNote(format string, args ...any) {
	if n := fmt.Sprintf(format, args...); !slices.Contains(t.notes, n) {
		t.notes = append(t.notes, n)
	}
}

// translateText translates one string. A ${ that the client would not replace becomes $${.
func (t *placeholderTranslator) translateText(s string) string {
	var b strings.Builder
	for s != "" {
		value, n := t.translatePlaceholder(s)
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

// translatePlaceholder translates the placeholder at the beginning of s and returns its length in bytes. The length is
// 0 if s begins with no placeholder.
func (t *placeholderTranslator) translatePlaceholder(s string) (value string, n int) {
	if t.curly {
		if inside, ok := cutBracketed(s, "{env:"); ok && variableName.FindString(inside) == inside && inside != "" {
			return "${" + inside + "}", len("{env:}") + len(inside)
		}
		if inside, ok := cutBracketed(s, "{file:"); ok {
			return t.keepUnknown("file:" + inside), len("{file:}") + len(inside)
		}
	}
	if inside, ok := cutBracketed(s, "${"); ok {
		if value := t.translateInner(inside); value != "" {
			return value, len("${}") + len(inside)
		}
	}
	if t.dollar && len(s) > 1 && s[0] == '$' {
		if name := variableName.FindString(s[1:]); name != "" {
			return "${" + name + "}", 1 + len(name)
		}
	}
	if t.percent && t.windows && s[0] == '%' {
		if name := variableName.FindString(s[1:]); name != "" && strings.HasPrefix(s[1+len(name):], "%") {
			return "${" + name + "}", len("%%") + len(name)
		}
	}
	return "", 0
}

// cutBracketed returns the text between a prefix such as "${", with which s must begin, and the next }.
func cutBracketed(s, prefix string) (string, bool) {
	rest, ok := strings.CutPrefix(s, prefix)
	if !ok {
		return "", false
	}
	inside, _, found := strings.Cut(rest, "}")
	return inside, found
}

// translateInner translates a client's placeholder ${...}. The argument s is the text inside the braces. It returns
// "" if the client would not replace this placeholder.
func (t *placeholderTranslator) translateInner(s string) string {
	if t.braces {
		name, fallback, has := strings.Cut(s, ":-")
		switch {
		case variableName.FindString(name) != name || name == "":
		case has && strings.Contains(fallback, "${"):
			return t.keepUnknown(s)
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
		if variableName.FindString(rest) == rest && rest != "" {
			return "${" + rest + "}"
		}
		return t.keepUnknown(s)
	case "input":
		return t.inputReference(rest)
	case "workspaceFolder", "userHome":
		return "${" + kind + "}"
	case "/", "pathSeparator":
		if t.windows {
			return `\`
		}
		return "/"
	case "file", "command", "config", "workspaceFolderBasename":
		return t.keepUnknown(s)
	}
	return ""
}

// keepUnknown returns the placeholder ${s} unchanged, because only the client can replace it. Starting the server in
// Retort then fails with an error that names the placeholder.
func (t *placeholderTranslator) keepUnknown(s string) string {
	t.addNote("${%s} has a meaning only for the client: replace it, otherwise this server cannot start", s)
	return "${" + s + "}"
}

// inputReference translates a placeholder for an input, for which VS Code asks the user. It returns a placeholder for
// an environment variable, from which Retort takes the value instead.
func (t *placeholderTranslator) inputReference(id string) string {
	name := inputVariable(id)
	asked := promptInput{ID: id}
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
		t.addNote("set %s (%s)", name, asked.Description)
	} else {
		t.addNote("set %s, which the client asks for as %q", name, id)
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
