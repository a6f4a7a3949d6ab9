package config

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"retort/internal/core"
)

// reader converts nodes to values and collects the problems found in them.
type reader struct {
	file     string // for people
	dir      string // relative paths start here
	home     string // ~ means this
	vars     variables
	path     []string // keys down to the value being read
	piiTypes []string // that the settings may name
	read     func(file string) ([]byte, error)
	problems Problems
}

// into reads the value of a node into the variable that the into was made for. For an invalid value it adds a problem
// and does not change the variable.
type into func(r *reader, n *node)

type field struct {
	key  string
	into into
}

func (r *reader) at(n *node) Place { return Place{r.file, n.line, n.column} }

// fail adds a problem with the value n. The message begins with the path of keys that leads to it.
func (r *reader) fail(n *node, hint, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	if len(r.path) > 0 {
		message = strings.Join(r.path, ".") + ": " + message
	}
	r.problems.add(r.at(n), hint, "%s", message)
}

func (r *reader) want(n *node, what string) {
	r.fail(n, "", "expected %s, found %s", what, n.describe())
}

// below reads n with key added to the path.
func (r *reader) below(key string, n *node, read into) {
	r.path = append(r.path, key)
	read(r, n)
	r.path = r.path[:len(r.path)-1]
}

// object reads an object that may have only these keys.
func object(fields ...field) into { return fieldsOf(fields, true) }

// openObject reads an object and ignores keys that it does not know.
func openObject(fields ...field) into { return fieldsOf(fields, false) }

func fieldsOf(fields []field, closed bool) into {
	return func(r *reader, n *node) {
		r.each(n, func(key, value *node) {
			for _, f := range fields {
				if f.key == key.text {
					r.below(f.key, value, f.into)
					return
				}
			}
			if closed {
				r.unknown(key, fields)
			}
		})
	}
}

func (r *reader) unknown(key *node, fields []field) {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.key
	}
	r.fail(key, suggest(key.text, names), "unknown key %q", shorten(key.text))
}

// suggest returns a hint with the nearest of names. If none is near, it lists all of them, or the first 20.
func suggest(name string, names []string) string {
	if near := core.NearestNames(name, names, 1); len(near) > 0 {
		return "did you mean " + near[0] + "?"
	}
	switch n := len(names); {
	case n == 0:
		return ""
	case n > 20:
		return fmt.Sprintf("known are %s and %d more", strings.Join(names[:20], ", "), n-20)
	}
	return "known are " + strings.Join(names, ", ")
}

// each calls visit for the entries of an object, once for each key. It skips null values and adds a problem for each
// repeated key.
func (r *reader) each(n *node, visit func(key, value *node)) {
	switch n.kind {
	case nullKind:
		return
	case objectKind:
	default:
		r.want(n, "an object")
		return
	}
	first := map[string]*node{}
	for _, e := range n.entries {
		if earlier, twice := first[e.key.text]; twice {
			r.fail(e.key, "", "the key %q is used twice, first in line %d", shorten(e.key.text), earlier.line)
			continue
		}
		first[e.key.text] = e.key
		if e.value.kind != nullKind {
			visit(e.key, e.value)
		}
	}
}

// dict reads an object with arbitrary keys. check adds a problem for an invalid key.
func dict[V any](m *map[string]V, check into, read func(*V) into) into {
	return func(r *reader, n *node) {
		found := map[string]V{}
		r.each(n, func(key, value *node) {
			check(r, key)
			var v V
			r.below(key.text, value, read(&v))
			found[key.text] = v
		})
		*m = found
	}
}

// list reads a list whose items are read with read.
func list[V any](values *[]V, read func(*V) into) into {
	return func(r *reader, n *node) {
		if n.kind != listKind {
			r.want(n, "a list")
			return
		}
		found := make([]V, len(n.items))
		for i, item := range n.items {
			r.below(strconv.Itoa(i+1), item, read(&found[i]))
		}
		*values = found
	}
}

// text reads a string. It also takes numbers and booleans as written, since people write PORT: 8080 without quotes.
func text(s *string) into {
	return func(r *reader, n *node) {
		if value, ok := r.scalar(n); ok {
			*s = value
		}
	}
}

// scalar returns a string with its variables expanded, or a number or boolean as written. Its messages never show
// expanded text, which may be a secret.
func (r *reader) scalar(n *node) (string, bool) {
	switch n.kind {
	case textKind:
		s, err := r.vars.expand(n.text)
		if err != nil {
			var u *unset
			hint := ""
			if errors.As(err, &u) {
				hint = fmt.Sprintf("set it, or write a default as in ${%s:-value}", u.name)
			}
			r.fail(n, hint, "%s", err)
			return "", false
		}
		return s, true
	case numberKind, boolKind:
		return n.text, true
	}
	r.want(n, "a string")
	return "", false
}

// written returns a scalar; a number with an exponent is written out in full.
func (r *reader) written(n *node) (string, bool) {
	s, ok := r.scalar(n)
	if f, err := strconv.ParseFloat(s, 64); ok && n.kind == numberKind && err == nil {
		s = strconv.FormatFloat(f, 'f', -1, 64)
	}
	return s, ok
}

func boolean(b *bool) into {
	return func(r *reader, n *node) {
		s, ok := r.scalar(n)
		if !ok {
			return
		}
		if s != "true" && s != "false" {
			r.want(n, "true or false")
			return
		}
		*b = s == "true"
	}
}

func toggle(s *Switch) into {
	return func(r *reader, n *node) {
		var on bool
		before := len(r.problems)
		boolean(&on)(r, n)
		if len(r.problems) > before {
			return
		}
		*s = Off
		if on {
			*s = On
		}
	}
}

// oneOf reads a string that must equal one of values.
func oneOf[T ~string](v *T, values ...T) into {
	return func(r *reader, n *node) {
		s, ok := r.scalar(n)
		if !ok {
			return
		}
		names := make([]string, len(values))
		for i, value := range values {
			if T(s) == value {
				*v = value
				return
			}
			names[i] = string(value)
		}
		hint := ""
		if near := core.NearestNames(s, names, 1); len(near) > 0 {
			hint = "did you mean " + near[0] + "?"
		}
		r.fail(n, hint, "expected one of %s, found %s", strings.Join(names, ", "), n.describe())
	}
}

// measure reads a value with a unit and checks that it is from lo to hi.
func measure[T cmp.Ordered](v *T, lo, hi T, what string, parse func(string) (T, bool), show func(T) string) into {
	return func(r *reader, n *node) {
		s, ok := r.written(n)
		if !ok {
			return
		}
		value, ok := parse(s)
		switch {
		case !ok:
			r.want(n, what)
		case value < lo:
			r.fail(n, "the least is "+show(lo), "%s is too small", n.describe())
		case value > hi:
			r.fail(n, "the most is "+show(hi), "%s is too large", n.describe())
		default:
			*v = value
		}
	}
}

func size(v *int64, lo, hi int64) into {
	return measure(v, lo, hi, "a size such as 512MB", parseSize, showSize)
}

// orAuto reads a size or the word auto, which means 0.
func orAuto(v *int64, size into) into {
	return func(r *reader, n *node) {
		if n.kind == textKind && n.text == "auto" {
			*v = 0
			return
		}
		size(r, n)
	}
}

func duration(v *time.Duration, lo, hi time.Duration) into {
	return measure(v, lo, hi, "a time such as 30s or 10m, or milliseconds", parseDuration, showDuration)
}

func cores(v *float64, lo, hi float64) into {
	return measure(v, lo, hi, `processors such as "1 core" or 0.5`, parseCores, func(f float64) string { return fmt.Sprint(f) })
}

func integer(v *int, lo, hi int) into {
	return measure(v, lo, hi, "a whole number", func(s string) (int, bool) {
		i, err := strconv.Atoi(s)
		return i, err == nil
	}, strconv.Itoa)
}

func rate(v *Rate, most int) into {
	return func(r *reader, n *node) {
		s, ok := r.scalar(n)
		if !ok {
			return
		}
		value, ok := parseRate(s)
		switch {
		case !ok:
			r.want(n, "a rate such as 100/minute")
		case value.Count < 1 || value.Count > most:
			r.fail(n, fmt.Sprintf("between 1 and %d", most), "%s is out of range", n.describe())
		default:
			*v = value
		}
	}
}

// checked reads a string for which valid must return true.
func checked(v *string, what string, valid func(string) bool) into {
	return func(r *reader, n *node) {
		s, ok := r.scalar(n)
		switch {
		case !ok:
		case !valid(s):
			r.want(n, what)
		default:
			*v = s
		}
	}
}

// folder reads the path of a folder, absolute or relative to the file's own folder.
func folder(v *string) into {
	return func(r *reader, n *node) {
		var s string
		if checked(&s, "a path", func(s string) bool { return s != "" && !strings.ContainsRune(s, 0) })(r, n); s != "" {
			*v = r.resolve(s)
		}
	}
}

// resolve returns p as an absolute path.
func (r *reader) resolve(p string) string {
	if rest, ok := strings.CutPrefix(filepath.ToSlash(p), "~/"); ok && r.home != "" {
		return filepath.Join(r.home, rest)
	}
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(r.dir, p)
}

// pattern reads a pattern of tool names: * matches any characters, ? matches one.
func pattern(v *string) into {
	return checked(v, "a tool's name, perhaps with * and ?", isPattern)
}

func isPattern(s string) bool {
	_, err := path.Match(s, "")
	return s != "" && err == nil && !strings.ContainsAny(s, "[]\\ \t\n")
}
