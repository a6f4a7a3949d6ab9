package clientfiles

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// tomlFile implements fileFormat for TOML. Servers are tables below one key: [mcp_servers.NAME].
type tomlFile struct{}

func (tomlFile) decodeAll(src []byte) (map[string]any, error) {
	if err := tooDeep(src); err != nil {
		return nil, err
	}
	whole := map[string]any{}
	err := toml.Unmarshal(bytes.TrimPrefix(src, []byte(byteOrderMark)), &whole)
	var at *toml.DecodeError
	if asDecodeError(err, &at) {
		line, column := at.Position()
		return nil, fmt.Errorf("line %d, column %d: %s", line, column, strings.TrimPrefix(at.Error(), "toml: "))
	}
	return whole, err
}

func asDecodeError(err error, target **toml.DecodeError) bool {
	e, ok := err.(*toml.DecodeError)
	*target = e
	return ok
}

func (f tomlFile) readMembers(src []byte, at []string) ([]objectMember, error) {
	whole, err := f.decodeAll(src)
	if err != nil {
		return nil, err
	}
	o, err := objectAt(whole, at)
	if err != nil {
		return nil, err
	}
	parts, err := f.parseParts(src)
	if err != nil {
		return nil, err
	}
	var list []objectMember
	for _, p := range parts {
		name, below := p.memberBelow(at)
		if !below || o[name] == nil {
			continue
		}
		i := slices.Index(memberNames(list), name)
		if i < 0 {
			value, err := marshalCompact(o[name])
			if err != nil {
				return nil, err
			}
			i, list = len(list), append(list, objectMember{Name: name, Value: value})
		}
		list[i].Text += string(src[p.from:p.to])
	}
	for i := range list {
		if !strings.HasPrefix(strings.TrimSpace(list[i].Text), "[") {
			list[i].Text = "" // it says something only below its own header
		}
	}
	if len(list) < len(o) { // all in one line: mcp_servers = {…}
		return f.inlineMembers(o)
	}
	return list, nil
}

func (tomlFile) inlineMembers(o map[string]any) ([]objectMember, error) {
	var list []objectMember
	for name := range o {
		value, err := marshalCompact(o[name])
		if err != nil {
			return nil, err
		}
		list = append(list, objectMember{Name: name, Value: value})
	}
	slices.SortFunc(list, func(a, b objectMember) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// tomlPart describes a part of a TOML file: a table header, or a key with its value. The part consists of whole
// lines, with the empty lines after them, but without comments on lines of their own.
type tomlPart struct {
	byteSpan
	path   []string // keys from the root of the file
	header bool
}

// memberBelow returns the name of the server to which this part of a TOML file belongs, if the part is below the
// table of servers. The keys in the argument at lead to that table. ok is false if the part belongs to no server.
func (p tomlPart) memberBelow(at []string) (name string, ok bool) {
	if len(p.path) <= len(at) || !slices.Equal(p.path[:len(at)], at) {
		return "", false
	}
	return p.path[len(at)], true
}

func (f tomlFile) parseParts(src []byte) ([]tomlPart, error) {
	p := &unstable.Parser{KeepComments: true}
	body := bytes.TrimPrefix(src, []byte(byteOrderMark))
	shift := len(src) - len(body)
	p.Reset(body)
	var parts []tomlPart
	var table []string
	for p.NextExpression() {
		e := p.Expression()
		part := tomlPart{header: e.Kind != unstable.KeyValue}
		var first, end int
		if e.Kind == unstable.Comment {
			first = int(e.Raw.Offset)
			end = first
			if len(bytes.TrimSpace(body[lineStart(body, first):first])) > 0 {
				continue // behind something else
			}
		} else {
			part.path, first = f.keyPath(e)
			end = max(first, int(e.Raw.Offset+e.Raw.Length)-1)
		}
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = part.path
			end = first
		case unstable.KeyValue:
			part.path = slices.Concat(table, part.path)
		}
		part.byteSpan = byteSpan{shift + lineStart(body, first), shift + lineEnd(body, end)}
		parts = append(parts, part)
	}
	if err := p.Error(); err != nil {
		return nil, err
	}
	for i := range parts {
		parts[i].to = skipEmptyLines(src, parts[i].to)
	}
	return slices.DeleteFunc(parts, func(p tomlPart) bool { return p.path == nil }), nil
}

func (tomlFile) keyPath(e *unstable.Node) (path []string, first int) {
	first = -1
	for keys := e.Key(); keys.Next(); {
		if first < 0 {
			first = int(keys.Node().Raw.Offset)
		}
		path = append(path, string(keys.Node().Data))
	}
	return path, first
}

// skipEmptyLines returns the offset of the first line that is not empty, beginning with the line at the offset at.
func skipEmptyLines(src []byte, at int) int {
	for at < len(src) {
		end := lineEnd(src, at)
		if len(bytes.TrimSpace(src[at:end])) > 0 {
			return at
		}
		at = end
	}
	return at
}

func (f tomlFile) editMembers(src []byte, at, out []string, in []objectMember) ([]byte, error) {
	parts, err := f.parseParts(src)
	if err != nil {
		return nil, err
	}
	place := -1
	var spans []byteSpan
	for _, p := range parts {
		if name, below := p.memberBelow(at); below && slices.Contains(out, name) {
			if place < 0 && p.header {
				place = p.from
			}
			spans = append(spans, p.byteSpan)
		}
	}
	text, err := f.renderTables(at, in, lineBreak(src))
	if err != nil || text == "" {
		return cutSpans(src, spans, len(src), ""), err
	}
	if place < 0 {
		place = len(src)
		text = separatorAfter(src, lineBreak(src)) + text
	} else if rest := cutSpans(src[place:], shiftSpans(spans, place), 0, ""); len(rest) > 0 {
		text += lineBreak(src)
	}
	return cutSpans(src, spans, place, text), nil
}

func shiftSpans(spans []byteSpan, by int) []byteSpan {
	var list []byteSpan
	for _, s := range spans {
		if s.from >= by {
			list = append(list, byteSpan{s.from - by, s.to - by})
		}
	}
	return list
}

// separatorAfter returns the line breaks to append to a file so that an empty line separates its content from a new
// table.
func separatorAfter(src []byte, nl string) string {
	switch {
	case len(bytes.TrimPrefix(src, []byte(byteOrderMark))) == 0:
		return ""
	case !bytes.HasSuffix(src, []byte("\n")):
		return nl + nl
	}
	return nl
}

func (f tomlFile) renderTables(at []string, in []objectMember, nl string) (string, error) {
	var all []string
	for _, m := range in {
		if m.Text != "" {
			all = append(all, strings.TrimRight(m.Text, "\r\n")+nl)
			continue
		}
		text, err := f.renderTable(append(slices.Clone(at), m.Name), m.Value, nl)
		if err != nil {
			return "", err
		}
		all = append(all, text)
	}
	return strings.Join(all, nl), nil
}

// renderTable renders an object as the text of a TOML table with its own header.
func (f tomlFile) renderTable(path []string, value json.RawMessage, nl string) (string, error) {
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.UseNumber()
	var o map[string]any
	if err := dec.Decode(&o); err != nil {
		return "", err
	}
	keys := make([]string, len(path))
	for i, k := range path {
		keys[i] = tomlKey(k)
	}
	text := "[" + strings.Join(keys, ".") + "]" + nl
	for _, k := range sortedKeys(o) {
		text += tomlKey(k) + " = " + tomlValue(o[k]) + nl
	}
	return text, nil
}

// sortedKeys returns the keys of an entry in the usual order: the command comes before its arguments.
func sortedKeys(o map[string]any) []string {
	keys := make([]string, 0, len(o))
	for k := range o {
		keys = append(keys, k)
	}
	rank := func(k string) int { return slices.Index([]string{"args", "cmd", "command", "type", "enabled"}, k) }
	sort.Slice(keys, func(i, j int) bool {
		if a, b := rank(keys[i]), rank(keys[j]); a != b {
			return a > b
		}
		return keys[i] < keys[j]
	})
	return keys
}

func tomlKey(k string) string {
	bare := func(r rune) bool {
		return r == '_' || r == '-' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	if k != "" && !strings.ContainsFunc(k, func(r rune) bool { return !bare(r) }) {
		return k
	}
	return tomlValue(k)
}

// tomlValue renders a JSON value in TOML. It escapes strings as JSON does.
func tomlValue(v any) string {
	switch v := v.(type) {
	case map[string]any:
		var parts []string
		for _, k := range sortedKeys(v) {
			parts = append(parts, tomlKey(k)+" = "+tomlValue(v[k]))
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	case []any:
		parts := make([]string, len(v))
		for i, item := range v {
			parts[i] = tomlValue(item)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	text, err := marshalCompact(v)
	if err != nil { // what came from JSON always goes back
		return `""`
	}
	return strings.ReplaceAll(string(text), "\x7f", `\u007f`)
}
