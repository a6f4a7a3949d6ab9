package clientfiles

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// yamlFile implements fileFormat for a single YAML document. Servers are a block mapping below one key of the
// document's top-level mapping.
type yamlFile struct{}

// Bounds on a YAML file, within which the parser is fast.
const (
	maxYAML   = 256 << 10 // size in bytes
	maxTokens = 20_000
)

// parseRoot parses a YAML file and returns the top-level mapping of the document. For an empty file it returns an
// empty mapping.
func (yamlFile) parseRoot(src []byte) (root []*ast.MappingValueNode, err error) {
	defer func() {
		// The parser panics on a few malformed inputs.
		if r := recover(); r != nil {
			root, err = nil, errors.New("it is not YAML")
		}
	}()
	if len(src) > maxYAML {
		return nil, fmt.Errorf("it is larger than %d KB", maxYAML>>10)
	}
	if err := tooDeep(src); err != nil {
		return nil, err
	}
	text := withUnixNewlines(src)
	if strings.Contains(text, "\r") {
		return nil, errors.New("it contains line endings other than LF and CRLF")
	}
	tokens := lexer.Tokenize(text)
	if len(tokens) > maxTokens {
		return nil, errors.New("it is too large")
	}
	dashes, line := 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			dashes, line = 0, t.Position.Line
		}
		switch t.Type {
		case token.SequenceEntryType, token.MappingKeyType:
			if dashes++; dashes > maxDepth {
				return nil, errors.New("it is too deeply nested")
			}
		case token.AnchorType, token.AliasType, token.TagType, token.MergeKeyType:
			return nil, fmt.Errorf("line %d: anchors, aliases and tags are not supported", line)
		}
	}
	file, err := parser.Parse(tokens, parser.ParseComments)
	if err != nil {
		return nil, yamlProblem(err)
	}
	var body ast.Node
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil || doc.Body.Type() == ast.CommentType:
		case body != nil:
			return nil, errors.New("it has more than one document")
		default:
			body = doc.Body
		}
	}
	return mappingValues(body)
}

func yamlProblem(err error) error {
	var e yaml.Error
	if !errors.As(err, &e) || e.GetToken() == nil {
		return errors.New("it is not YAML")
	}
	return fmt.Errorf("line %d, column %d: %s", e.GetToken().Position.Line, e.GetToken().Position.Column, e.GetMessage())
}

func mappingValues(n ast.Node) ([]*ast.MappingValueNode, error) {
	switch n := n.(type) {
	case nil, *ast.NullNode:
		return nil, nil
	case *ast.StringNode:
		if n.Value == "" {
			return nil, nil
		}
	case *ast.MappingNode:
		return n.Values, nil
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, nil
	}
	return nil, fmt.Errorf("line %d: this is not a mapping", n.GetToken().Position.Line)
}

func (f yamlFile) decodeAll(src []byte) (map[string]any, error) {
	if _, err := f.parseRoot(src); err != nil {
		return nil, err
	}
	whole := map[string]any{}
	if err := yaml.Unmarshal([]byte(withUnixNewlines(src)), &whole); err != nil {
		return nil, yamlProblem(err)
	}
	if whole == nil {
		whole = map[string]any{}
	}
	return whole, nil
}

// withUnixNewlines returns a text without byte order mark and carriage returns, so that its lines are those that the
// parser counts.
func withUnixNewlines(src []byte) string {
	return strings.ReplaceAll(strings.TrimPrefix(string(src), byteOrderMark), "\r\n", "\n")
}

// yamlMember describes a member of the mapping of servers: its name and the lines of the file that it occupies.
type yamlMember struct {
	name string
	byteSpan
}

// yamlPlace describes the place of the mapping of servers in a YAML file. members is nil if the file has no such
// mapping.
type yamlPlace struct {
	key     byteSpan // line of the mapping's key; from == to if there is no key
	end     int      // offset after the mapping
	indent  string
	members []yamlMember
	flow    bool // the mapping is written in brackets and is not empty
}

// locateServers finds the mapping of servers in a YAML file.
func (f yamlFile) locateServers(src []byte, key string) (yamlPlace, error) {
	root, err := f.parseRoot(src)
	if err != nil {
		return yamlPlace{}, err
	}
	lines := lineOffsets(src)
	at := func(n ast.Node) int { return lines[n.GetToken().Position.Line-1] }
	p := yamlPlace{end: len(src), key: byteSpan{len(src), len(src)}, indent: "  "}
	for i, v := range root {
		if keyText(v) != key {
			continue
		}
		p.key = byteSpan{at(v.Key), lineEnd(src, at(v.Key))}
		if i+1 < len(root) {
			p.end = at(root[i+1].Key)
		}
		values, err := mappingValues(v.Value)
		if err != nil {
			return p, err
		}
		if m, ok := v.Value.(*ast.MappingNode); ok && m.IsFlowStyle {
			p.flow = len(values) > 0
			p.end = p.key.to
		}
		for j, m := range values {
			column := m.Key.GetToken().Position.Column - 1
			p.indent = strings.Repeat(" ", column)
			end := p.end
			if j+1 < len(values) {
				end = at(values[j+1].Key)
			}
			p.members = append(p.members, yamlMember{keyText(m), byteSpan{at(m.Key), memberEnd(src, at(m.Key), end, column)}})
		}
		if len(values) == 0 {
			p.end = p.key.to
		}
	}
	return p, nil
}

func keyText(v *ast.MappingValueNode) string {
	if s, ok := v.Key.(*ast.StringNode); ok {
		return s.Value
	}
	return v.Key.GetToken().Value
}

// lineOffsets returns the offset at which each line of a text begins.
func lineOffsets(src []byte) []int {
	offsets := []int{len(src) - len(bytes.TrimPrefix(src, []byte(byteOrderMark)))}
	for i, c := range src {
		if c == '\n' {
			offsets = append(offsets, i+1)
		}
	}
	return offsets
}

// memberEnd returns the offset at which a member of a YAML file ends. It goes back from the offset end over empty
// lines and comments, at most to from. It stops at a comment that belongs to the member, because it is indented
// deeper than column, the column in which the member begins.
func memberEnd(src []byte, from, end, column int) int {
	for end > from {
		start := lineStart(src, end-1)
		line := bytes.TrimRight(src[start:end], "\r\n")
		text := bytes.TrimLeft(line, " \t")
		if start <= from || len(text) > 0 && (text[0] != '#' || len(line)-len(text) > column) {
			return end
		}
		end = start
	}
	return end
}

func (f yamlFile) readMembers(src []byte, at []string) ([]objectMember, error) {
	p, err := f.locateServers(src, at[0])
	if err != nil {
		return nil, err
	}
	whole, err := f.decodeAll(src)
	if err != nil {
		return nil, err
	}
	o, err := objectAt(whole, at)
	if err != nil {
		return nil, err
	}
	var list []objectMember
	for _, m := range p.members {
		if slices.Contains(memberNames(list), m.name) {
			return nil, fmt.Errorf("%q occurs twice", m.name)
		}
		value, err := marshalCompact(o[m.name])
		if err != nil {
			return nil, err
		}
		text := string(src[m.from:m.to])
		if p.flow {
			text = ""
		}
		list = append(list, objectMember{Name: m.name, Value: value, Text: text})
	}
	return list, nil
}

func (f yamlFile) editMembers(src []byte, at, out []string, in []objectMember) ([]byte, error) {
	p, err := f.locateServers(src, at[0])
	if err != nil {
		return nil, err
	}
	if p.flow {
		return nil, fmt.Errorf("%s is written in brackets; write one key per line", at[0])
	}
	nl := lineBreak(src)
	place, kept := -1, 0
	var spans []byteSpan
	for _, m := range p.members {
		if !slices.Contains(out, m.name) {
			kept++
			continue
		}
		if place < 0 {
			place = m.from
		}
		spans = append(spans, m.byteSpan)
	}
	text, err := f.renderBlocks(in, p.indent, nl)
	if err != nil {
		return nil, err
	}
	switch {
	case place >= 0:
	case len(p.members) > 0:
		place = p.members[len(p.members)-1].to
	default:
		place = p.key.to
	}
	if place == len(src) && len(src) > 0 && !bytes.HasSuffix(src, []byte("\n")) && len(spans) == 0 {
		text = nl + text
	}
	if kept == 0 { // the key must stand alone in its line, or say that nothing follows
		return f.writeHead(src, p, at[0], spans, place, text, nl), nil
	}
	return cutSpans(src, spans, place, text), nil
}

// writeHead applies an edit that leaves none of the servers that the file had before. The edit may have to change
// the head of the mapping, which is the line with the key of the mapping. If no servers are left at all, the key
// gets the value {}. If the file had no servers before, the line is changed so that the new servers can follow it.
func (yamlFile) writeHead(src []byte, p yamlPlace, key string, spans []byteSpan, place int, text, nl string) []byte {
	switch {
	case text == "" || text == nl:
		return cutSpans(src, append(spans, p.key), p.key.from, key+": {}"+nl)
	case len(p.members) > 0:
		return cutSpans(src, spans, place, text)
	}
	lead := ""
	if p.key.from == len(src) && len(src) > 0 && !bytes.HasSuffix(src, []byte("\n")) {
		lead = nl
	}
	if _, comment, found := strings.Cut(string(src[p.key.from:p.key.to]), "#"); found {
		key += ": #" + strings.TrimRight(comment, "\r\n")
	} else {
		key += ":"
	}
	return cutSpans(src, []byteSpan{p.key}, p.key.from, lead+key+nl+strings.TrimPrefix(text, nl))
}

func (yamlFile) renderBlocks(in []objectMember, indent, nl string) (string, error) {
	text := ""
	for _, m := range in {
		if m.Text != "" {
			text += strings.TrimRight(m.Text, "\r\n") + nl
			continue
		}
		dec := json.NewDecoder(bytes.NewReader(m.Value))
		dec.UseNumber()
		var o map[string]any
		if err := dec.Decode(&o); err != nil {
			return "", err
		}
		text += indent + yamlKey(m.Name) + ":" + nl
		for _, k := range sortedKeys(o) {
			value, err := marshalCompact(o[k])
			if err != nil {
				return "", err
			}
			text += indent + "  " + yamlKey(k) + ": " + string(value) + nl
		}
	}
	return text, nil
}

func yamlKey(k string) string {
	plain := func(r rune) bool { return r == '_' || r == '-' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' }
	if k != "" && k[0] != '-' && !strings.ContainsFunc(k, func(r rune) bool { return !plain(r) }) &&
		!slices.Contains([]string{"null", "true", "false", "yes", "no", "on", "off", "y", "n"}, strings.ToLower(k)) {
		return k
	}
	text, err := marshalCompact(k)
	if err != nil { // texts always marshal
		return `""`
	}
	return string(text)
}
