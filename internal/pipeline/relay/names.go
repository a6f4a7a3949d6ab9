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

// names answers the engine's own functions and ensures that every other call is for a tool that this execution may
// see.
func names(x Execution) Guard {
	return func(next sandbox.Host) sandbox.Host {
		return sandbox.HostFunc(func(ctx context.Context, c core.Call) (core.Result, error) {
			if c.Server == "" && c.Tool != "call" {
				return own(ctx, x, c)
			}
			c, err := resolve(x.Tools, c)
			if err != nil {
				return core.Result{}, err
			}
			return next.Call(ctx, c)
		})
	}
}

// resolve finds the tool that c names. A program may also pass the tool's name as a string to the function "call".
func resolve(tools *core.Toolset, c core.Call) (core.Call, error) {
	if c.Server == "" {
		var byName struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
			NoCache   bool            `json:"no_cache"`
		}
		if err := json.Unmarshal(c.Arguments, &byName); err != nil {
			return c, core.Errorf(core.KindInvalidArguments, "relay.resolve", "callMCPTool: %v", err)
		}
		tool, ok := tools.Tool(byName.Name)
		if !ok {
			return c, tools.NotFound(byName.Name)
		}
		return core.Call{Server: tool.Server, Tool: tool.Name, Arguments: object(byName.Arguments), NoCache: byName.NoCache}, nil
	}
	server, ok := tools.Server(c.Server)
	if !ok {
		return c, tools.NotFound(c.Server + "." + c.Tool)
	}
	tool, ok := server.On(c.Tool)
	if !ok {
		return c, tools.NotFound(server.Name+"."+c.Tool).At(c.Server, c.Tool)
	}
	return core.Call{Server: tool.Server, Tool: tool.Name, Arguments: object(c.Arguments)}, nil
}

// object replaces absent arguments by the empty object that tools expect.
func object(arguments json.RawMessage) json.RawMessage {
	if trimmed := bytes.TrimSpace(arguments); len(trimmed) == 0 || string(trimmed) == "null" {
		return json.RawMessage("{}")
	}
	return arguments
}

func own(ctx context.Context, x Execution, c core.Call) (core.Result, error) {
	f, ok := x.Functions[c.Tool]
	if !ok {
		have := slices.Sorted(maps.Keys(x.Functions))
		return core.Result{}, core.Errorf(core.KindRuntime, "relay.own", "%s is not built in this version of Retort", c.Tool).
			WithHint("programs can use: %s", strings.Join(have, ", "))
	}
	answer, err := f(ctx, c.Arguments)
	if err != nil {
		return core.Result{}, core.AsError(err)
	}
	value, err := json.Marshal(answer)
	if err != nil {
		return core.Result{}, core.Errorf(core.KindInternal, "relay.own", "%s: %w", c.Tool, err)
	}
	return core.Result{Value: value}, nil
}
