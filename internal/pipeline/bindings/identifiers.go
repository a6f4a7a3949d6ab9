package bindings

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Names holds the identifiers of a server or tool in TypeScript and Python programs.
type Names struct {
	TypeScript string // camelCase
	Python     string // snake_case
}

// AssignServer assigns identifiers to all servers of a configuration. They depend only on the set of names, not on
// its order. They are unique even if case is ignored. A name that is already a valid identifier is not changed. If
// other names would get the same identifier, a suffix made from the original name is added.
func AssignServer(names []string) map[string]Names {
	return assignNames(names, "server", func(s string) string { return strings.ToLower(s) })
}

// AssignTools assigns identifiers to the tools of one server, like AssignServer. Names of tools may differ only in
// case.
func AssignTools(tools []string) map[string]Names {
	return assignNames(tools, "tool", func(s string) string { return s })
}

func assignNames(raw []string, otherwise string, fold func(string) string) map[string]Names {
	raw = slices.Clone(raw)
	slices.Sort(raw)
	raw = slices.Compact(raw)
	apart := func(s string) string {
		if otherwise == "server" && (s == "index" || s == "client") {
			return s + "_" // those are files next to the servers
		}
		return s
	}
	ts := uniqueNames(raw, "_", fold, func(s string) string { return apart(safeIdentifier(toCamelCase(s), otherwise, scriptReserved)) })
	py := uniqueNames(raw, "__", fold, func(s string) string { return apart(safeIdentifier(toSnakeCase(s), otherwise, pythonReserved)) })
	out := make(map[string]Names, len(raw))
	for i, name := range raw {
		out[name] = Names{TypeScript: ts[i], Python: py[i]}
	}
	return out
}

// uniqueNames returns a unique identifier for each of the names, which must be sorted. If several names would get the
// same identifier, it appends the separator and a hash of the name. No other identifier contains the separator.
// Therefore two results can be equal only if both have a hash and are equal before the separator.
func uniqueNames(names []string, separator string, fold, make func(string) string) []string {
	out := slices.Clone(names)
	groups := map[string][]int{}
	for i, name := range names {
		out[i] = make(name)
		groups[fold(out[i])] = append(groups[fold(out[i])], i)
	}
	for _, group := range groups {
		if len(group) == 1 {
			continue
		}
		plain := -1
		for _, i := range group {
			if names[i] == out[i] && plain < 0 {
				plain = i
			}
		}
		digits := suffixDigits(names, group)
		for _, i := range group {
			if i != plain {
				out[i] = strings.TrimRight(out[i], "_") + separator + shortDigest(names[i])[:digits]
			}
		}
	}
	return out
}

// nameNumbering makes names unique by adding numbers: the second x becomes x2.
type nameNumbering struct {
	separator string
	taken     map[string]bool
	last      map[string]int
}

func (n *nameNumbering) nextName(base string) string {
	if n.taken == nil {
		n.taken, n.last = map[string]bool{}, map[string]int{}
	}
	name := base
	for i := max(2, n.last[base]+1); n.taken[name]; i++ {
		name = base + n.separator + strconv.Itoa(i)
		n.last[base] = i
	}
	n.taken[name] = true
	return name
}

// suffixDigits returns how many digits of their hashes tell apart names that would get the same identifier. The
// argument group holds the indexes of these names. The result is at least 6.
func suffixDigits(names []string, group []int) int {
	for n := 6; n < 64; n++ {
		seen := map[string]bool{}
		for _, i := range group {
			seen[shortDigest(names[i])[:n]] = true
		}
		if len(seen) == len(group) {
			return n
		}
	}
	return 64
}

func shortDigest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

const maxIdentifier = 64 // characters

// safeIdentifier converts a text of letters, digits and underscores to a valid identifier.
func safeIdentifier(s, otherwise string, reserved map[string]bool) string {
	switch {
	case s == "":
		s = otherwise
	case s[0] >= '0' && s[0] <= '9':
		s = "_" + s
	}
	if reserved[s] {
		s += "_"
	}
	return s
}

// toCamelCase converts a name to camelCase and drops characters that are not allowed in identifiers. A name in
// camelCase is not changed.
func toCamelCase(s string) string {
	if isCamel(s) {
		return s
	}
	parts := splitName(s)
	for i, w := range parts {
		switch {
		case i == 0 && strings.ToUpper(w) == w:
			parts[i] = strings.ToLower(w)
		case i == 0:
			parts[i] = lowerFirst(w)
		case strings.ToUpper(w) == w && isUpperCase(s):
			parts[i] = upperFirst(strings.ToLower(w))
		default:
			parts[i] = upperFirst(w)
		}
	}
	return clipIdentifier(strings.Join(parts, ""), s)
}

// clipIdentifier shortens an identifier that is too long, but keeps it unique.
func clipIdentifier(ident, raw string) string {
	if utf8.RuneCountInString(ident) <= maxIdentifier {
		return ident
	}
	const kept = maxIdentifier - 8
	return string([]rune(ident)[:kept]) + shortDigest(raw)[:8]
}

func isCamel(s string) bool {
	for i, r := range s {
		switch {
		case i == 0 && !(unicode.IsLetter(r) && unicode.ToLower(r) == r):
			return false
		case !partOfWord(r):
			return false
		}
	}
	return s != "" && utf8.RuneCountInString(s) <= maxIdentifier
}

// isUpperCase reports whether a name has no lower-case letter.
func isUpperCase(s string) bool { return strings.ToUpper(s) == s }

// toSnakeCase converts a name to snake_case.
func toSnakeCase(s string) string {
	var parts []string
	for _, w := range splitName(s) {
		parts = append(parts, splitCapitals(w)...)
	}
	return clipIdentifier(strings.ToLower(strings.Join(parts, "_")), s)
}

// toPascalCase returns an identifier with its first letter in upper case.
func toPascalCase(ident string) string { return upperFirst(ident) }

// splitName splits a name at characters that are not allowed in identifiers.
func splitName(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return !partOfWord(r) })
}

// splitCapitals splits a word before its capitals: HTTPGetURLs becomes HTTP, Get and URLs.
func splitCapitals(word string) []string {
	var parts []string
	rs := []rune(word)
	start := 0
	for i := 1; i < len(rs); i++ {
		rises := unicode.IsUpper(rs[i]) && !unicode.IsUpper(rs[i-1])
		ends := unicode.IsUpper(rs[i]) && unicode.IsUpper(rs[i-1]) && i+1 < len(rs) && unicode.IsLower(rs[i+1]) && !isPluralS(rs[i+1:])
		if rises || ends {
			parts = append(parts, string(rs[start:i]))
			start = i
		}
	}
	return append(parts, string(rs[start:]))
}

// isPluralS reports whether a plural s follows a capital letter, as in URLs. The argument rest is the text after that
// letter.
func isPluralS(rest []rune) bool {
	return rest[0] == 's' && (len(rest) == 1 || unicode.IsUpper(rest[1]))
}

// partOfWord reports whether a character is allowed in the identifiers of both languages. Of non-ASCII letters, only
// those with a single spelling are allowed, because Python normalises identifiers.
func partOfWord(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return true
	case r == '×' || r == '÷':
		return false
	case 'À' <= r && r <= 'ž' && r != 'ŀ' && r != 'Ŀ' && r != 'ŉ' && r != 'ĳ' && r != 'Ĳ':
		return true
	case 'Α' <= r && r <= 'ω', 'А' <= r && r <= 'я', r == 'ё', r == 'Ё':
		return unicode.IsLetter(r)
	case 'ぁ' <= r && r <= 'ゖ', 'ァ' <= r && r <= 'ヺ', '一' <= r && r <= '鿿', '가' <= r && r <= '힣':
		return unicode.IsLetter(r)
	}
	return false
}

func lowerFirst(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	// An acronym in front goes lower as a whole: HTTPGet is httpGet.
	if parts := splitCapitals(s); len(parts) > 1 && strings.ToUpper(parts[0]) == parts[0] {
		return strings.ToLower(parts[0]) + s[len(parts[0]):]
	}
	return string(unicode.ToLower(r)) + s[size:]
}

func upperFirst(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	if size == 0 {
		return ""
	}
	return string(unicode.ToUpper(r)) + s[size:]
}
