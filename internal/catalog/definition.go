package catalog

import (
	"encoding/json"
	"fmt"
	"runtime/debug"
	"unicode"
	"unicode/utf8"

	"retort/internal/catalog/sanitize"
	"retort/internal/core"
)

const (
	maxName  = 256    // bytes of a tool's name
	maxTools = 50_000 // tools of one server
)

// CatalogProblem represents a problem that retort doctor reports: a definition that was skipped or used only in part,
// or a file that was ignored.
type CatalogProblem struct {
	Server  string // "" if the problem is in a file
	Tool    string // "" if the problem affects the whole server
	File    string // path; "" if the problem is in a definition that a server sent
	Message string
}

func (p CatalogProblem) String() string {
	switch {
	case p.Tool != "":
		return fmt.Sprintf("%s: %q: %s", p.Server, p.Tool, p.Message)
	case p.File != "":
		return p.File + ": " + p.Message
	}
	return p.Server + ": " + p.Message
}

// readAll builds tools from definitions, in order. A broken definition is skipped without affecting the others.
func readAll(server string, definitions []json.RawMessage, s *sanitize.TextScanner) ([]*core.Tool, []CatalogProblem) {
	return readDefinitions(server, definitions, func(i int) (*core.Tool, []string, error) { return readDefinition(server, definitions[i], s) })
}

// readStored builds tools from stored definitions that readAll has accepted before. It does not check a definition
// again if it equals the trusted one byte for byte. It checks all others, because another program may have written
// them.
func readStored(server string, b fileBody, t *serverTrust, s func() *sanitize.TextScanner) ([]*core.Tool, []CatalogProblem) {
	return readDefinitions(server, b.Tools, func(i int) (*core.Tool, []string, error) {
		tool, notes, err := readStoredTool(server, b.Tools[i], b.Pins[i])
		if err == nil && t.isTrusted(tool) {
			return tool, notes, nil
		}
		return readDefinition(server, b.Tools[i], s())
	})
}

func readDefinitions(
	server string, definitions []json.RawMessage, read func(i int) (*core.Tool, []string, error),
) (tools []*core.Tool, problems []CatalogProblem) {
	report := func(name, format string, args ...any) {
		problems = append(problems, CatalogProblem{Server: server, Tool: name, Message: fmt.Sprintf(format, args...)})
	}
	if len(definitions) > maxTools {
		report("", "it lists %d tools; only the first %d are used", len(definitions), maxTools)
		definitions = definitions[:maxTools]
	}
	seen := make(map[string]bool, len(definitions))
	for i := range definitions {
		t, notes, err := readSafely(read, i)
		if err != nil {
			report("", "definition %d is skipped: %v", i+1, err)
			continue
		}
		if seen[t.Name] {
			report(t.Name, "definition %d is skipped: another tool has the same name", i+1)
			continue
		}
		seen[t.Name] = true
		tools = append(tools, t)
		for _, note := range notes {
			report(t.Name, "%s", note)
		}
	}
	return tools, problems
}

// readSafely calls the function read for the definition with index i. It converts a panic to an error, because text
// from a server must not crash the engine.
func readSafely(read func(i int) (*core.Tool, []string, error), i int) (t *core.Tool, notes []string, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			t, notes, err = nil, nil, fmt.Errorf("an internal error occurred in Retort while reading it: %v\n%s", fault, debug.Stack())
		}
	}()
	return read(i)
}

// readDefinition builds a tool from a definition. A missing or unusable name is an error. Other invalid parts are
// ignored and reported as notes.
func readDefinition(server string, raw json.RawMessage, s *sanitize.TextScanner) (*core.Tool, []string, error) {
	if !json.Valid(raw) {
		return nil, nil, fmt.Errorf("it is not JSON")
	}
	d := parseJSON(raw, maxDepth)
	if !d.isObject() {
		return nil, nil, fmt.Errorf("it is not an object")
	}
	if d.tooDeep {
		return nil, nil, fmt.Errorf("it is nested more than %d deep", maxDepth)
	}
	t, notes, err := buildTool(server, d, computePin(d))
	if err != nil {
		return nil, notes, err
	}
	if cleanDefinition(t, d, s); t.Withheld != "" {
		notes = append(
			notes,
			fmt.Sprintf("it is withheld from models, because its definition contains hidden text or instructions to the model at %s", t.Withheld),
		)
	}
	return t, notes, nil
}

// IdentifyTool returns a tool's name and the pin (hash) of its definition. Both are empty if the definition is
// unusable.
func IdentifyTool(definition json.RawMessage) (name, digest string) {
	if !json.Valid(definition) {
		return "", ""
	}
	d := parseJSON(definition, maxDepth)
	name, err := readName(d)
	if err != nil || d.tooDeep {
		return "", ""
	}
	return name, computePin(d)
}

// readStoredTool builds a tool from a stored definition that was accepted before, with fewer checks than
// readDefinition.
func readStoredTool(server string, raw json.RawMessage, pin string) (*core.Tool, []string, error) {
	return buildTool(server, parseJSON(raw, 2), pin) // annotations are the second level
}

func buildTool(server string, d jsonNode, pin string) (*core.Tool, []string, error) {
	name, err := readName(d)
	if err != nil {
		return nil, nil, err
	}
	r := definitionReader{definition: d}
	t := &core.Tool{
		Server: server, Name: name, Pin: pin, Raw: d.raw,
		Title: r.readText("title"), Description: r.readText("description"),
		InputSchema: r.readSchema("inputSchema"), OutputSchema: r.readSchema("outputSchema"),
	}
	r.readAnnotations(t)
	return t, r.notes, nil
}

func readName(definition jsonNode) (string, error) {
	value, ok := definition.findMember("name")
	if !ok {
		return "", fmt.Errorf("it has no name")
	}
	name, ok := unquoteJSON(value.raw)
	switch {
	case !ok:
		return "", fmt.Errorf("its name is not a string")
	case name == "":
		return "", fmt.Errorf("its name is empty")
	case len(name) > maxName:
		return "", fmt.Errorf("its name has %d bytes; at most %d are allowed: %q…", len(name), maxName, name[:32])
	case !isPrintable(name):
		return "", fmt.Errorf("its name has characters that cannot be shown: %q", name)
	}
	return name, nil
}

// isPrintable reports whether a name has no control characters, no invisible characters and no characters that change
// the direction of text.
func isPrintable(name string) bool {
	if !utf8.ValidString(name) {
		return false
	}
	for _, r := range name {
		if r != ' ' && !unicode.IsGraphic(r) || unicode.IsSpace(r) && r != ' ' {
			return false
		}
	}
	return true
}

// definitionReader reads the parts of a definition and collects notes about parts that are invalid.
type definitionReader struct {
	definition jsonNode
	notes      []string
}

func (r *definitionReader) addNote(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

func (r *definitionReader) readText(key string) string {
	value, ok := r.definition.findMember(key)
	if !ok {
		return ""
	}
	text, ok := unquoteJSON(value.raw)
	if !ok {
		r.addNote("its %s is not a string and is left out", key)
	}
	return text
}

// readSchema returns the exact bytes of a schema, which is an object or a boolean.
func (r *definitionReader) readSchema(key string) json.RawMessage {
	value, ok := r.definition.findMember(key)
	if !ok {
		return nil
	}
	if !value.isObject() && string(value.raw) != "true" && string(value.raw) != "false" {
		r.addNote("its %s is not a schema and is left out", key)
		return nil
	}
	return value.raw
}

func (r *definitionReader) readAnnotations(t *core.Tool) {
	value, ok := r.definition.findMember("annotations")
	if !ok {
		return
	}
	if !value.isObject() {
		r.addNote("its annotations are not an object and are left out")
		return
	}
	if title, ok := value.findMember("title"); ok && t.Title == "" {
		t.Title, _ = unquoteJSON(title.raw)
	}
	for key, hint := range map[string]**bool{
		"readOnlyHint": &t.Annotations.ReadOnly, "destructiveHint": &t.Annotations.Destructive,
		"idempotentHint": &t.Annotations.Idempotent, "openWorldHint": &t.Annotations.OpenWorld,
	} {
		switch said, _ := value.findMember(key); string(said.raw) {
		case "true", "false":
			is := string(said.raw) == "true"
			*hint = &is
		}
	}
}
