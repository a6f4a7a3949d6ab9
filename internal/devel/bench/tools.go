package bench

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
)

// Words that are common in the names and descriptions of real servers' tools.
var (
	verbs = []string{
		"list", "get", "search", "create", "update", "delete", "archive", "export", "assign", "merge", "watch", "rename",
		"copy", "move", "publish", "approve", "cancel", "import", "count", "summarize",
	}
	nouns = []string{
		"issue", "invoice", "customer", "document", "repository", "pull_request", "message", "channel", "calendar_event",
		"contact", "deployment", "dashboard", "alert", "ticket", "file", "folder", "record", "workflow", "order",
		"payment", "report", "comment", "branch", "release", "project", "team", "user", "webhook", "label", "milestone",
	}
	tails = []string{
		"by owner and state", "across all workspaces", "with pagination", "in a time range", "including archived ones",
		"for the current user", "as structured data", "with their permissions", "sorted by last change",
		"matching a query",
	}
	fields = []string{
		"owner", "state", "query", "limit", "cursor", "created_after", "assignee", "labels", "sort_order",
		"include_archived", "project_id", "title", "body", "priority",
	}
)

// makeDefinitions makes n tool definitions that resemble those of real servers in
// size and wording; the same n gives the same definitions.
func makeDefinitions(n int) []json.RawMessage {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	out := make([]json.RawMessage, n)
	for i := range out {
		out[i] = makeDefinition(r, i)
	}
	return out
}

func makeDefinition(r *rand.Rand, i int) json.RawMessage {
	verb, noun := verbs[i%len(verbs)], nouns[i/len(verbs)%len(nouns)]
	name := verb + "_" + noun
	if round := i / (len(verbs) * len(nouns)); round > 0 {
		name = fmt.Sprintf("%s_%s_%d", name, pickOne(r, nouns), round)
	}
	properties := map[string]any{}
	for range 3 + r.IntN(5) {
		f := pickOne(r, fields)
		properties[f] = makeProperty(r, f)
	}
	properties["id"] = map[string]any{"type": "string", "description": "Identifier of the " + splitWords(noun)}
	text, err := json.Marshal(map[string]any{
		"name": name,
		"description": fmt.Sprintf(
			"%s a %s %s. Use it to %s the %s of a %s; returns the fields of each.", titleCase(verb), splitWords(noun),
			pickOne(r, tails), pickOne(r, verbs), pickOne(r, fields), splitWords(noun),
		),
		"inputSchema": map[string]any{"type": "object", "properties": properties, "required": []string{"id"}},
		"annotations": map[string]any{"readOnlyHint": i%2 == 0},
	})
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	return text
}

func makeProperty(r *rand.Rand, name string) map[string]any {
	p := map[string]any{"description": fmt.Sprintf(
		"The %s to %s the %s with", splitWords(name), pickOne(r, verbs), splitWords(pickOne(r, nouns)),
	)}
	switch r.IntN(5) {
	case 0:
		p["type"], p["minimum"], p["maximum"] = "integer", 1, 100
	case 1:
		p["enum"] = []string{"open", "closed", "all"}
	case 2:
		p["type"], p["items"] = "array", map[string]any{"type": "string"}
	case 3:
		p["type"], p["default"] = "boolean", false
	default:
		p["type"] = "string"
	}
	return p
}

func pickOne(r *rand.Rand, from []string) string { return from[r.IntN(len(from))] }

func splitWords(name string) string { return strings.ReplaceAll(name, "_", " ") }

func titleCase(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
