//go:build unix

package client

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"retort/internal/devel/testenv"
)

// TestRealServers checks that the tools of widely used servers from npm can be listed and called. One call takes
// several seconds and is made in parallel: it calls a tool of MCP's reference server that runs only as a task.
func TestRealServers(t *testing.T) {
	modules, node := testenv.NPM(t), testenv.Need(t, "node")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "hello.txt"), []byte("hello from a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := func(name string, args ...string) ServerSpec {
		script := filepath.Join(modules, "@modelcontextprotocol", "server-"+name, "dist", "index.js")
		return ServerSpec{
			Name: name, Command: node, Args: append([]string{script}, args...), ConnectTimeout: time.Minute, CallTimeout: time.Minute,
			Env: map[string]string{"MEMORY_FILE_PATH": filepath.Join(dir, "memory.jsonl")},
		}
	}
	p := newPool(t, Options{ClientVersion: "test"}, server("everything", "stdio"), server("filesystem", dir), server("memory"))
	tools := map[string]int{}
	p.ListAll(t.Context(), func(name string, l ToolListing, err error) {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		tools[name] = len(l.Tools)
		t.Logf("%s %s speaks %s, %d tools, connected in %s", l.Name, l.Version, l.Protocol, len(l.Tools), p.StatusOf(name).Connect)
	})
	for name, least := range map[string]int{"everything": 8, "filesystem": 10, "memory": 9} {
		if tools[name] < least {
			t.Errorf("%s lists %d tools", name, tools[name])
		}
	}
	researched := make(chan error, 1)
	go func() {
		r, err := p.Call(t.Context(), "everything", "simulate-research-query", json.RawMessage(`{"topic":"retorts"}`))
		if err == nil && !strings.Contains(string(r), "retorts") {
			err = fmt.Errorf("the task ended with %s", r)
		}
		researched <- err
	}()
	for _, tt := range []struct{ server, tool, args, want string }{
		{"everything", "echo", `{"message":"hi 9007199254740993"}`, "hi 9007199254740993"},
		{"everything", "get-sum", `{"a":2,"b":3}`, "5"},
		{"filesystem", "read_text_file", fmt.Sprintf(`{"path":%q}`, filepath.Join(dir, "hello.txt")), "hello from a file"},
		{"filesystem", "read_text_file", `{"path":"/etc/passwd"}`, `"isError":true`},
		{"memory", "create_entities", `{"entities":[{"name":"Ada","entityType":"person","observations":["counts"]}]}`, "Ada"},
		{"memory", "read_graph", `{}`, "counts"},
	} {
		r, err := p.Call(t.Context(), tt.server, tt.tool, json.RawMessage(tt.args))
		if err != nil || !strings.Contains(string(r), tt.want) {
			t.Errorf("%s.%s: %s, %v", tt.server, tt.tool, r, err)
		}
	}
	if err := testenv.Receive(t, researched, "the end of the task"); err != nil {
		t.Error(err)
	}
}

// TestRealServerOverHTTP checks that the reference server from npm can be used over both of its HTTP transports.
func TestRealServerOverHTTP(t *testing.T) {
	modules, node := testenv.NPM(t), testenv.Need(t, "node")
	script := filepath.Join(modules, "@modelcontextprotocol", "server-everything", "dist", "index.js")
	for _, mode := range []struct{ arg, path, transport string }{{"streamableHttp", "/mcp", "http"}, {"sse", "/sse", "sse"}} {
		t.Run(mode.arg, func(t *testing.T) {
			port := startNode(t, node, script, mode.arg)
			p := newPool(t, Options{}, ServerSpec{Name: "s", URL: fmt.Sprintf("http://127.0.0.1:%d%s", port, mode.path)})
			l, err := p.List(t.Context(), "s")
			if err != nil || len(l.Tools) < 8 {
				t.Fatalf("%d tools, %v", len(l.Tools), err)
			}
			r, err := p.Call(t.Context(), "s", "echo", json.RawMessage(`{"message":"hi"}`))
			if err != nil || !strings.Contains(string(r), "hi") {
				t.Errorf("%s, %v", r, err)
			}
			if st := p.StatusOf("s"); st.Transport != mode.transport {
				t.Errorf("%+v", st)
			}
		})
	}
}
