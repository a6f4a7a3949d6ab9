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

// Cost is the cost of a task done in one way. Tokens are counted as o200k_base.
type Cost struct {
	Way         string  `json:"way"`
	Definitions int     `json:"definitions"`  // definitions of tools and instructions of servers
	Read        int     `json:"read"`         // results of tools for the model
	Written     int     `json:"written"`      // written by the model: calls, arguments, programs
	RoundTrips  int     `json:"round_trips"`  // turns in which the model called something
	Calls       int     `json:"tool_calls"`   // calls that reached the servers
	WallMS      float64 `json:"wall_ms"`      // time of all calls, without the model's own time
	Peak        int     `json:"peak_context"` // size of the context at the end
	Input       int     `json:"input_tokens"` // tokens that the model reads in all turns without caching
	Answer      string  `json:"answer"`       // JSON; the same in all ways
}

// Data returns the number of tokens that are not definitions.
func (c Cost) Data() int { return c.Read + c.Written }

// conversation counts the tokens in the context of a model.
type conversation struct{ cost Cost }

func begin(way, task string) *conversation {
	c := &conversation{cost: Cost{Way: way}}
	c.cost.Peak = tokens.Count(task)
	return c
}

func (c *conversation) define(text string) { c.add(&c.cost.Definitions, text) }
func (c *conversation) read(text string)   { c.add(&c.cost.Read, text) }
func (c *conversation) write(text string)  { c.add(&c.cost.Written, text) }

func (c *conversation) add(to *int, text string) {
	n := tokens.Count(text)
	*to += n
	c.cost.Peak += n
}

// turn counts one turn of the model, in which it reads its whole context.
func (c *conversation) turn() {
	c.cost.RoundTrips++
	c.cost.Input += c.cost.Peak
}

// end counts the last turn, which makes no calls.
func (c *conversation) end(answer any, took time.Duration) (Cost, error) {
	text, err := canonical(answer)
	if err != nil {
		return Cost{}, err
	}
	c.cost.Input += c.cost.Peak
	c.write(text)
	c.cost.Answer, c.cost.WallMS = text, float64(took.Microseconds())/1000
	return c.cost, nil
}

// canonical returns v as JSON with sorted keys, so that equal values are equal texts.
func canonical(v any) (string, error) {
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

// offered represents the definition of a tool as clients show it to models.
type offered struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

func (d offered) text() string {
	text, _ := json.Marshal(map[string]any{"name": d.Name, "description": d.Description, "input_schema": d.InputSchema})
	return string(text)
}

// offers lists the tools of a server and adds a prefix to their names.
func (c *client) offers(prefix string) (all []offered, err error) {
	for params := (map[string]any{}); ; {
		result, err := c.request("tools/list", params)
		if err != nil {
			return nil, err
		}
		var list struct {
			Tools      []offered `json:"tools"`
			NextCursor string    `json:"nextCursor"`
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

// answered represents the result of a tool as a client shows it to its model.
type answered struct {
	text  string
	value json.RawMessage // nil if the text is not JSON and there is no other
}

// tool calls a tool. If the tool returned an error, so does tool.
func (c *client) tool(name string, arguments any) (answered, error) {
	raw, err := c.request("tools/call", map[string]any{"name": name, "arguments": arguments})
	if err != nil {
		return answered{}, err
	}
	var result struct {
		Content           []struct{ Text string } `json:"content"`
		StructuredContent json.RawMessage         `json:"structuredContent"`
		IsError           bool                    `json:"isError"`
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return answered{}, err
	}
	parts := make([]string, len(result.Content))
	for i, p := range result.Content {
		parts[i] = p.Text
	}
	a := answered{strings.Join(parts, "\n"), result.StructuredContent}
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

// everyday is a set of bundled servers, each in a process of its own, as clients start them.
type everyday struct {
	servers map[string]*client
	tools   []offered
}

func startServers(ctx context.Context, self string, names ...string) (*everyday, error) {
	e := &everyday{servers: map[string]*client{}}
	clients, tools := make([]*client, len(names)), make([][]offered, len(names))
	failures := make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() {
			if clients[i], failures[i] = start(ctx, self, "demo-server", name); failures[i] == nil {
				tools[i], failures[i] = clients[i].offers(name + "__")
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
		e.close()
		return nil, err
	}
	return e, nil
}

func (e *everyday) close() {
	for _, c := range e.servers {
		c.close()
	}
}

// workSettings are the engine's settings for clients that write programs. Nobody can approve anything, as with direct
// calls, and addresses may be passed from one server to another.
const workSettings = `
permissionLevel: execute_full
approval: {autoApproveLow: true, autoApproveMedium: true, autoApproveHigh: true}
servers: {crm: {pii: {reveal: [email]}}, mail: {pii: {reveal: [email]}}}
`

// office is a configuration of the engine with all bundled servers.
type office struct {
	self string
	args []string
}

// openOffice writes the configuration and lets the engine learn the servers' tools, so that clients find them known,
// as they do from the second day of use.
func openOffice(ctx context.Context, self, dir string) (*office, error) {
	servers := map[string]any{}
	for _, name := range demo.Names() {
		servers[name] = map[string]any{"command": self, "args": []string{"demo-server", name}}
	}
	text, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		return nil, err
	}
	o := &office{self: self, args: []string{"--home", filepath.Join(dir, "home")}}
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

// start begins a session over standard input and output.
func (o *office) start(ctx context.Context, surface string) (*client, error) {
	return start(ctx, o.self, append(o.args, "serve", "--surface", surface)...)
}
