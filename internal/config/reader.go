package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"retort/internal/core"
)

// nodeReader converts the nodes of a parsed file to values, and collects the problems found in them.
type nodeReader struct {
	file     string // path to show to users
	dir      string // folder that relative paths begin at
	home     string // folder that ~ stands for
	vars     variableLookup
	path     []string // keys that lead to the value being read
	piiTypes []string // types of personal data that the settings may name
	read     func(file string) ([]byte, error)
	problems Problems
	// stated, if not nil, receives the position of each value by its path. The path omits its first prefix keys.
	stated map[string]Position
	prefix int
}

// readFunc converts a node to a value and stores it in a variable to which the function is bound. For an invalid
// value it adds a problem to the nodeReader and does not change the variable.
type readFunc func(r *nodeReader, n *valueNode)

// settingReader reads one value of a configuration file, and describes which values it accepts.
type settingReader struct {
	read   readFunc
	schema schemaMaker
	// show returns the current value as it is written in a file: a string, number, bool, []any or []shownSetting. It
	// returns nil if the value is not stated. show is nil for a value that is shown elsewhere in another form.
	show func() any
}

// checkedBy returns a copy of s that reads with read instead of s.read.
func (s settingReader) checkedBy(read readFunc) settingReader {
	s.read = read
	return s
}

// fieldReader reads the value of one key of an object. doc describes the setting in one sentence, for schemas and
// references.
type fieldReader struct {
	key, doc string
	settingReader
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

// readBelow calls read for n, which is the value of key in an object. While read runs, problems are reported with
// key as the last part of the path.
func (r *nodeReader) readBelow(key string, n *valueNode, read readFunc) {
	r.path = append(r.path, key)
	if r.stated != nil {
		r.stated[strings.Join(r.path[r.prefix:], ".")] = r.positionOf(n)
	}
	read(r, n)
	r.path = r.path[:len(r.path)-1]
}

// readObject returns a reader for an object that may have only the keys of these fields.
func readObject(fields ...fieldReader) settingReader { return readFields(fields, true) }

// readOpenObject returns a reader for an object. It ignores keys that are not among these fields.
func readOpenObject(fields ...fieldReader) settingReader { return readFields(fields, false) }

func readFields(fields []fieldReader, closed bool) settingReader {
	read := func(r *nodeReader, n *valueNode) {
		r.eachEntry(n, func(key, value *valueNode) {
			for _, f := range fields {
				if f.key == key.text {
					r.readBelow(f.key, value, f.read)
					return
				}
			}
			if closed {
				r.addUnknownKey(key, fields)
			}
		})
	}
	return settingReader{read, objectSchema(fields, closed), func() any { return showFields(fields) }}
}

func (r *nodeReader) addUnknownKey(key *valueNode, fields []fieldReader) {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.key
	}
	r.addProblem(key, suggestName(key.text, names), "unknown key %q", shortenText(key.text))
}

// suggestName returns a hint that suggests the valid name nearest to an unknown one. If no valid name is similar, the
// hint lists all valid names, or the first 20 of them.
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

// eachEntry calls visit for each key of an object and its value. It skips null values. If a key occurs more than
// once, it calls visit only once and adds a problem.
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

// readMap returns a reader for an object with arbitrary keys. The function check adds a problem for an invalid
// key, and read returns the reader for one value.
func readMap[V any](m *map[string]V, check readFunc, read func(*V) settingReader) settingReader {
	into := func(r *nodeReader, n *valueNode) {
		found := map[string]V{}
		r.eachEntry(n, func(key, value *valueNode) {
			check(r, key)
			var v V
			r.readBelow(key.text, value, read(&v).read)
			found[key.text] = v
		})
		*m = found
	}
	show := func() any {
		var shown []shownSetting
		for _, key := range slices.Sorted(maps.Keys(*m)) {
			v := (*m)[key]
			shown = append(shown, shownSetting{key: key, value: read(&v).show()})
		}
		return shown
	}
	return settingReader{into, mapSchema(func() settingReader { return read(new(V)) }), show}
}

// readList returns a reader for a list. The function read returns the reader for one item.
func readList[V any](values *[]V, read func(*V) settingReader) settingReader {
	into := func(r *nodeReader, n *valueNode) {
		if n.kind != listKind {
			r.addMismatch(n, "a list")
			return
		}
		found := make([]V, len(n.items))
		for i, item := range n.items {
			into := read(&found[i]).read
			if item.kind == nullKind {
				into = func(r *nodeReader, n *valueNode) { r.addMismatch(n, "a value") }
			}
			r.readBelow(strconv.Itoa(i+1), item, into)
		}
		*values = found
	}
	show := func() any {
		if *values == nil {
			return nil
		}
		shown := []any{}
		for i := range *values {
			shown = append(shown, read(&(*values)[i]).show())
		}
		return shown
	}
	return settingReader{into, listSchema(func() settingReader { return read(new(V)) }), show}
}

// readText returns a reader for a string. It also accepts numbers and booleans and takes them as written, because
// people write PORT: 8080 without quotes.
func readText(s *string) settingReader {
	read := func(r *nodeReader, n *valueNode) {
		if value, ok := r.scalarText(n); ok {
			*s = value
		}
	}
	return settingReader{read, textSchema, func() any { return showText(*s) }}
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

func readBool(b *bool) settingReader {
	return settingReader{
		read: func(r *nodeReader, n *valueNode) {
			if on, ok := r.boolValue(n); ok {
				*b = on
			}
		},
		schema: boolSchema,
		show: func() any {
			if !*b {
				return nil
			}
			return true
		},
	}
}

func readSwitch(s *Switch) settingReader {
	return settingReader{
		read: func(r *nodeReader, n *valueNode) {
			on, ok := r.boolValue(n)
			switch {
			case !ok:
			case on:
				*s = On
			default:
				*s = Off
			}
		},
		schema: boolSchema,
		show: func() any {
			if *s == Unset {
				return nil
			}
			return s.IsOn()
		},
	}
}

// boolValue returns the boolean value of n. For any other value it adds a problem and returns ok = false.
func (r *nodeReader) boolValue(n *valueNode) (on, ok bool) {
	s, ok := r.scalarText(n)
	if ok && s != "true" && s != "false" {
		r.addMismatch(n, "true or false")
		ok = false
	}
	return s == "true", ok
}

// readOneOf returns a reader for a string that must equal one of values.
func readOneOf[T ~string](v *T, values ...T) settingReader {
	read := func(r *nodeReader, n *valueNode) {
		s, ok := r.scalarText(n)
		switch names := namesOf(values); {
		case !ok:
		case slices.Contains(names, s):
			*v = T(s)
		default:
			hint := ""
			if near := core.NearestNames(s, names, 1); len(near) > 0 {
				hint = "did you mean " + near[0] + "?"
			}
			r.addProblem(n, hint, "expected one of %s, found %s", strings.Join(names, ", "), n.describeValue())
		}
	}
	return settingReader{read, enumSchema(namesOf(values)), func() any { return showWord(string(*v)) }}
}

// quantity describes the values that a setting with a unit accepts, such as a size or a duration.
type quantity[T cmp.Ordered] struct {
	lo, hi  T
	what    string  // for error messages, such as "a whole number"
	pattern string  // regular expression for values written as text, for the schema
	unit    float64 // factor for a number without a unit
	parse   func(string) (T, bool)
	show    func(T) string
}

// readQuantity returns a reader for a value with a unit, which must be between q.lo and q.hi.
func readQuantity[T int | int64 | float64 | time.Duration](v *T, q quantity[T]) settingReader {
	read := func(r *nodeReader, n *valueNode) {
		s, ok := r.plainNumber(n)
		if !ok {
			return
		}
		value, ok := q.parse(s)
		switch {
		case !ok:
			r.addMismatch(n, q.what)
		case value < q.lo:
			r.addProblem(n, "the minimum is "+q.show(q.lo), "%s is too small", n.describeValue())
		case value > q.hi:
			r.addProblem(n, "the maximum is "+q.show(q.hi), "%s is too large", n.describeValue())
		default:
			*v = value
		}
	}
	show := func() any {
		if *v == 0 && q.lo > 0 {
			return nil
		}
		return literalText(q.show(*v))
	}
	return settingReader{read, numberSchema(float64(q.lo)/q.unit, float64(q.hi)/q.unit, q.pattern), show}
}

func readSize(v *int64, lo, hi int64) settingReader {
	return readQuantity(v, quantity[int64]{lo, hi, "a size such as 512MB", sizePattern, 1, parseSize, showSize})
}

// readOrWord returns a reader that accepts either a value of the reader other, or the given word, which stands for
// the value meaning.
func readOrWord[T comparable](v *T, word string, meaning T, other settingReader) settingReader {
	return settingReader{
		read: func(r *nodeReader, n *valueNode) {
			if n.kind == textKind && n.text == word {
				*v = meaning
				return
			}
			other.read(r, n)
		},
		schema: anyOf(wordSchema(word), other.schema),
		show: func() any {
			if *v == meaning {
				return literalText(word)
			}
			return other.show()
		},
	}
}

func readDuration(v *time.Duration, lo, hi time.Duration) settingReader {
	return readQuantity(v, quantity[time.Duration]{
		lo, hi, "a time such as 30s or 10m, or milliseconds", timePattern, float64(time.Millisecond), parseDuration, showDuration,
	})
}

func readCores(v *float64, lo, hi float64) settingReader {
	show := func(f float64) string { return fmt.Sprint(f) }
	return readQuantity(v, quantity[float64]{lo, hi, `processors such as "1 core" or 0.5`, corePattern, 1, parseCores, show})
}

func readInt(v *int, lo, hi int) settingReader {
	parse := func(s string) (int, bool) {
		i, err := strconv.Atoi(s)
		return i, err == nil
	}
	s := readQuantity(v, quantity[int]{lo, hi, "a whole number", intPattern, 1, parse, strconv.Itoa})
	s.schema = integerSchema(lo, hi)
	s.show = func() any {
		if *v == 0 {
			return nil
		}
		return *v
	}
	return s
}

func readRate(v *Rate, most int) settingReader {
	read := func(r *nodeReader, n *valueNode) {
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
	show := func() any {
		if v.Count == 0 {
			return nil
		}
		return literalText(v.String())
	}
	return settingReader{read, stringSchema(ratePattern), show}
}

// readChecked returns a reader for a string that the function valid accepts. what describes such strings in error
// messages.
func readChecked(v *string, what string, valid func(string) bool) settingReader {
	s := readText(v)
	return s.checkedBy(func(r *nodeReader, n *valueNode) {
		s, ok := r.scalarText(n)
		switch {
		case !ok:
		case !valid(s):
			r.addMismatch(n, what)
		default:
			*v = s
		}
	})
}

// readMatching returns a reader for a string that matches a regular expression, which must be valid in Go and in
// JavaScript.
func readMatching(v *string, what, pattern string) settingReader {
	s := readChecked(v, what, func(s string) bool { return regexp.MustCompile(pattern).MatchString(s) })
	s.schema = matchingSchema(pattern)
	return s
}

// readPath returns a reader for the path of a folder, absolute or relative to the file's own folder.
func readPath(v *string) settingReader {
	s := readText(v)
	return s.checkedBy(func(r *nodeReader, n *valueNode) {
		var s string
		if readChecked(&s, "a path", func(s string) bool { return s != "" && !strings.ContainsRune(s, 0) }).read(r, n); s != "" {
			*v = r.resolvePath(s)
		}
	})
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

// readPattern returns a reader for a pattern of tool names, in which * matches any characters and ? matches one.
func readPattern(v *string) settingReader {
	return readChecked(v, "a tool's name, perhaps with * and ?", isPattern)
}

func isPattern(s string) bool {
	_, err := path.Match(s, "")
	return s != "" && err == nil && !strings.ContainsAny(s, "[]\\ \t\n")
}
