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

// schemaValidator checks the arguments of a call against the tool's input schema before the call is sent. If the
// schema is invalid, it checks nothing, and the server has to check the arguments.
type schemaValidator struct {
	mu    sync.Mutex
	byPin map[string]*jsonschema.Schema // nil: does not compile
}

// maxSchemas bounds the cache of compiled schemas. A full cache is emptied.
const maxSchemas = 10_000

func newSchemas() *schemaValidator { return &schemaValidator{byPin: map[string]*jsonschema.Schema{}} }

func (s *schemaValidator) argumentGuard(tools *core.Toolset) CallGuard {
	return func(next sandbox.ToolHost) sandbox.ToolHost {
		return sandbox.HostFunc(func(ctx context.Context, c core.ToolCall) (core.CallResult, error) {
			if tool, ok := tools.FindExact(c.Server, c.Tool); ok {
				if err := s.checkArguments(tool, c.Arguments); err != nil {
					if c.Restored {
						err = err.withoutValues()
					}
					return core.CallResult{}, err.AtTool(c.Server, c.Tool)
				}
			}
			return next.Call(ctx, c)
		})
	}
}

// checkArguments returns an error if the arguments do not match the tool's input schema. The error has kind
// invalid_arguments and names the argument, what was expected, and the nearest valid name.
func (s *schemaValidator) checkArguments(tool *core.Tool, arguments json.RawMessage) *argumentError {
	value, err := jsonschema.Decode(arguments)
	if err != nil {
		e := core.Errorf(core.KindInvalidArguments, "relay.arguments", "the arguments are not JSON: %v", err)
		return &argumentError{e, nil}
	}
	given, ok := value.(map[string]any)
	if !ok {
		e := core.Errorf(
			core.KindInvalidArguments, "relay.arguments", "the arguments must be one object, not %s", typeName(value),
		)
		return &argumentError{e, nil}
	}
	input := s.compiledSchema(tool)
	if input == nil {
		return nil
	}
	v := input.Validate(value)
	if v == nil {
		return nil
	}
	e := core.Errorf(core.KindInvalidArguments, "relay.arguments", "%s", explainViolation(v))
	if hint := hintFor(v, input, given); hint != "" {
		e = e.WithHint("%s", hint)
	}
	return &argumentError{e, v}
}

// argumentError is the error for arguments that do not match the tool's schema. Its message may contain parts of the
// arguments.
type argumentError struct {
	*core.Error
	violation *jsonschema.Violation // nil if the arguments are not one JSON object
}

// withoutValues returns the error with a message that says where an argument is wrong, but neither repeats values nor
// tells their length. It is for calls in which values have replaced tokens, because the program must not learn these
// values.
func (e *argumentError) withoutValues() *argumentError {
	message := "the arguments are not one JSON object"
	if v := e.violation; v != nil {
		switch v.Keyword {
		case jsonschema.Required, jsonschema.Type:
			return e
		case jsonschema.AdditionalProperties:
			message = pathPrefix(argumentPath(v.Path)) + "there is an argument that the tool does not have"
		default:
			message = pathPrefix(argumentPath(v.Path)) + "the value behind a token, or another value, does not match " +
				string(v.Keyword)
		}
	}
	plain := core.Errorf(core.KindInvalidArguments, "relay.arguments", "%s", message)
	plain = plain.WithHint("describe_tools shows what this argument takes; a value behind a token is not shown")
	return &argumentError{plain, e.violation}
}

func (s *schemaValidator) compiledSchema(tool *core.Tool) *jsonschema.Schema {
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

func explainViolation(v *jsonschema.Violation) string {
	at := argumentPath(v.Path)
	switch v.Keyword {
	case jsonschema.Required:
		return fmt.Sprintf("%smissing %s", pathPrefix(at), quoteNames(v.Missing))
	case jsonschema.AdditionalProperties:
		return fmt.Sprintf("%sthere is no argument %s", pathPrefix(at), quoteNames(v.Unknown))
	case jsonschema.Type:
		return fmt.Sprintf("%sexpected %s, got %s", pathPrefix(at), strings.Join(v.WantedTypes(), " or "), v.Got)
	case jsonschema.Enum:
		return fmt.Sprintf("%sexpected one of %s, got %s", pathPrefix(at), listValues(v.WantedValues()), showValue(v.Got))
	case jsonschema.Const:
		return fmt.Sprintf("%sexpected %s, got %s", pathPrefix(at), showValue(v.Want), showValue(v.Got))
	case jsonschema.AnyOf, jsonschema.OneOf:
		return fmt.Sprintf("%smatches none of the allowed forms", pathPrefix(at))
	}
	return pathPrefix(at) + v.String()
}

func hintFor(v *jsonschema.Violation, input *jsonschema.Schema, given map[string]any) string {
	switch v.Keyword {
	case jsonschema.AdditionalProperties:
		if len(v.Path) == 0 {
			return suggestNearest(v.Unknown, input.PropertyNames())
		}
	case jsonschema.Required:
		if len(v.Path) == 0 {
			return suggestRenamed(v.Missing, unknownArguments(given, input.PropertyNames()))
		}
	case jsonschema.Enum:
		if got, ok := v.Got.(string); ok {
			return suggestNearest([]string{got}, stringsOf(v.WantedValues()))
		}
	}
	return ""
}

// suggestNearest returns a hint for unknown arguments: the most similar valid name, or all valid names.
func suggestNearest(wrong, right []string) string {
	for _, w := range wrong {
		if near := core.NearestNames(w, right, 1); len(near) > 0 {
			return fmt.Sprintf("did you mean %q?", near[0])
		}
	}
	if len(right) == 0 {
		return "this tool takes no arguments"
	}
	return "arguments: " + core.EscapeIllegible(strings.Join(right, ", "))
}

// suggestRenamed returns a hint if a missing argument was probably given under a similar name, or "".
func suggestRenamed(missing, extra []string) string {
	for _, m := range missing {
		if near := core.NearestNames(m, extra, 1); len(near) > 0 {
			return fmt.Sprintf("%q was given, but the argument is called %q", near[0], m)
		}
	}
	return ""
}

func unknownArguments(given map[string]any, known []string) []string {
	var names []string
	for name := range given {
		if !slices.Contains(known, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
