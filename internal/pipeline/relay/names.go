package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"retort/internal/core"
	"retort/internal/sandbox"
)

// resolveGuard returns the guard that resolves the names in a call. If the call is of one of the engine's own
// functions, the guard answers it itself. If the call is of a tool, the guard replaces the names of the server and
// the tool by their exact spelling, and refuses a tool that the execution may not see.
func resolveGuard(x ExecutionContext) CallGuard {
	return func(next sandbox.ToolHost) sandbox.ToolHost {
		return sandbox.HostFunc(func(ctx context.Context, c core.ToolCall) (core.CallResult, error) {
			if c.Server == "" && c.Tool != "call" {
				return callOwn(ctx, x, c)
			}
			c, err := resolveTool(x.Tools, c)
			if err != nil {
				return core.CallResult{}, err
			}
			return next.Call(ctx, c)
		})
	}
}

// resolveTool returns c with the exact names of its server and tool. In a call of the engine's function "call", it
// takes the name of the tool from the arguments.
func resolveTool(tools *core.Toolset, c core.ToolCall) (core.ToolCall, error) {
	if c.Server == "" {
		var byName struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
			NoCache   bool            `json:"no_cache"`
		}
		if err := json.Unmarshal(c.Arguments, &byName); err != nil {
			return c, core.Errorf(core.KindInvalidArguments, "relay.resolve", "callMCPTool: %v", err)
		}
		tool, ok := tools.FindTool(byName.Name)
		if !ok {
			return c, tools.NotFound(byName.Name)
		}
		return core.ToolCall{Server: tool.Server, Tool: tool.Name, Arguments: orEmptyObject(byName.Arguments), NoCache: byName.NoCache}, nil
	}
	server, ok := tools.FindServer(c.Server)
	if !ok {
		return c, tools.NotFound(c.Server + "." + c.Tool)
	}
	tool, ok := server.FindTool(c.Tool)
	if !ok {
		return c, tools.NotFound(server.Name+"."+c.Tool).AtTool(c.Server, c.Tool)
	}
	return core.ToolCall{Server: tool.Server, Tool: tool.Name, Arguments: orEmptyObject(c.Arguments)}, nil
}

// knownNamesGuard returns the guard that removes the names of unknown servers and tools from errors. A program chooses
// the names in its calls, so such names could contain personal data.
func knownNamesGuard(tools *core.Toolset) CallGuard {
	all := tools.WithHidden()
	return func(next sandbox.ToolHost) sandbox.ToolHost {
		return sandbox.HostFunc(func(ctx context.Context, c core.ToolCall) (core.CallResult, error) {
			result, err := next.Call(ctx, c)
			if err == nil {
				return result, nil
			}
			return result, withKnownNames(all, core.AsError(err))
		})
	}
}

// withKnownNames returns e with the names of its server and tool as the catalogue spells them. It removes names that
// the catalogue does not have.
func withKnownNames(tools *core.Toolset, e *core.Error) *core.Error {
	if _, ok := tools.FindExact(e.Server, e.Tool); ok || e.Server == "" && e.Tool == "" {
		return e
	}
	server, ok := tools.FindServer(e.Server)
	if !ok {
		return e.AtTool("", "")
	}
	tool, ok := server.FindTool(e.Tool)
	if !ok {
		return e.AtTool(server.Name, "")
	}
	return e.AtTool(server.Name, tool.Name)
}

// orEmptyObject replaces absent arguments by the empty object that tools expect.
func orEmptyObject(arguments json.RawMessage) json.RawMessage {
	if trimmed := bytes.TrimSpace(arguments); len(trimmed) == 0 || string(trimmed) == "null" {
		return json.RawMessage("{}")
	}
	return arguments
}

func callOwn(ctx context.Context, x ExecutionContext, c core.ToolCall) (core.CallResult, error) {
	f, ok := x.Functions[c.Tool]
	if !ok {
		have := slices.Sorted(maps.Keys(x.Functions))
		return core.CallResult{}, core.Errorf(core.KindRuntime, "relay.own", "%s is not available in this version of Retort", c.Tool).
			WithHint("programs can use: %s", strings.Join(have, ", "))
	}
	answer, err := f(ctx, c.Arguments)
	if err != nil {
		return core.CallResult{}, core.AsError(err)
	}
	value, err := json.Marshal(answer)
	if err != nil {
		return core.CallResult{}, core.Errorf(core.KindInternal, "relay.own", "%s: %w", c.Tool, err)
	}
	return core.CallResult{Value: value}, nil
}
