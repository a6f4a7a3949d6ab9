package config

import (
	"fmt"
	"strings"
)

// variables resolves the ${…} placeholders of a file.
type variables struct {
	getenv  func(string) (string, bool)
	builtin map[string]string // what editors define: workspaceFolder, userHome; the environment goes first
}

// unset reports a variable that has neither a value nor a default.
type unset struct{ name string }

func (e *unset) Error() string { return fmt.Sprintf("the variable %s is not set", e.name) }

// expand replaces ${VAR}, ${VAR:-default} and VS Code's ${env:VAR}. As in a shell, the default also replaces an empty
// value, and may itself contain variables. $${ is a literal ${. Expanded values are not expanded again.
func (v variables) expand(s string) (string, error) {
	return v.expandDeep(s, 0)
}

func (v variables) expandDeep(s string, depth int) (string, error) {
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
		end := closing(after)
		if end < 0 {
			return "", fmt.Errorf("${%s has no closing }", shorten(after))
		}
		value, err := v.lookup(after[:end], depth)
		if err != nil {
			return "", err
		}
		b.WriteString(value)
		s = after[end+1:]
	}
}

// closing returns the index of the } that matches a ${ just before s, or -1.
func closing(s string) int {
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

// lookup returns the value of the text between ${ and }.
func (v variables) lookup(inside string, depth int) (string, error) {
	name, fallback, hasFallback := strings.Cut(inside, ":-")
	name = strings.TrimPrefix(name, "env:")
	if input, ok := strings.CutPrefix(name, "input:"); ok {
		return "", fmt.Errorf("${input:%s} asks a person, which only an editor can do; use ${VAR} and an environment variable", shorten(input))
	}
	if file, ok := strings.CutPrefix(name, "file:"); ok {
		return "", fmt.Errorf(
			"${file:%s} is the content of a file, which is not read here; use ${VAR} and an environment variable",
			shorten(file),
		)
	}
	if !isVariable(name) {
		return "", fmt.Errorf("${%s} does not name a variable; a plain ${ is written $${", shorten(inside))
	}
	value, set := v.get(name)
	switch {
	case value != "" || set && !hasFallback:
		return value, nil
	case hasFallback:
		return v.expandDeep(fallback, depth+1)
	}
	return "", &unset{name}
}

func (v variables) get(name string) (string, bool) {
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
