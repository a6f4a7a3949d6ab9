package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"retort/internal/config"
	"retort/internal/core"
	"retort/internal/devel/demo"
	"retort/internal/devel/testenv"
	"retort/internal/engine"
)

// failedOpen describes a configuration with which Open fails in one constructor.
type failedOpen struct {
	constructor string
	settings    string
	files       map[string]string // files in the data directory: content by path
	noHome      bool              // without a configured data directory
	says        string            // a part of the error
}

// failedOpens has at least one case for each constructor that can fail, in the order in which Open calls the
// constructors.
var failedOpens = []failedOpen{
	{"newConfiguration", "enabled: false", nil, false, "turned off"},
	{"newConfiguration", "servers: {typo: {trusted: true}}", nil, true, `the server "typo"`},
	{"newAgentAssembly", "", map[string]string{"templates/task.md": "{{"}, false, "task.md"},
	{"openAlertQueue", "anomalies: {webhook: {url: 'https://example.com', secret: short}}", nil, false, "anomalies.webhook"},
	{"openAuditTrail", "audit: {checkpoint: ['true']}", map[string]string{"audit": "a file"}, false, "audit"},
	{"openCatalog", "", map[string]string{"catalog": "a file"}, false, "cannot store tool definitions"},
	{"fillCatalog", "toolDefinitions: [/missing]", nil, true, "/missing"},
	{"openNetwork", "network: {certificates: /missing.pem}", nil, true, "network.certificates"},
	{"search.New", "search: {embeddings: {url: 'https://example.com', model: m}}", map[string]string{"catalog/vectors": "a file"}, false, "embeddings"},
	{"openApprovals", "approval: {webhook: {url: 'https://example.com', secret: short}}", nil, false, "approval.webhook"},
	{"openApprovals", "approval: {webhook: {url: 'https://example.com', secret: short}}", nil, true, "approval.webhook"},
	{"openTelemetry", "", nil, false, "not the address of a collector"},
	{"checkTemplates", "", map[string]string{"templates/stub.ts": "nothing"}, false, "{{.definition}}"},
}

// TestFailedOpenClosesEverything checks that Open leaves no process, file, goroutine or temporary folder behind when
// one of its constructors fails, and that the data directory can then be opened.
func TestFailedOpenClosesEverything(t *testing.T) {
	for _, f := range failedOpens {
		t.Run(f.constructor, func(t *testing.T) {
			testenv.CheckLeaks(t)
			c := engine.Config{NoFiles: true, Settings: f.settings, Servers: []engine.Server{{Name: "crm", Dial: demo.DialFunc("crm")}}}
			if !f.noHome {
				c.Home = t.TempDir()
			}
			f.writeFiles(t, c.Home)
			e, err := f.open(t, c)
			if err == nil {
				_ = e.Close()
				t.Fatal("Open returned no error")
			}
			if message := core.AsError(err).Message; !strings.Contains(message, f.says) {
				t.Fatalf("%q does not contain %q", message, f.says)
			}
			f.removeFiles(t, c.Home)
			c.Settings = ""
			if e, err = engine.Open(t.Context(), c); err != nil {
				t.Fatal("Open without the fault:", err)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// open opens an engine for the test case. The case of the constructor openTelemetry needs an invalid address, which
// is set after the settings were read, because reading them would already refuse it.
func (f failedOpen) open(t *testing.T, c engine.Config) (*engine.Engine, error) {
	t.Helper()
	if f.constructor == "openTelemetry" {
		return engine.OpenChanged(t.Context(), c, func(s *config.Settings) { s.Telemetry.Traces = "nowhere" })
	}
	return engine.Open(t.Context(), c)
}

func (f failedOpen) writeFiles(t *testing.T, dir string) {
	t.Helper()
	for name, text := range f.files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func (f failedOpen) removeFiles(t *testing.T, dir string) {
	t.Helper()
	for name := range f.files {
		if err := os.Remove(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			t.Error(err)
		}
	}
}

// TestCloseLeavesNothing checks that Close of an engine with all optional parts leaves no process, file, goroutine or
// temporary folder behind.
func TestCloseLeavesNothing(t *testing.T) {
	testenv.CheckLeaks(t)
	settings := `
anomalies: {webhook: {url: 'http://127.0.0.1:1', secret: 0123456789abcdef0123456789abcdef}}
approval: {webhook: {url: 'http://127.0.0.1:1', secret: 0123456789abcdef0123456789abcdef}}
search: {embeddings: {url: 'http://127.0.0.1:1', model: m}}
telemetry: {prometheus: '127.0.0.1:0'}
audit: {checkpoint: ['true']}
`
	for _, dir := range []string{"", t.TempDir()} {
		c := engine.Config{
			NoFiles: true, Home: dir, Settings: settings,
			Servers: []engine.Server{{Name: "crm", Dial: demo.DialFunc("crm")}},
		}
		e, err := engine.Open(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if o := e.As("ann").Execute(t.Context(), engine.Request{Code: "return 1"}); o.Status != core.StatusOK {
			t.Errorf("%s %+v", o.Status, o.Error)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}
