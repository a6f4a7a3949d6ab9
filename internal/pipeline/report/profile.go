package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds on the data that is collected to describe an array.
const (
	maxColumns  = 60
	maxDistinct = 1000 // of a column that are counted
	maxSamples  = 6    // values of a column that are named, if it has no more
	maxSample   = 40   // bytes of one of them
)

// arrayTable collects statistics on the items of an array, in which objects are rows of a table.
type arrayTable struct {
	rows    int
	kinds   map[string]int
	columns []*tableColumn
	byName  map[string]*tableColumn
	more    int // columns beyond the bound
	seed    maphash.Seed
}

// tableColumn collects statistics on the values that the objects of an array have under one key.
type tableColumn struct {
	name     string
	seen     int
	kinds    map[string]int
	distinct map[uint64]*columnSample
	beyond   bool // there are more than are counted
	numbers  bool // low and high are set
	low      float64
	high     float64
	lowest   string // the numbers as they are written, or the dates
	highest  string
	dates    int // strings that begin like 2026-01-31
	length   int // of the longest string, in characters, or array, in items
}

type columnSample struct {
	raw   string // "" if it is too long to be named
	count int
}

// profileArray summarizes the items of an array in one pass.
func profileArray(array []byte) *arrayTable {
	t := &arrayTable{kinds: map[string]int{}, byName: map[string]*tableColumn{}, seed: maphash.MakeSeed()}
	for item := range arrayItems(array) {
		t.rows++
		kind := kindOf(item)
		t.kinds[kind]++
		if kind != "object" {
			t.findColumn("").addValue(item, t.seed)
			continue
		}
		for key, value := range objectMembers(item) {
			if c := t.findColumn(key); c != nil {
				c.addValue(value, t.seed)
			}
		}
	}
	return t
}

func (t *arrayTable) findColumn(name string) *tableColumn {
	c := t.byName[name]
	if c == nil && len(t.columns) < maxColumns {
		c = &tableColumn{name: name, kinds: map[string]int{}, distinct: map[uint64]*columnSample{}}
		t.columns, t.byName[name] = append(t.columns, c), c
	} else if c == nil && t.more < 1000 {
		t.byName[name] = nil
		t.more = len(t.byName) - len(t.columns)
	}
	return c
}

func (c *tableColumn) addValue(value []byte, seed maphash.Seed) {
	kind := kindOf(value)
	c.seen++
	c.kinds[kind]++
	switch kind {
	case "null":
		return
	case "number":
		c.addNumber(string(value))
	case "string":
		c.length = max(c.length, utf8.RuneCount(value)-2)
		if isDate(value) {
			c.addDate(string(value[1:min(len(value)-1, 26)]))
		}
	case "array":
		n := 0
		for range arrayItems(value) {
			n++
		}
		c.length = max(c.length, n)
		return
	case "object":
		return
	}
	c.countValue(value, seed)
}

func (c *tableColumn) addNumber(raw string) {
	n, err := strconv.ParseFloat(raw, 64)
	if err != nil {
		return
	}
	if !c.numbers || n < c.low {
		c.low, c.lowest = n, raw
	}
	if !c.numbers || n > c.high {
		c.high, c.highest = n, raw
	}
	c.numbers = true
}

// isDate reports whether a string begins like 2026-01-31.
func isDate(raw []byte) bool {
	if len(raw) < 12 || len(raw) > 42 {
		return false
	}
	for i, b := range raw[1:11] {
		if dash := i == 4 || i == 7; dash != (b == '-') || !dash && (b < '0' || b > '9') {
			return false
		}
	}
	return len(raw) == 12 || raw[11] == 'T' || raw[11] == ' '
}

func (c *tableColumn) addDate(text string) {
	if c.dates++; c.dates == 1 {
		c.lowest, c.highest = text, text
	}
	c.lowest, c.highest = min(c.lowest, text), max(c.highest, text)
}

func (c *tableColumn) countValue(value []byte, seed maphash.Seed) {
	h := maphash.Bytes(seed, value)
	if s := c.distinct[h]; s != nil {
		s.count++
		return
	}
	if len(c.distinct) == maxDistinct {
		c.beyond = true
		return
	}
	s := &columnSample{count: 1}
	if len(value) <= maxSample && len(c.distinct) < maxSamples {
		s.raw = string(value)
	}
	c.distinct[h] = s
}

// describeColumn describes a column in one line. The column's name helps to find personal data to hide in its values.
func (c *tableColumn) describeColumn(t *arrayTable, hide func(string) string) string {
	var said []string
	say := func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
	plain, nulls := c.kinds["string"]+c.kinds["number"]+c.kinds["boolean"], c.kinds["null"]
	switch {
	case c.numbers && c.kinds["number"] == plain && c.lowest != c.highest:
		say("%s to %s", hideValue(c.name, c.lowest, hide), hideValue(c.name, c.highest, hide))
	case c.dates > 0 && c.dates == plain && c.lowest != c.highest:
		say("%s to %s", hideValue(c.name, quoteText(c.lowest), hide), hideValue(c.name, quoteText(c.highest), hide))
	}
	if all := c.sampleValues(hide); all != "" {
		said = append(said, all)
	} else if plain > 0 {
		say("%d%s distinct", len(c.distinct), map[bool]string{true: "+"}[c.beyond])
	}
	if c.length > 0 && plain < c.seen-nulls {
		say("up to %d items", c.length)
	} else if c.length > 40 {
		say("up to %d characters", c.length)
	}
	if nulls > 0 && nulls < c.seen {
		say("%d null", nulls)
	}
	optional := ""
	if c.seen < t.kinds["object"] && c.name != "" {
		optional = "?"
		say("in %d", c.seen)
	}
	kinds := strings.Join(byCount(c.kinds), " | ")
	if len(said) > 0 {
		kinds += ", " + strings.Join(said, ", ")
	}
	if c.name == "" {
		return kinds
	}
	return c.name + optional + " (" + kinds + ")" // with a colon it would read like a filled-in form
}

// sampleValues lists all different values of a column with their counts. It returns "" if there are too many.
func (c *tableColumn) sampleValues(hide func(string) string) string {
	if len(c.distinct) == 0 || len(c.distinct) > maxSamples || c.beyond {
		return ""
	}
	all := make([]*columnSample, 0, len(c.distinct))
	for _, s := range c.distinct {
		if s.raw == "" {
			return ""
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *columnSample) int { return cmp.Or(b.count-a.count, cmp.Compare(a.raw, b.raw)) })
	parts := make([]string, len(all))
	for i, s := range all {
		parts[i] = fmt.Sprintf("%s × %d", hideValue(c.name, s.raw, hide), s.count)
	}
	return strings.Join(parts, ", ")
}

// byCount returns the names of the JSON types in kinds, which counts the values of each type. The most frequent type
// comes first. The type null is left out unless it is the only one.
func byCount(kinds map[string]int) []string {
	var names []string
	for kind := range kinds {
		if kind != "null" || len(kinds) == 1 {
			names = append(names, kind)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(kinds[b]-kinds[a], cmp.Compare(a, b)) })
	return names
}

func quoteText(s string) string {
	raw, _ := json.Marshal(s)
	return string(raw)
}

// hideValue returns a JSON value with personal data hidden. The value's key helps to recognise personal data.
func hideValue(key, raw string, hide func(string) string) string {
	for _, value := range objectMembers([]byte(hide("{" + quoteText(key) + ":" + raw + "}"))) {
		return string(value)
	}
	return "(hidden)"
}
