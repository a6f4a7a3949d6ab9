package catalog

import (
	"bytes"
	"encoding/json"
	"maps"
	"time"

	"retort/internal/base/seal"
	"retort/internal/catalog/sanitize"
	"retort/internal/core"
)

const (
	maxRecords    = 60_000    // tools of one server; further tools are not trusted
	maxTrustedRaw = 256 << 10 // bytes of a definition that is stored to show differences
)

// serverTrust holds the trusted definitions of one server's tools. The first definition of a tool that is ever
// seen becomes the trusted one. A serverTrust is immutable once it is shared.
type serverTrust struct {
	records map[string]trustRecord // by name of the tool; includes tools that the server no longer lists
	unknown string                 // why the trusted definitions are unknown; "": they are known
	writes  uint64                 // how often the file was written
	file    seal.FileStamp
}

// trustRecord holds the trusted definition of one tool.
type trustRecord struct {
	pin     string
	trusted time.Time
	clean   int             // version of the scan that found nothing suspicious; 0 if it found something
	raw     json.RawMessage // the definition; nil if it was too large to store
	// listedPin is the pin of the definition that the server lists instead. It is empty if the server lists the
	// trusted one.
	listedPin string
	noticed   time.Time // when listedPin was first seen
}

func (t *serverTrust) cloneTrust() *serverTrust {
	c := *t
	c.records = maps.Clone(t.records)
	if c.records == nil {
		c.records = map[string]trustRecord{}
	}
	return &c
}

// noteListing adds new tools of a listing to the trusted definitions, and records which known tools are listed with
// another definition. It reports whether it has added or recorded anything.
func (t *serverTrust) noteListing(tools []*core.Tool, now time.Time) (news bool) {
	if t.unknown != "" {
		return false
	}
	for _, tool := range tools {
		r, known := t.records[tool.Name]
		switch {
		case !known && len(t.records) >= maxRecords:
			continue
		case !known:
			r = recordOf(tool, now)
		case r.pin != tool.Pin && r.listedPin == tool.Pin:
			continue
		case r.pin != tool.Pin:
			r.listedPin, r.noticed = tool.Pin, now
		case r.listedPin != "" || r.clean != cleanOf(tool):
			r.listedPin, r.noticed, r.clean = "", time.Time{}, cleanOf(tool)
		default:
			continue
		}
		t.records[tool.Name] = r
		news = true
	}
	return news
}

func recordOf(t *core.Tool, now time.Time) trustRecord {
	r := trustRecord{pin: t.Pin, trusted: now, clean: cleanOf(t)}
	if len(t.Raw) <= maxTrustedRaw {
		r.raw = t.Raw
	}
	return r
}

func cleanOf(t *core.Tool) int {
	if len(t.Flags) > 0 {
		return 0
	}
	return sanitize.Version
}

// isTrusted reports whether a tool equals its trusted definition. It returns false if suspicious text had to be
// removed from that definition.
func (t *serverTrust) isTrusted(tool *core.Tool) bool {
	r := t.records[tool.Name]
	return t.unknown == "" && r.pin == tool.Pin && r.clean == sanitize.Version && bytes.Equal(r.raw, tool.Raw)
}

// findChange returns how a tool differs from its trusted definition, or nil.
func (t *serverTrust) findChange(tool *core.Tool, policy core.ChangePolicy) *core.DefinitionChange {
	r, known := t.records[tool.Name]
	if t.unknown == "" && known && r.pin == tool.Pin {
		return nil
	}
	c := &core.DefinitionChange{Server: tool.Server, Tool: tool.Name, Policy: policy, Pin: tool.Pin, Unknown: t.unknown}
	if t.unknown == "" && !known {
		c.Unknown = "the server has had more tools than Retort stores"
	}
	if c.Unknown == "" {
		c.Was, c.Trusted, c.Noticed = r.pin, r.trusted, r.noticed
	}
	if len(r.raw) == 0 && c.Unknown == "" {
		c.Diff = "(the trusted definition was too large to be kept; this is the current one)\n"
	}
	c.Diff += diffDefinitions(r.raw, tool.Raw)
	return c
}

// hideUntrusted removes from a changed tool what a model must not see. The tool keeps the structure of its new
// schemas, without texts. Its title and description become the trusted ones or, if these are unknown, empty. If the
// policy is only to note changes, hideUntrusted changes nothing.
func (t *serverTrust) hideUntrusted(tool *core.Tool, scanner *sanitize.TextScanner) {
	if tool.Change.Policy == core.ChangesNote {
		return
	}
	tool.Title, tool.Description = "", ""
	if r := t.records[tool.Name]; len(r.raw) > 0 && tool.Change.Unknown == "" {
		if was, _, err := readDefinition(tool.Server, r.raw, scanner); err == nil {
			tool.Title, tool.Description = was.Title, was.Description
		}
	}
	for _, schema := range []*json.RawMessage{&tool.InputSchema, &tool.OutputSchema} {
		if len(*schema) > 0 {
			*schema = stripProse(parseJSON(*schema, maxDepth))
		}
	}
}
