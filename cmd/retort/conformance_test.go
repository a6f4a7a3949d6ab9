package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"retort/internal/devel/testenv"
)

// passing holds settings for the conformance suite. They pass everything through to the suite's server. The server's
// tools are offered directly, personal data is not replaced, and calls are approved automatically because no person
// takes part.
const passing = `permissionLevel: execute_full
approval: {autoApproveHigh: true}
piiTokenization: false
http: {rate: 10000/minute}
servers: {everything: {expose: direct, sampling: allow}}
`

// TestServerConformance checks that Retort passes the server scenarios of MCP's conformance tests. The server behind
// Retort is the Go SDK's conformance server. Each protocol era is tested with a client and a server of that era.
func TestServerConformance(t *testing.T) {
	testenv.NPM22(t)
	everything := everythingServer(t)
	for _, c := range []struct {
		name, module string
		args         []string
		upstream     func(t *testing.T, command string) map[string]any
	}{
		{"legacy", "@modelcontextprotocol/conformance", nil, overHTTP},
		{"modern", "conformance-next", []string{"--requirements", "2026-07-28"}, overPipes},
	} {
		t.Run(c.name, func(t *testing.T) {
			expected, err := filepath.Abs(filepath.Join("testdata", "conformance-"+c.name+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			dir, retort := demoFolder(t)
			servers, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"everything": c.upstream(t, everything)}})
			if err != nil {
				t.Fatal(err)
			}
			for name, text := range map[string]string{".mcp.json": string(servers), "retort.yaml": passing} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			testenv.RunConformance(t, c.module, expected, append([]string{"server", "--url", listening(t, dir, retort)}, c.args...)...)
		})
	}
}

// everythingServer builds the Go SDK's conformance server and returns the path of the binary.
func everythingServer(t *testing.T) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "everything")
	if said, err := exec.Command("go", "build", "-o", out, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return out
}

func overPipes(_ *testing.T, command string) map[string]any {
	return map[string]any{"command": command}
}

// overHTTP starts the conformance server over HTTP with sessions. Only protocol versions with sessions use it. It
// returns the server's entry for a client file.
func overHTTP(t *testing.T, command string) map[string]any {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	cmd := exec.Command(command, "-http", address, "-stateless=false")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	testenv.WaitUntil(t, "the everything-server listens", func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return map[string]any{"type": "http", "url": fmt.Sprintf("http://%s/mcp", address)}
}
