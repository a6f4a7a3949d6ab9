//go:build unix

package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/mcp/client/oauth"
)

// TestConformance checks that a Pool has the expected results in the client part of MCP's conformance tests: one
// suite for the versions up to 2025-11-25, and one that also covers 2026-07-28.
func TestConformance(t *testing.T) {
	for _, suite := range []struct{ module, expected string }{
		{"@modelcontextprotocol/conformance", "testdata/conformance.txt"},
		{"conformance-next", "testdata/conformance-next.txt"},
	} {
		t.Run(path.Base(suite.module), func(t *testing.T) {
			testenv.RunConformance(t, suite.module, suite.expected, "client", "--command", os.Args[0]+" conformance", "--suite", "all")
		})
	}
}

// toolCall is a call that a conformance scenario requires.
type toolCall struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// conformanceContext holds the values that a scenario passes to the client in addition to the server's address.
type conformanceContext struct {
	ClientID     string     `json:"client_id"`
	ClientSecret string     `json:"client_secret"`
	ToolCalls    []toolCall `json:"toolCalls"`
}

// conformanceClient runs the client under test: a Pool that lists the tools and makes the scenario's calls. It
// returns an exit status.
func conformanceClient(server string) int {
	ctx, cancel := context.WithTimeout(context.Background(), testenv.Patience)
	defer cancel()
	scenario := os.Getenv("MCP_CONFORMANCE_SCENARIO")
	var given conformanceContext
	_ = json.Unmarshal([]byte(os.Getenv("MCP_CONFORMANCE_CONTEXT")), &given)
	ctx = core.WithPeer(ctx, &core.ClientPeer{ID: "suite", Forms: true, Samples: true, Ask: accept})
	p := New([]ServerSpec{{
		Name: "s", URL: server, Auth: conformanceAuth(scenario, server, given), Client: ClientFeatures{Elicit: true, Sample: true},
		// One process of the suite serves all clients at the same time, so it can be slow.
		probe: testenv.Patience, ConnectTimeout: testenv.Patience, CallTimeout: testenv.Patience,
	}}, Options{ClientVersion: "test"})
	defer p.Close()
	listing, err := p.List(ctx, "s")
	if err != nil {
		fmt.Fprintln(os.Stderr, "list:", err)
		return 1
	}
	status := 0
	for _, call := range conformanceCalls(scenario, given, listing.Tools) {
		if _, err := p.Call(ctx, "s", call.Name, call.Arguments); err != nil {
			fmt.Fprintf(os.Stderr, "call of %s: %v\n", call.Name, err)
			status = 1
		}
	}
	return status
}

// accept fills in a form: it answers with the default values of the form's fields.
func accept(_ context.Context, a core.ServerRequest) (json.RawMessage, *core.Error) {
	var form struct {
		Schema struct {
			Properties map[string]struct {
				Default any `json:"default"`
			} `json:"properties"`
		} `json:"requestedSchema"`
	}
	_ = json.Unmarshal(a.Params, &form)
	content := map[string]any{}
	for name, p := range form.Schema.Properties {
		if p.Default != nil {
			content[name] = p.Default
		}
	}
	answer, err := json.Marshal(map[string]any{"action": "accept", "content": content})
	if err != nil {
		return nil, core.AsError(err)
	}
	return answer, nil
}

// conformanceCalls returns the calls that the client makes in a scenario.
func conformanceCalls(scenario string, given conformanceContext, tools []json.RawMessage) []toolCall {
	one := func(name, args string) []toolCall { return []toolCall{{name, json.RawMessage(args)}} }
	switch scenario {
	case "tools_call":
		return one("add_numbers", `{"a":5,"b":3}`)
	case "elicitation-sep1034-client-defaults":
		return one("test_client_elicitation_defaults", `{}`)
	case "sse-retry":
		return one("test_reconnection", `{}`)
	case "sep-2322-client-request-state":
		return slices.Concat(one("test_mrtr_echo_state", `{}`), one("test_mrtr_no_state", `{}`), one("test_mrtr_unrelated", `{}`), one("test_mrtr_no_result_type", `{}`))
	case "http-custom-headers":
		return given.ToolCalls
	}
	if strings.HasPrefix(scenario, "auth/") {
		return one("test-tool", `{}`)
	}
	var calls []toolCall
	for _, raw := range tools {
		var tool struct {
			Name        string          `json:"name"`
			InputSchema json.RawMessage `json:"inputSchema"`
		}
		_ = json.Unmarshal(raw, &tool)
		switch {
		case scenario == "json-schema-2020-12-preservation" && tool.Name == "json_schema_2020_12_tool":
			calls = append(calls, toolCall{"json_schema_echo", json.RawMessage(`{"schema":` + string(tool.InputSchema) + `}`)})
		case scenario == "http-invalid-tool-headers":
			calls = append(calls, toolCall{tool.Name, json.RawMessage(`{"region":"us-west1"}`)})
		case scenario == "http-standard-headers" && tool.Name == toolRead:
			calls = append(calls, toolCall{tool.Name, json.RawMessage(`{"uri":"file:///a"}`)})
		case scenario == "http-standard-headers":
			calls = append(calls, toolCall{tool.Name, json.RawMessage(`{}`)})
		}
	}
	return calls
}

// conformanceAuth returns the Authorizer for scenarios about authorization, and nil for others. The suite's
// authorization server redirects the browser back immediately.
func conformanceAuth(scenario, server string, given conformanceContext) Authorizer {
	if !strings.HasPrefix(scenario, "auth/") {
		return nil
	}
	dir, err := os.MkdirTemp("", "retort-conformance-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "auth:", err)
		return nil
	}
	return oauth.New(oauth.Options{
		Server: "s", URL: server, Open: followRedirects,
		Store:    oauth.Open(dir, func() ([]byte, error) { return make([]byte, 32), nil }),
		Settings: oauth.Settings{ClientID: given.ClientID, ClientSecret: given.ClientSecret, ClientMetadata: "https://conformance-test.local/client-metadata.json"},
	})
}

// followRedirects simulates a browser whose user agrees to the login: it opens the address and follows its redirects.
func followRedirects(ctx context.Context, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
