package client

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"retort/internal/core"
)

// Tools with which programs read the resources of a server. They are added to the tools of each server that has
// resources, and their calls are checked like any others. A tool of the server with the same name takes precedence.
const (
	toolRead = "read_resource"
	toolList = "list_resources"

	methodRead      = "resources/read"
	methodResources = "resources/list"
	methodTemplates = "resources/templates/list"
)

// resourceMark is the _meta member in the definitions of the resource tools that this package adds to a server's
// tools. It distinguishes them from the server's own tools.
const resourceMark = `"_meta":{"retort":"resources"}`

var resourceTools = map[string]json.RawMessage{
	toolRead: json.RawMessage(`{"name":"read_resource","description":"Read a resource of this server by its URI: text comes back as text, anything else as a file in the workspace.",` +
		`"inputSchema":{"type":"object","properties":{"uri":{"type":"string","description":"as list_resources has it, or made from a template"}},"required":["uri"],"additionalProperties":false},` +
		`"annotations":{"readOnlyHint":true},` + resourceMark + `}`),
	toolList: json.RawMessage(`{"name":"list_resources","description":"List the resources of this server that read_resource reads, and the templates of URIs.",` +
		`"inputSchema":{"type":"object","properties":{},"additionalProperties":false},` +
		`"outputSchema":{"type":"object","properties":{"resources":{"type":"array","items":{"type":"object","properties":{"uri":{"type":"string"},"name":{"type":"string"},"description":{"type":"string"},"mimeType":{"type":"string"},"size":{"type":"number"}},"required":["uri","name"]}},` +
		`"templates":{"type":"array","items":{"type":"object","properties":{"uriTemplate":{"type":"string"},"name":{"type":"string"},"description":{"type":"string"},"mimeType":{"type":"string"}},"required":["uriTemplate","name"]}}},"required":["resources","templates"]},` +
		`"annotations":{"readOnlyHint":true},` + resourceMark + `}`),
}

// ForResources reports whether a definition belongs to a resource tool that this package adds to a server's tools.
func ForResources(definition json.RawMessage) bool {
	return bytes.Contains(definition, []byte(resourceMark))
}

// withResources returns a server's tools together with the resource tools, if the server has resources.
func (s *serverConn) withResources(l ToolListing) ToolListing {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listedNames = map[string]bool{}
	if !l.Offers.Resources {
		return l
	}
	for _, raw := range l.Tools {
		var t struct {
			Name string `json:"name"`
		}
		if unmarshalExact(raw, &t) == nil {
			s.listedNames[plainName(t.Name)] = true
		}
	}
	for _, name := range []string{toolRead, toolList} {
		if !s.listedNames[plainName(name)] {
			l.Tools = append(l.Tools, resourceTools[name])
		}
	}
	return l
}

// plainName returns a name in lower case without separators, so that readResource and read-resource are equal.
func plainName(name string) string {
	return strings.ToLower(strings.Map(func(r rune) rune {
		if strings.ContainsRune("_-./ ", r) {
			return -1
		}
		return r
	}, name))
}

// aboutResources reports whether a call is for a resource tool that withResources has added.
func (s *serverConn) aboutResources(tool string) bool {
	if _, ours := resourceTools[tool]; !ours {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listedNames != nil && !s.listedNames[plainName(tool)] && s.last.Offers.Resources
}

// callResources makes a call of a resource tool. The result has the form of a tool result.
func (s *serverSession) callResources(
	ctx context.Context, x *pendingCall, tool string, args json.RawMessage, limit int64,
) (json.RawMessage, error) {
	if tool == toolList {
		return s.listResources(ctx, limit)
	}
	var asked struct {
		URI string `json:"uri"`
	}
	if unmarshalExact(args, &asked) != nil || asked.URI == "" {
		return nil, core.Errorf(core.KindInvalidArguments, "upstream.read", "%s needs the uri of a resource", toolRead)
	}
	answer, err := s.askServer(ctx, x, methodRead, func(meta json.RawMessage) json.RawMessage { return requestParams(meta, args) })
	if err != nil {
		return nil, err
	}
	return resourceResult(answer)
}

func (s *serverSession) listResources(ctx context.Context, limit int64) (json.RawMessage, error) {
	var found struct {
		Resources []json.RawMessage `json:"resources"`
		Templates []json.RawMessage `json:"templates"`
	}
	var err error
	if found.Resources, err = s.listPages(ctx, methodResources, "resources", limit); err != nil {
		return nil, err
	}
	if found.Templates, err = s.listPages(ctx, methodTemplates, "resourceTemplates", limit); err != nil {
		return nil, err
	}
	found.Resources, found.Templates = notNil(found.Resources), notNil(found.Templates)
	return json.Marshal(map[string]any{"content": []any{}, "structuredContent": found})
}

func notNil(list []json.RawMessage) []json.RawMessage {
	if list == nil {
		return []json.RawMessage{}
	}
	return list
}

// resourceResult converts the content of a resource to the form of a tool result. If the content is a single text,
// the text is the result's value.
func resourceResult(answer json.RawMessage) (json.RawMessage, error) {
	var read struct {
		Contents []json.RawMessage `json:"contents"`
	}
	if err := unmarshalExact(answer, &read); err != nil {
		return nil, core.Errorf(core.KindToolError, "upstream.read", "the server's answer is not the content of a resource: %v", err)
	}
	var sole struct {
		Text json.RawMessage `json:"text"`
	}
	if len(read.Contents) == 1 && unmarshalExact(read.Contents[0], &sole) == nil && firstByte(sole.Text) == '"' {
		return json.Marshal(map[string]any{"content": []any{}, "structuredContent": sole.Text})
	}
	content := make([]map[string]any, len(read.Contents))
	for i, c := range read.Contents {
		content[i] = map[string]any{"type": "resource", "resource": c}
	}
	return json.Marshal(map[string]any{"content": content})
}
