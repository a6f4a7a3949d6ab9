package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"retort/internal/pipeline/isolate"
	"retort/internal/run"
)

// schemas validates arguments against input schemas before a call leaves. A
// schema that does not compile validates nothing: the upstream decides then.
type schemas struct {
	mu    sync.Mutex
	byPin map[string]*jsonschema.Schema // nil: does not compile
}

// maxSchemas bounds the cache; beyond it the cache starts anew.
const maxSchemas = 10_000

func newSchemas() *schemas { return &schemas{byPin: map[string]*jsonschema.Schema{}} }

func (s *schemas) guard(tools *run.Toolset) Guard {
	return func(next isolate.Host) isolate.Host {
		return isolate.HostFunc(func(ctx context.Context, c run.Call) (run.Result, error) {
			if tool, ok := tools.Tool(c.Server + "__" + c.Tool); ok {
				if err := s.check(tool, c.Arguments); err != nil {
					return run.Result{}, err.At(c.Server, c.Tool)
				}
			}
			return next.Call(ctx, c)
		})
	}
}

// check returns an error of kind invalid_arguments that names the argument,
// what was expected, and the nearest right name.
func (s *schemas) check(tool *run.Tool, arguments json.RawMessage) *run.Error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(arguments))
	if err != nil {
		return run.Errorf(run.KindInvalidArguments, "relay.arguments", "the arguments are not JSON: %v", err)
	}
	given, ok := value.(map[string]any)
	if !ok {
		return run.Errorf(run.KindInvalidArguments, "relay.arguments", "the arguments must be one object, not %s", typeName(value))
	}
	schema := s.compiled(tool)
	if schema == nil {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if err := schema.Validate(value); err == nil {
		return nil
	} else if invalid, ok = err.(*jsonschema.ValidationError); !ok {
		return nil
	}
	leaf := deepest(invalid)
	e := run.Errorf(run.KindInvalidArguments, "relay.arguments", "%s", explain(leaf))
	if hint := hintFor(leaf, schema, given); hint != "" {
		return e.WithHint("%s", hint)
	}
	return e
}

func (s *schemas) compiled(tool *run.Tool) *jsonschema.Schema {
	s.mu.Lock()
	defer s.mu.Unlock()
	if schema, ok := s.byPin[tool.Pin]; ok && tool.Pin != "" {
		return schema
	}
	if len(s.byPin) >= maxSchemas {
		clear(s.byPin)
	}
	schema := compile(tool.InputSchema)
	s.byPin[tool.Pin] = schema
	return schema
}

// closed refuses every reference that leads out of the schema itself.
type closed struct{}

func (closed) Load(url string) (any, error) { return nil, fmt.Errorf("%s is not loaded", url) }

func compile(raw json.RawMessage) (schema *jsonschema.Schema) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(closed{})
	c.UseRegexpEngine(lenientRegexp)
	const url = "retort:///input.json"
	if err := c.AddResource(url, doc); err != nil {
		return nil
	}
	if schema, err = c.Compile(url); err != nil {
		return nil
	}
	return schema
}

// lenientRegexp lets a pattern that Go cannot express match everything: the
// upstream has the last word on its own patterns.
func lenientRegexp(pattern string) (jsonschema.Regexp, error) {
	if re, err := regexp.Compile(pattern); err == nil {
		return re, nil
	}
	return anything(pattern), nil
}

type anything string

func (anything) MatchString(string) bool { return true }
func (a anything) String() string        { return string(a) }

// deepest is the error that tells most: along the branch that got furthest.
func deepest(e *jsonschema.ValidationError) *jsonschema.ValidationError {
	best := e
	for _, cause := range e.Causes {
		if leaf := deepest(cause); better(leaf, best) {
			best = leaf
		}
	}
	return best
}

func better(a, b *jsonschema.ValidationError) bool {
	if vague(a.ErrorKind) != vague(b.ErrorKind) {
		return vague(b.ErrorKind)
	}
	return len(a.InstanceLocation) > len(b.InstanceLocation)
}

func vague(k jsonschema.ErrorKind) bool {
	switch k.(type) {
	case *kind.Schema, *kind.Group, *kind.AllOf, *kind.AnyOf, *kind.OneOf, *kind.Reference:
		return true
	}
	return false
}

func explain(e *jsonschema.ValidationError) string {
	at := argument(e.InstanceLocation)
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		return fmt.Sprintf("%smissing %s", prefix(at), quoted(k.Missing))
	case *kind.AdditionalProperties:
		return fmt.Sprintf("%sthere is no argument %s", prefix(at), quoted(k.Properties))
	case *kind.Type:
		return fmt.Sprintf("%sexpected %s, got %s", prefix(at), strings.Join(k.Want, " or "), k.Got)
	case *kind.Enum:
		return fmt.Sprintf("%sexpected one of %s, got %s", prefix(at), list(k.Want), show(k.Got))
	case *kind.Const:
		return fmt.Sprintf("%sexpected %s, got %s", prefix(at), show(k.Want), show(k.Got))
	case *kind.AnyOf, *kind.OneOf:
		return fmt.Sprintf("%sfits none of the allowed forms", prefix(at))
	}
	return prefix(at) + e.ErrorKind.LocalizedString(printer)
}

func hintFor(e *jsonschema.ValidationError, schema *jsonschema.Schema, given map[string]any) string {
	switch k := e.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		if len(e.InstanceLocation) == 0 {
			return nearest(k.Properties, known(schema))
		}
	case *kind.Required:
		if len(e.InstanceLocation) == 0 {
			return renamed(k.Missing, unknown(given, schema))
		}
	case *kind.Enum:
		if got, ok := k.Got.(string); ok {
			return nearest([]string{got}, stringsOf(k.Want))
		}
	}
	return ""
}

// nearest says which of right could have been meant by wrong.
func nearest(wrong, right []string) string {
	for _, w := range wrong {
		if near := run.Nearest(w, right, 1); len(near) > 0 {
			return fmt.Sprintf("did you mean %q?", near[0])
		}
	}
	if len(right) == 0 {
		return "this tool takes no arguments"
	}
	return "arguments: " + strings.Join(right, ", ")
}

// renamed says which given argument could be one that is missing.
func renamed(missing, extra []string) string {
	for _, m := range missing {
		if near := run.Nearest(m, extra, 1); len(near) > 0 {
			return fmt.Sprintf("%q was given: it is called %q", near[0], m)
		}
	}
	return ""
}

func known(schema *jsonschema.Schema) []string {
	var names []string
	for s := schema; s != nil; s = s.Ref {
		for name := range s.Properties {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func unknown(given map[string]any, schema *jsonschema.Schema) []string {
	have := known(schema)
	var names []string
	for name := range given {
		if !slices.Contains(have, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
