package relay

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"retort/internal/base/jsonschema"
	"retort/internal/core"
	"retort/internal/sandbox"
)

// schemas validates arguments against input schemas before a call is sent. A schema that does not compile is ignored,
// and the upstream server decides.
type schemas struct {
	mu    sync.Mutex
	byPin map[string]*jsonschema.Schema // nil: does not compile
}

// maxSchemas bounds the cache, which is emptied when it is full.
const maxSchemas = 10_000

func newSchemas() *schemas { return &schemas{byPin: map[string]*jsonschema.Schema{}} }

func (s *schemas) guard(tools *core.Toolset) Guard {
	return func(next sandbox.Host) sandbox.Host {
		return sandbox.HostFunc(func(ctx context.Context, c core.Call) (core.Result, error) {
			if tool, ok := tools.Exact(c.Server, c.Tool); ok {
				if err := s.check(tool, c.Arguments); err != nil {
					return core.Result{}, err.At(c.Server, c.Tool)
				}
			}
			return next.Call(ctx, c)
		})
	}
}

// check returns an error of kind invalid_arguments that names the argument,
// what was expected, and the nearest right name.
func (s *schemas) check(tool *core.Tool, arguments json.RawMessage) *core.Error {
	value, err := jsonschema.Decode(arguments)
	if err != nil {
		return core.Errorf(core.KindInvalidArguments, "relay.arguments", "the arguments are not JSON: %v", err)
	}
	given, ok := value.(map[string]any)
	if !ok {
		return core.Errorf(core.KindInvalidArguments, "relay.arguments", "the arguments must be one object, not %s", typeName(value))
	}
	input := s.compiled(tool)
	if input == nil {
		return nil
	}
	v := input.Validate(value)
	if v == nil {
		return nil
	}
	e := core.Errorf(core.KindInvalidArguments, "relay.arguments", "%s", explain(v))
	if hint := hintFor(v, input, given); hint != "" {
		return e.WithHint("%s", hint)
	}
	return e
}

func (s *schemas) compiled(tool *core.Tool) *jsonschema.Schema {
	s.mu.Lock()
	defer s.mu.Unlock()
	if input, ok := s.byPin[tool.Pin]; ok && tool.Pin != "" {
		return input
	}
	if len(s.byPin) >= maxSchemas {
		clear(s.byPin)
	}
	input, err := jsonschema.Compile(tool.InputSchema)
	if err != nil {
		input = nil
	}
	s.byPin[tool.Pin] = input
	return input
}

func explain(v *jsonschema.Violation) string {
	at := argument(v.Path)
	switch v.Keyword {
	case jsonschema.Required:
		return fmt.Sprintf("%smissing %s", prefix(at), quoted(v.Missing))
	case jsonschema.AdditionalProperties:
		return fmt.Sprintf("%sthere is no argument %s", prefix(at), quoted(v.Unknown))
	case jsonschema.Type:
		return fmt.Sprintf("%sexpected %s, got %s", prefix(at), strings.Join(v.Types(), " or "), v.Got)
	case jsonschema.Enum:
		return fmt.Sprintf("%sexpected one of %s, got %s", prefix(at), list(v.Values()), show(v.Got))
	case jsonschema.Const:
		return fmt.Sprintf("%sexpected %s, got %s", prefix(at), show(v.Want), show(v.Got))
	case jsonschema.AnyOf, jsonschema.OneOf:
		return fmt.Sprintf("%sfits none of the allowed forms", prefix(at))
	}
	return prefix(at) + v.String()
}

func hintFor(v *jsonschema.Violation, input *jsonschema.Schema, given map[string]any) string {
	switch v.Keyword {
	case jsonschema.AdditionalProperties:
		if len(v.Path) == 0 {
			return nearest(v.Unknown, input.Properties())
		}
	case jsonschema.Required:
		if len(v.Path) == 0 {
			return renamed(v.Missing, unknown(given, input.Properties()))
		}
	case jsonschema.Enum:
		if got, ok := v.Got.(string); ok {
			return nearest([]string{got}, stringsOf(v.Values()))
		}
	}
	return ""
}

// nearest suggests which of right was meant by wrong.
func nearest(wrong, right []string) string {
	for _, w := range wrong {
		if near := core.Nearest(w, right, 1); len(near) > 0 {
			return fmt.Sprintf("did you mean %q?", near[0])
		}
	}
	if len(right) == 0 {
		return "this tool takes no arguments"
	}
	return "arguments: " + core.Legible(strings.Join(right, ", "))
}

// renamed suggests which given argument may be a misnamed missing one.
func renamed(missing, extra []string) string {
	for _, m := range missing {
		if near := core.Nearest(m, extra, 1); len(near) > 0 {
			return fmt.Sprintf("%q was given: it is called %q", near[0], m)
		}
	}
	return ""
}

func unknown(given map[string]any, known []string) []string {
	var names []string
	for name := range given {
		if !slices.Contains(known, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
