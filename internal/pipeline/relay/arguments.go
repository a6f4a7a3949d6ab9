package relay

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"retort/internal/pipeline/isolate"
	"retort/internal/run"
	"retort/internal/schema"
)

// schemas validates arguments against input schemas before a call leaves. A
// schema that does not compile validates nothing: the upstream decides then.
type schemas struct {
	mu    sync.Mutex
	byPin map[string]*schema.Schema // nil: does not compile
}

// maxSchemas bounds the cache; beyond it the cache starts anew.
const maxSchemas = 10_000

func newSchemas() *schemas { return &schemas{byPin: map[string]*schema.Schema{}} }

func (s *schemas) guard(tools *run.Toolset) Guard {
	return func(next isolate.Host) isolate.Host {
		return isolate.HostFunc(func(ctx context.Context, c run.Call) (run.Result, error) {
			if tool, ok := tools.Exact(c.Server, c.Tool); ok {
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
	value, err := schema.Decode(arguments)
	if err != nil {
		return run.Errorf(run.KindInvalidArguments, "relay.arguments", "the arguments are not JSON: %v", err)
	}
	given, ok := value.(map[string]any)
	if !ok {
		return run.Errorf(run.KindInvalidArguments, "relay.arguments", "the arguments must be one object, not %s", typeName(value))
	}
	input := s.compiled(tool)
	if input == nil {
		return nil
	}
	v := input.Validate(value)
	if v == nil {
		return nil
	}
	e := run.Errorf(run.KindInvalidArguments, "relay.arguments", "%s", explain(v))
	if hint := hintFor(v, input, given); hint != "" {
		return e.WithHint("%s", hint)
	}
	return e
}

func (s *schemas) compiled(tool *run.Tool) *schema.Schema {
	s.mu.Lock()
	defer s.mu.Unlock()
	if input, ok := s.byPin[tool.Pin]; ok && tool.Pin != "" {
		return input
	}
	if len(s.byPin) >= maxSchemas {
		clear(s.byPin)
	}
	input, err := schema.Compile(tool.InputSchema)
	if err != nil {
		input = nil
	}
	s.byPin[tool.Pin] = input
	return input
}

func explain(v *schema.Violation) string {
	at := argument(v.Path)
	switch v.Keyword {
	case schema.Required:
		return fmt.Sprintf("%smissing %s", prefix(at), quoted(v.Missing))
	case schema.AdditionalProperties:
		return fmt.Sprintf("%sthere is no argument %s", prefix(at), quoted(v.Unknown))
	case schema.Type:
		return fmt.Sprintf("%sexpected %s, got %s", prefix(at), strings.Join(v.Types(), " or "), v.Got)
	case schema.Enum:
		return fmt.Sprintf("%sexpected one of %s, got %s", prefix(at), list(v.Values()), show(v.Got))
	case schema.Const:
		return fmt.Sprintf("%sexpected %s, got %s", prefix(at), show(v.Want), show(v.Got))
	case schema.AnyOf, schema.OneOf:
		return fmt.Sprintf("%sfits none of the allowed forms", prefix(at))
	}
	return prefix(at) + v.String()
}

func hintFor(v *schema.Violation, input *schema.Schema, given map[string]any) string {
	switch v.Keyword {
	case schema.AdditionalProperties:
		if len(v.Path) == 0 {
			return nearest(v.Unknown, input.Properties())
		}
	case schema.Required:
		if len(v.Path) == 0 {
			return renamed(v.Missing, unknown(given, input.Properties()))
		}
	case schema.Enum:
		if got, ok := v.Got.(string); ok {
			return nearest([]string{got}, stringsOf(v.Values()))
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
	return "arguments: " + run.Legible(strings.Join(right, ", "))
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
