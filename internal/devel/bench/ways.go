package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"retort/internal/devel/demo"
	"retort/internal/tokens"
)

// The ways in which a client can let a model do a task.
const (
	WayDirect = "direct calls, all definitions"
	WaySearch = "direct calls, tool search"
	WayFull   = "code, full surface"
	WayLean   = "code, lean surface"
)

// WorkloadCost is the cost of a task done in one way. Tokens are those of the encoding o200k_base.
type WorkloadCost struct {
	Way         string `json:"way"`
	Loaded      int    `json:"loaded"`      // tokens of the definitions before the first turn
	Definitions int    `json:"definitions"` // tokens of tool definitions and server instructions
	Read        int    `json:"read"`        // tokens of tool results that the model reads
	Written     int    `json:"written"`     // tokens that the model writes: calls, arguments, programs
	RoundTrips  int    `json:"round_trips"` // turns in which the model made a call
	Calls       int    `json:"tool_calls"`  // calls that reached the servers
	// WallMS is the total duration of all calls in milliseconds, without the model's own time.
	WallMS float64 `json:"wall_ms"`
	Peak   int     `json:"peak_context"` // tokens in the context at the end
	Input  int     `json:"input_tokens"` // tokens that the model reads in all turns, without caching
	Answer string  `json:"answer"`       // JSON; equal for all ways
}

// DataTokens returns the number of tokens that are not definitions.
func (c WorkloadCost) DataTokens() int { return c.Read + c.Written }

// modelConversation counts the tokens in the context of a model.
type modelConversation struct{ cost WorkloadCost }

func beginConversation(way, task string) *modelConversation {
	c := &modelConversation{cost: WorkloadCost{Way: way}}
	c.cost.Peak = tokens.CountTokens(task)
	return c
}

func (c *modelConversation) addDefinitions(text string) { c.addTokens(&c.cost.Definitions, text) }
func (c *modelConversation) addInput(text string)       { c.addTokens(&c.cost.Read, text) }
func (c *modelConversation) addOutput(text string)      { c.addTokens(&c.cost.Written, text) }

func (c *modelConversation) addTokens(to *int, text string) {
	n := tokens.CountTokens(text)
	*to += n
	c.cost.Peak += n
}

// countTurn counts one turn of the model, which reads its whole context in it.
func (c *modelConversation) countTurn() {
	if c.cost.RoundTrips == 0 {
		c.cost.Loaded = c.cost.Definitions
	}
	c.cost.RoundTrips++
	c.cost.Input += c.cost.Peak
}

// finishTask counts the model's last turn, in which it makes no calls.
func (c *modelConversation) finishTask(answer any, took time.Duration) (WorkloadCost, error) {
	text, err := canonicalJSON(answer)
	if err != nil {
		return WorkloadCost{}, err
	}
	c.cost.Input += c.cost.Peak
	c.addOutput(text)
	c.cost.Answer, c.cost.WallMS = text, float64(took.Microseconds())/1000
	return c.cost, nil
}

// canonicalJSON encodes v as JSON with sorted keys, so that equal values give equal texts.
func canonicalJSON(v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		return "", err
	}
	text, err = json.Marshal(plain)
	return string(text), err
}

// offeredTool holds the definition of a tool in the form in which clients show it to models.
type offeredTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

func (d offeredTool) definitionText() string {
	text, _ := json.Marshal(map[string]any{"name": d.Name, "description": d.Description, "input_schema": d.InputSchema})
	return string(text)
}

// listTools lists the tools of a server and adds a prefix to their names.
func (c *mcpClient) listTools(prefix string) (all []offeredTool, err error) {
	for params := (map[string]any{}); ; {
		result, err := c.sendRequest("tools/list", params)
		if err != nil {
			return nil, err
		}
		var list struct {
			Tools      []offeredTool `json:"tools"`
			NextCursor string        `json:"nextCursor"`
		}
		if err := json.Unmarshal(result, &list); err != nil {
			return nil, err
		}
		for _, d := range list.Tools {
			d.Name = prefix + d.Name
			all = append(all, d)
		}
		if list.NextCursor == "" {
			return all, nil
		}
		params["cursor"] = list.NextCursor
	}
}

// toolAnswer holds the result of a tool in the form in which a client shows it to its model.
type toolAnswer struct {
	text  string
	value json.RawMessage // nil if the result has neither structured content nor JSON text
}

// callTool calls a tool. It returns an error if the result is marked as an error.
func (c *mcpClient) callTool(name string, arguments any) (toolAnswer, error) {
	raw, err := c.sendRequest("tools/call", map[string]any{"name": name, "arguments": arguments})
	if err != nil {
		return toolAnswer{}, err
	}
	var result struct {
		Content           []struct{ Text string } `json:"content"`
		StructuredContent json.RawMessage         `json:"structuredContent"`
		IsError           bool                    `json:"isError"`
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return toolAnswer{}, err
	}
	parts := make([]string, len(result.Content))
	for i, p := range result.Content {
		parts[i] = p.Text
	}
	a := toolAnswer{strings.Join(parts, "\n"), result.StructuredContent}
	if a.value == nil && len(parts) == 1 && json.Valid([]byte(parts[0])) {
		a.value = json.RawMessage(parts[0])
	} else if a.value == nil {
		a.value, _ = json.Marshal(parts)
	}
	if result.IsError {
		return a, errors.New(a.text)
	}
	return a, nil
}

// bundledServers holds running bundled servers. Each has its own process, as if a client had started it.
type bundledServers struct {
	servers map[string]*mcpClient
	tools   []offeredTool
}

func startServers(ctx context.Context, self string, names ...string) (*bundledServers, error) {
	e := &bundledServers{servers: map[string]*mcpClient{}}
	clients, tools := make([]*mcpClient, len(names)), make([][]offeredTool, len(names))
	failures := make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() {
			if clients[i], failures[i] = startClient(ctx, self, "demo-server", name); failures[i] == nil {
				tools[i], failures[i] = clients[i].listTools(name + "__")
			}
		})
	}
	all.Wait()
	for i, name := range names {
		if clients[i] != nil {
			e.servers[name] = clients[i]
		}
		e.tools = append(e.tools, tools[i]...)
	}
	if err := errors.Join(failures...); err != nil {
		e.closeServers()
		return nil, err
	}
	return e, nil
}

func (e *bundledServers) closeServers() {
	for _, c := range e.servers {
		c.closeClient()
	}
}

// workSettings are the engine's settings for clients that write programs. Nothing needs approval, as with direct
// calls, and personal data may be passed from one server to another.
const workSettings = `
permissionLevel: execute_full
approval: {autoApproveLow: true, autoApproveMedium: true, autoApproveHigh: true}
servers:
  crm: {pii: {reveal: [email, name, company, address, date_of_birth]}}
  issues: {pii: {reveal: [email, name, company, address, date_of_birth]}}
  mail: {pii: {reveal: [email, name, company, address, date_of_birth]}}
`

// bundledConfig holds the command line that runs Retort with a configuration of all bundled servers.
type bundledConfig struct {
	self string
	args []string
}

// openBundled sets up Retort with all bundled servers. It writes the configuration and runs retort tools once, so
// that later sessions know the servers' tools from the start, as in everyday use.
func openBundled(ctx context.Context, self, dir string) (*bundledConfig, error) {
	servers := map[string]any{}
	for _, name := range demo.ServerNames() {
		servers[name] = map[string]any{"command": self, "args": []string{"demo-server", name}}
	}
	text, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		return nil, err
	}
	o := &bundledConfig{self: self, args: []string{"--home", filepath.Join(dir, "home")}}
	for name, text := range map[string]string{"mcp.json": string(text), "retort.yaml": workSettings} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return nil, err
		}
		o.args = append(o.args, "--config", file)
	}
	if out, err := exec.CommandContext(ctx, self, append(o.args, "tools")...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("retort tools: %w\n%s", err, out)
	}
	return o, nil
}

// startSession begins a session over standard input and output.
func (o *bundledConfig) startSession(ctx context.Context, surface string) (*mcpClient, error) {
	return startClient(ctx, o.self, append(o.args, "serve", "--surface", surface)...)
}
