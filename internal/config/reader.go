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

// nodeReader converts nodes to values and collects the problems found in them.
type nodeReader struct {
	file     string // for people
	dir      string // relative paths start here
	home     string // ~ means this
	vars     variableLookup
	path     []string // keys down to the value being read
	piiTypes []string // that the settings may name
	read     func(file string) ([]byte, error)
	problems Problems
}

// readFunc reads the value of a node into the variable that the readFunc was made for. For an invalid value it adds a
// problem and does not change the variable.
type readFunc func(r *nodeReader, n *valueNode)

type fieldReader struct {
	key  string
	into readFunc
}

func (r *nodeReader) positionOf(n *valueNode) Position { return Position{r.file, n.line, n.column} }

// addProblem adds a problem with the value n. The message begins with the path of keys that leads to it.
func (r *nodeReader) addProblem(n *valueNode, hint, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	if len(r.path) > 0 {
		message = strings.Join(r.path, ".") + ": " + message
	}
	r.problems.addProblem(r.positionOf(n), hint, "%s", message)
}

func (r *nodeReader) addMismatch(n *valueNode, what string) {
	r.addProblem(n, "", "expected %s, found %s", what, n.describeValue())
}

// readBelow calls read for n, which is the value of key in an object. While read runs, key is the last part of the
// path with which problems are reported.
func (r *nodeReader) readBelow(key string, n *valueNode, read readFunc) {
	r.path = append(r.path, key)
	read(r, n)
	r.path = r.path[:len(r.path)-1]
}

// readObject reads an object that may have only these keys.
func readObject(fields ...fieldReader) readFunc { return readFields(fields, true) }

// readOpenObject reads an object and ignores keys that it does not know.
func readOpenObject(fields ...fieldReader) readFunc { return readFields(fields, false) }

func readFields(fields []fieldReader, closed bool) readFunc {
	return func(r *nodeReader, n *valueNode) {
		r.eachEntry(n, func(key, value *valueNode) {
			for _, f := range fields {
				if f.key == key.text {
					r.readBelow(f.key, value, f.into)
					return
				}
			}
			if closed {
				r.addUnknownKey(key, fields)
			}
		})
	}
}

func (r *nodeReader) addUnknownKey(key *valueNode, fields []fieldReader) {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.key
	}
	r.addProblem(key, suggestName(key.text, names), "unknown key %q", shortenText(key.text))
}

// suggestName returns a hint with the nearest of names. If none is near, it lists all of them, or the first 20.
func suggestName(name string, names []string) string {
	if near := core.NearestNames(name, names, 1); len(near) > 0 {
		return "did you mean " + near[0] + "?"
	}
	switch n := len(names); {
	case n == 0:
		return ""
	case n > 20:
		return fmt.Sprintf("valid names are %s and %d more", strings.Join(names[:20], ", "), n-20)
	}
	return "valid names are " + strings.Join(names, ", ")
}

// eachEntry calls visit for the entries of an object, once for each key. It skips null values and adds a problem for each
// repeated key.
func (r *nodeReader) eachEntry(n *valueNode, visit func(key, value *valueNode)) {
	switch n.kind {
	case nullKind:
		return
	case objectKind:
	default:
		r.addMismatch(n, "an object")
		return
	}
	first := map[string]*valueNode{}
	for _, e := range n.entries {
		if earlier, twice := first[e.key.text]; twice {
			r.addProblem(e.key, "", "the key %q is used twice, first in line %d", shortenText(e.key.text), earlier.line)
			continue
		}
		first[e.key.text] = e.key
		if e.value.kind != nullKind {
			visit(e.key, e.value)
		}
	}
}

// readMap reads an object with arbitrary keys. check adds a problem for an invalid key.
func readMap[V any](m *map[string]V, check readFunc, read func(*V) readFunc) readFunc {
	return func(r *nodeReader, n *valueNode) {
		found := map[string]V{}
		r.eachEntry(n, func(key, value *valueNode) {
			check(r, key)
			var v V
			r.readBelow(key.text, value, read(&v))
			found[key.text] = v
		})
		*m = found
	}
}

// readList returns a reader for a list. The function read returns the reader for one item.
func readList[V any](values *[]V, read func(*V) readFunc) readFunc {
	return func(r *nodeReader, n *valueNode) {
		if n.kind != listKind {
			r.addMismatch(n, "a list")
			return
		}
		found := make([]V, len(n.items))
		for i, item := range n.items {
			r.readBelow(strconv.Itoa(i+1), item, read(&found[i]))
		}
		*values = found
	}
}

// readText reads a string. It also takes numbers and booleans as written, since people write PORT: 8080 without quotes.
func readText(s *string) readFunc {
	return func(r *nodeReader, n *valueNode) {
		if value, ok := r.scalarText(n); ok {
			*s = value
		}
	}
}

// scalarText returns a string with its variables expanded, or a number or boolean as written. Its messages never show
// expanded text, which may be a secret.
func (r *nodeReader) scalarText(n *valueNode) (string, bool) {
	switch n.kind {
	case textKind:
		s, err := r.vars.expandText(n.text)
		if err != nil {
			var u *unsetVariable
			hint := ""
			if errors.As(err, &u) {
				hint = fmt.Sprintf("set it, or write a default as in ${%s:-value}", u.name)
			}
			r.addProblem(n, hint, "%s", err)
			return "", false
		}
		return s, true
	case numberKind, boolKind:
		return n.text, true
	}
	r.addMismatch(n, "a string")
	return "", false
}

// plainNumber returns a string, number or boolean as text. A number with an exponent, such as 1e6, is written out in
// full.
func (r *nodeReader) plainNumber(n *valueNode) (string, bool) {
	s, ok := r.scalarText(n)
	if f, err := strconv.ParseFloat(s, 64); ok && n.kind == numberKind && err == nil {
		s = strconv.FormatFloat(f, 'f', -1, 64)
	}
	return s, ok
}

func readBool(b *bool) readFunc {
	return func(r *nodeReader, n *valueNode) {
		s, ok := r.scalarText(n)
		if !ok {
			return
		}
		if s != "true" && s != "false" {
			r.addMismatch(n, "true or false")
			return
		}
		*b = s == "true"
	}
}

func readSwitch(s *Switch) readFunc {
	return func(r *nodeReader, n *valueNode) {
		var on bool
		before := len(r.problems)
		readBool(&on)(r, n)
		if len(r.problems) > before {
			return
		}
		*s = Off
		if on {
			*s = On
		}
	}
}

// readOneOf reads a string that must equal one of values.
func readOneOf[T ~string](v *T, values ...T) readFunc {
	return func(r *nodeReader, n *valueNode) {
		s, ok := r.scalarText(n)
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
		r.addProblem(n, hint, "expected one of %s, found %s", strings.Join(names, ", "), n.describeValue())
	}
}

// readQuantity reads a value with a unit and checks that it is from lo to hi.
func readQuantity[T cmp.Ordered](v *T, lo, hi T, what string, parse func(string) (T, bool), show func(T) string) readFunc {
	return func(r *nodeReader, n *valueNode) {
		s, ok := r.plainNumber(n)
		if !ok {
			return
		}
		value, ok := parse(s)
		switch {
		case !ok:
			r.addMismatch(n, what)
		case value < lo:
			r.addProblem(n, "the minimum is "+show(lo), "%s is too small", n.describeValue())
		case value > hi:
			r.addProblem(n, "the maximum is "+show(hi), "%s is too large", n.describeValue())
		default:
			*v = value
		}
	}
}

func readSize(v *int64, lo, hi int64) readFunc {
	return readQuantity(v, lo, hi, "a size such as 512MB", parseSize, showSize)
}

// readOrAuto reads a size or the word auto, which means 0.
func readOrAuto(v *int64, size readFunc) readFunc {
	return func(r *nodeReader, n *valueNode) {
		if n.kind == textKind && n.text == "auto" {
			*v = 0
			return
		}
		size(r, n)
	}
}

func readDuration(v *time.Duration, lo, hi time.Duration) readFunc {
	return readQuantity(v, lo, hi, "a time such as 30s or 10m, or milliseconds", parseDuration, showDuration)
}

func readCores(v *float64, lo, hi float64) readFunc {
	return readQuantity(v, lo, hi, `processors such as "1 core" or 0.5`, parseCores, func(f float64) string { return fmt.Sprint(f) })
}

func readInt(v *int, lo, hi int) readFunc {
	return readQuantity(v, lo, hi, "a whole number", func(s string) (int, bool) {
		i, err := strconv.Atoi(s)
		return i, err == nil
	}, strconv.Itoa)
}

func readRate(v *Rate, most int) readFunc {
	return func(r *nodeReader, n *valueNode) {
		s, ok := r.scalarText(n)
		if !ok {
			return
		}
		value, ok := parseRate(s)
		switch {
		case !ok:
			r.addMismatch(n, "a rate such as 100/minute")
		case value.Count < 1 || value.Count > most:
			r.addProblem(n, fmt.Sprintf("between 1 and %d", most), "%s is out of range", n.describeValue())
		default:
			*v = value
		}
	}
}

// readChecked reads a string for which valid must return true.
func readChecked(v *string, what string, valid func(string) bool) readFunc {
	return func(r *nodeReader, n *valueNode) {
		s, ok := r.scalarText(n)
		switch {
		case !ok:
		case !valid(s):
			r.addMismatch(n, what)
		default:
			*v = s
		}
	}
}

// readPath reads the path of a folder, absolute or relative to the file's own folder.
func readPath(v *string) readFunc {
	return func(r *nodeReader, n *valueNode) {
		var s string
		if readChecked(&s, "a path", func(s string) bool { return s != "" && !strings.ContainsRune(s, 0) })(r, n); s != "" {
			*v = r.resolvePath(s)
		}
	}
}

// resolvePath returns p as an absolute path.
func (r *nodeReader) resolvePath(p string) string {
	if rest, ok := strings.CutPrefix(filepath.ToSlash(p), "~/"); ok && r.home != "" {
		return filepath.Join(r.home, rest)
	}
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(r.dir, p)
}

// readPattern reads a pattern of tool names: * matches any characters, ? matches one.
func readPattern(v *string) readFunc {
	return readChecked(v, "a tool's name, perhaps with * and ?", isPattern)
}

func isPattern(s string) bool {
	_, err := path.Match(s, "")
	return s != "" && err == nil && !strings.ContainsAny(s, "[]\\ \t\n")
}
