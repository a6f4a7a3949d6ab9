package relay

import (
	"bytes"
	"encoding/json"
	"fmt"

	"retort/internal/base/jsonscan"
)

// checkUnambiguous returns an error if an object in a result has two members of the same name that programs can see,
// because it would be unclear which one counts. For nearly every result a quick check suffices. Results that are
// stored in files were already checked by the connection pool.
func (a *toolAnswer) checkUnambiguous(result json.RawMessage) error {
	count := func(name string) int { return bytes.Count(result, []byte(name)) }
	if count(`"content"`) < 2 && count(`"structuredContent"`) < 2 && count(`"isError"`) < 2 && count(`\u00`) == 0 &&
		count(`"type"`) <= len(a.Content) && count(`"text"`) <= 2*len(a.Content) {
		return nil
	}
	var t duplicateFinder
	return t.scanBytes(result)
}

// duplicateFinder finds members that occur twice in one object of a tool result: in the result itself, in a content
// item, or in a content item's resource.
type duplicateFinder struct {
	scan jsonscan.Scanner
	seen []map[string]bool // by depth, of the objects that are open
	key  []byte
}

// Nesting depths of objects in a tool result: the result itself, content[i], and content[i].resource.
const (
	depthResult   = 1
	depthPart     = 3
	depthResource = 4
)

func (t *duplicateFinder) scanBytes(p []byte) error {
	for len(p) > 0 {
		kind, n, err := t.scan.Next(p)
		if err != nil {
			return err
		}
		if err := t.takePiece(kind, p[:n]); err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

func (t *duplicateFinder) takePiece(kind jsonscan.Kind, p []byte) error {
	depth := t.scan.NestingDepth()
	switch {
	case depth > depthResource:
	case kind == jsonscan.Open:
		for len(t.seen) <= depth {
			t.seen = append(t.seen, nil)
		}
		t.seen[depth] = map[string]bool{}
	case kind == jsonscan.Key:
		if t.key = append(t.key, p...); t.scan.InString() {
			return nil
		}
		var name string
		err := json.Unmarshal(t.key, &name)
		t.key = t.key[:0]
		if err != nil || !isVisibleMember(depth, name) {
			return err
		}
		if t.seen[depth][name] {
			return fmt.Errorf("the member %q occurs twice", name)
		}
		t.seen[depth][name] = true
	}
	return nil
}

// isVisibleMember reports whether programs can see a member of this name at this depth of a tool result.
func isVisibleMember(depth int, name string) bool {
	switch name {
	case "content", "structuredContent", "isError":
		return depth == depthResult
	case "type", "data", "resource":
		return depth == depthPart
	case "text", "mimeType":
		return depth == depthPart || depth == depthResource
	case "uri", "blob":
		return depth == depthResource
	}
	return false
}
