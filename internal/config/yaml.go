package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// parseYAML parses one YAML document into nodes. An empty document is null. Anchors are supported; merge keys, tags
// and further documents are refused, because settings need none of them. Its error is a *syntaxError.
func parseYAML(src []byte) (n *valueNode, err error) {
	defer func() {
		// The parser panics on a few malformed inputs.
		if r := recover(); r != nil {
			n, err = nil, &syntaxError{1, 1, "the file is not YAML"}
		}
	}()
	if len(src) > maxYAML {
		return nil, &syntaxError{1, 1, "the file is larger than " + showSize(maxYAML)}
	}
	tokens := lexer.Tokenize(string(src))
	if failed := checkTokens(tokens); failed != nil {
		return nil, failed
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, yamlError(err)
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil || isComment(doc.Body) {
			continue
		}
		if body != nil {
			line, _ := tokenPosition(doc.Body.GetToken())
			return nil, &syntaxError{line, 1, "a second YAML document begins here; settings must be one document"}
		}
		body = doc.Body
	}
	if body == nil {
		return &valueNode{line: 1, column: 1, text: "null"}, nil
	}
	c := &yamlConverter{anchors: map[string]*valueNode{}}
	root, failed := c.convertNode(body, 0)
	if failed != nil {
		return nil, failed
	}
	return root, nil
}

// checkTokens refuses files that would keep the YAML parser busy for minutes. The time of the parser grows at least
// with the square of the number of keys, nested brackets or dashes.
func checkTokens(tokens token.Tokens) *syntaxError {
	if len(tokens) > maxTokens {
		return &syntaxError{1, 1, "the file is too large for settings"}
	}
	open, prefixes, line := 0, 0, 0
	for _, t := range tokens {
		at, column := tokenPosition(t)
		if at != line {
			line, prefixes = at, 0
		}
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			open++
		case token.MappingEndType, token.SequenceEndType:
			open--
		case token.SequenceEntryType, token.MappingKeyType, token.AnchorType, token.TagType:
			prefixes++
		}
		if open > maxDepth || prefixes > maxDepth {
			return &syntaxError{at, column, "the file is too deeply nested"}
		}
	}
	return nil
}

func isComment(n ast.Node) bool { return n.Type() == ast.CommentType }

func yamlError(err error) *syntaxError {
	var e yaml.Error
	if !errors.As(err, &e) {
		return &syntaxError{1, 1, "the file is not YAML: " + shortenText(err.Error())}
	}
	line, column := tokenPosition(e.GetToken())
	return &syntaxError{line, column, e.GetMessage()}
}

func tokenPosition(t *token.Token) (line, column int) {
	if t == nil || t.Position == nil {
		return 1, 1
	}
	return max(t.Position.Line, 1), max(t.Position.Column, 1)
}

// Bounds on the size of a settings file.
const (
	maxYAML   = 256 << 10 // size in bytes
	maxTokens = 20_000
)

type yamlConverter struct {
	anchors map[string]*valueNode
	nodes   int
}

func (c *yamlConverter) convertNode(from ast.Node, depth int) (*valueNode, *syntaxError) {
	n := &valueNode{}
	if from == nil {
		return &valueNode{line: 1, column: 1, text: "null"}, nil
	}
	n.line, n.column = tokenPosition(from.GetToken())
	if c.nodes++; c.nodes > maxNodes || depth > maxDepth {
		return nil, n.syntaxErrorf("the file is too large or too deeply nested")
	}
	switch from := from.(type) {
	case *ast.MappingNode:
		n.kind = objectKind
		return n, c.convertEntries(n, from.Values, depth)
	case *ast.MappingValueNode:
		n.kind = objectKind
		return n, c.convertEntries(n, []*ast.MappingValueNode{from}, depth)
	case *ast.SequenceNode:
		n.kind = listKind
		for _, value := range from.Values {
			item, err := c.convertNode(value, depth+1)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, item)
		}
		return n, nil
	case *ast.AnchorNode:
		return c.convertAnchor(from, depth)
	case *ast.AliasNode:
		target, ok := c.anchors[scalarName(from.Value)]
		if !ok {
			return nil, n.syntaxErrorf("there is no anchor &%s earlier in the file", shortenText(scalarName(from.Value)))
		}
		return target, nil
	}
	return n, n.setScalar(from)
}

func (c *yamlConverter) convertEntries(n *valueNode, values []*ast.MappingValueNode, depth int) *syntaxError {
	for _, v := range values {
		key := &valueNode{kind: textKind, text: scalarName(v.Key)}
		key.line, key.column = tokenPosition(v.Key.GetToken())
		if v.Key.IsMergeKey() {
			return key.syntaxErrorf("merge keys are not supported; write out the keys")
		}
		value, err := c.convertNode(v.Value, depth+1)
		if err != nil {
			return err
		}
		n.entries = append(n.entries, nodeEntry{key, value})
		if len(n.entries) == 1 { // the mapping's own token is its first colon
			n.line, n.column = key.line, key.column
		}
	}
	return nil
}

// convertAnchor converts an anchored value. It registers the anchor only when the value is complete, so no anchor can
// contain itself.
func (c *yamlConverter) convertAnchor(from *ast.AnchorNode, depth int) (*valueNode, *syntaxError) {
	n, err := c.convertNode(from.Value, depth+1)
	if err == nil {
		c.anchors[scalarName(from.Name)] = n
	}
	return n, err
}

// scalarName returns the text of a key or the name of an anchor.
func scalarName(n ast.Node) string {
	if s, ok := n.(*ast.StringNode); ok {
		return s.Value
	}
	if n == nil || n.GetToken() == nil {
		return ""
	}
	return n.GetToken().Value
}

func (n *valueNode) syntaxErrorf(format string, args ...any) *syntaxError {
	return &syntaxError{n.line, n.column, fmt.Sprintf(format, args...)}
}

func (n *valueNode) setScalar(from ast.Node) *syntaxError {
	switch from := from.(type) {
	case *ast.NullNode:
		n.text = "null"
	case *ast.BoolNode:
		n.kind, n.text = boolKind, strconv.FormatBool(from.Value)
	case *ast.IntegerNode:
		n.kind, n.text = numberKind, fmt.Sprint(from.Value)
	case *ast.FloatNode:
		if math.IsInf(from.Value, 0) || math.IsNaN(from.Value) {
			return n.syntaxErrorf("%s is not a number", shortenText(from.Token.Value))
		}
		n.kind, n.text = numberKind, strconv.FormatFloat(from.Value, 'f', -1, 64)
	case *ast.StringNode:
		n.kind, n.text = textKind, from.Value
	case *ast.LiteralNode:
		n.kind, n.text = textKind, from.Value.Value
	case *ast.InfinityNode, *ast.NanNode:
		return n.syntaxErrorf("infinity and NaN are not supported")
	case *ast.TagNode:
		return n.syntaxErrorf("tags are not supported; write the plain value")
	default:
		return n.syntaxErrorf("%s is not supported here", from.Type().YAMLName())
	}
	return nil
}
