package config

import (
	"fmt"
	"strings"
)

// variableLookup finds the values of the variables that the ${…} placeholders in a file name.
type variableLookup struct {
	getenv func(string) (string, bool)
	// builtin has the variables that editors define, such as workspaceFolder and userHome. The environment takes
	// precedence.
	builtin map[string]string
}

// unsetVariable reports a variable that has neither a value nor a default.
type unsetVariable struct{ name string }

func (e *unsetVariable) Error() string { return fmt.Sprintf("the variable %s is not set", e.name) }

// expandText replaces ${VAR}, ${VAR:-default} and VS Code's ${env:VAR}. As in a shell, the default also replaces an
// empty value, and may itself contain variables. $${ is a literal ${. Expanded values are not expanded again.
func (v variableLookup) expandText(s string) (string, error) {
	return v.expandDeep(s, 0)
}

func (v variableLookup) expandDeep(s string, depth int) (string, error) {
	if !strings.Contains(s, "${") {
		return s, nil
	}
	if depth > 16 {
		return "", fmt.Errorf("defaults of variables are nested too deeply")
	}
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, "${")
		if !found {
			b.WriteString(s)
			return b.String(), nil
		}
		if plain, escaped := strings.CutSuffix(before, "$"); escaped {
			b.WriteString(plain + "${")
			s = after
			continue
		}
		b.WriteString(before)
		end := closingBrace(after)
		if end < 0 {
			return "", fmt.Errorf("${%s has no closing }", shortenText(after))
		}
		value, err := v.lookupReference(after[:end], depth)
		if err != nil {
			return "", err
		}
		b.WriteString(value)
		s = after[end+1:]
	}
}

// closingBrace returns the index of the } that matches a ${ just before s, or -1.
func closingBrace(s string) int {
	for depth, i := 0, 0; i < len(s); i++ {
		switch {
		case strings.HasPrefix(s[i:], "${"):
			depth++
			i++
		case s[i] == '}' && depth == 0:
			return i
		case s[i] == '}':
			depth--
		}
	}
	return -1
}

// lookupReference returns the value of the text between ${ and }.
func (v variableLookup) lookupReference(inside string, depth int) (string, error) {
	name, fallback, hasFallback := strings.Cut(inside, ":-")
	name = strings.TrimPrefix(name, "env:")
	if input, ok := strings.CutPrefix(name, "input:"); ok {
		return "", fmt.Errorf("${input:%s} asks a person, which only an editor can do; use ${VAR} and an environment variable", shortenText(input))
	}
	if file, ok := strings.CutPrefix(name, "file:"); ok {
		return "", fmt.Errorf(
			"${file:%s} stands for the content of a file, which Retort does not read; use ${VAR} and an environment variable",
			shortenText(file),
		)
	}
	if !isVariable(name) {
		return "", fmt.Errorf("${%s} does not name a variable; a plain ${ is written $${", shortenText(inside))
	}
	value, set := v.getValue(name)
	switch {
	case value != "" || set && !hasFallback:
		return value, nil
	case hasFallback:
		return v.expandDeep(fallback, depth+1)
	}
	return "", &unsetVariable{name}
}

func (v variableLookup) getValue(name string) (string, bool) {
	if v.getenv != nil {
		if value, ok := v.getenv(name); ok {
			return value, true
		}
	}
	value, ok := v.builtin[name]
	return value, ok
}

func isVariable(s string) bool {
	for i, c := range []byte(s) {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}
