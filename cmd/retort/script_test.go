package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"retort"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"retort": main})
}

// Each script of testdata/script is the command as people use it. Those named
// hole-* show a hole that was closed.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "../../testdata/script",
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("VERSION", retort.Version)
			file := filepath.Join(e.WorkDir, ".mcp.json")
			if _, err := os.Stat(file); err == nil {
				return nil
			}
			return os.WriteFile(file, []byte(demoConfig), 0o644)
		},
	})
}

// demoConfig is what a script has as .mcp.json unless it brings its own.
const demoConfig = `{"mcpServers": {
  "crm": {"command": "retort", "args": ["demo-server", "crm"]},
  "drive": {"command": "retort", "args": ["demo-server", "drive"]},
  "sheets": {"command": "retort", "args": ["demo-server", "sheets"]},
}}
`
