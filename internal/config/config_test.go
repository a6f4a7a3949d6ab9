package config

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/rogpeppe/go-internal/txtar"
	"retort/internal/core"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// machine is a temporary home directory that contains a project.
type machine struct {
	t    *testing.T
	home string // contains project/ and .config/retort/
}

func newMachine(t *testing.T, files map[string]string) machine {
	m := machine{t, t.TempDir()}
	if err := os.MkdirAll(m.path("project"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(m.path(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(m.path(name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func (m machine) path(name string) string { return filepath.Join(m.home, filepath.FromSlash(name)) }

func (m machine) options(files ...string) Options {
	env := map[string]string{"TOKEN": "secret-value", "EMPTY": ""}
	return Options{
		Files: files, Dir: m.path("project"), UserHome: m.home,
		Getenv: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
	}
}

func (m machine) load(files ...string) *Config {
	m.t.Helper()
	c, err := Load(m.options(files...))
	if err != nil {
		m.t.Fatalf("Load: %v", err)
	}
	return c
}

func (m machine) problems(files ...string) string {
	m.t.Helper()
	_, err := Load(m.options(files...))
	var ps Problems
	if !errors.As(err, &ps) {
		m.t.Fatalf("Load: %v, want Problems", err)
	}
	if e := core.AsError(err); e.Kind != core.KindInvalidArguments || e.Message != ps.Error() {
		m.t.Errorf("Load: %#v does not carry its problems", e)
	}
	return ps.Error()
}

// TestErrors checks the messages that people get for wrong files. Each archive contains the files of a machine, the
// --config files in "args", and the expected messages in "want".
func TestErrors(t *testing.T) {
	archives, err := filepath.Glob("testdata/errors/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatal("no archives", err)
	}
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files, args, want := map[string]string{}, []string{}, -1
			for i, f := range a.Files {
				switch f.Name {
				case "args":
					args = strings.Fields(string(f.Data))
				case "want":
					want = i
				default:
					files[f.Name] = string(f.Data)
				}
			}
			m := newMachine(t, files)
			got := m.loadMessages(args)
			if *update {
				a.Files[want].Data = []byte(got)
				if err := os.WriteFile(name, txtar.Format(a), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(a.Files[want].Data), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// loadMessages returns everything that Load reports to users: the problems or, if there are none, the errors of
// single servers; then the warnings.
func (m machine) loadMessages(args []string) string {
	c, err := Load(m.options(args...))
	var b strings.Builder
	if err != nil {
		b.WriteString(core.AsError(err).Message + "\n")
	} else {
		for _, s := range c.Servers {
			if s.Err != nil {
				b.WriteString("server " + s.Name + ": " + s.Err.Message + "\n  hint: " + s.Err.Hint + "\n")
			}
		}
		for _, w := range c.Warnings {
			b.WriteString("warning: " + w + "\n")
		}
	}
	return strings.ReplaceAll(b.String(), m.home, "HOME")
}

func TestServersOfAClient(t *testing.T) {
	m := newMachine(t, map[string]string{"project/.mcp.json": `// our servers
{
  "mcpServers": {
    "github": {
      "command": "npx", "args": ["-y", "${PKG:-server}@1", 7,],
      "env": {"TOKEN": "${TOKEN}", "PORT": 8080, "DEBUG": true, "NOTHING": null},
      "alwaysAllow": ["list_*", /* kept */ 9007199254740993],
    },
    "linear": {"type": "http", "url": "https://linear.example/${EMPTY:-mcp}", "headers": {"Authorization": "Bearer ${env:TOKEN}"}, "timeout": 5000},
    "old": {"transport": "SSE", "url": "http://127.0.0.1:1/sse", "disabled": true},
    "cursor": {"serverUrl": "https://x.example/mcp"},
    "deep": {"type": "streamable-http", "url": "https://x.example"},
    "here": {"command": "./server", "cwd": "sub"},
    "me": {"command": "/usr/local/bin/retort", "args": ["--home", "/x", "serve"]},
  },
  "inputs": [],
}`})
	c := m.load()
	want := []Server{
		{
			Name: "github", Transport: TransportStdio, Command: "npx", Args: []string{"-y", "server@1", "7"},
			Env: map[string]string{"TOKEN": "secret-value", "PORT": "8080", "DEBUG": "true"}, Cwd: m.path("project"),
			Extra: map[string]jsonText{"alwaysAllow": jsonText(`["list_*",9007199254740993]`)}, Source: Position{".mcp.json", 4, 5},
		},
		{
			Name: "linear", Transport: TransportHTTP, URL: "https://linear.example/mcp", Timeout: 5 * time.Second,
			Headers: map[string]string{"Authorization": "Bearer secret-value"}, Source: Position{".mcp.json", 9, 5},
		},
		{Name: "old", Transport: TransportSSE, URL: "http://127.0.0.1:1/sse", Disabled: true, Source: Position{".mcp.json", 10, 5}},
		{Name: "cursor", Transport: TransportAuto, URL: "https://x.example/mcp", Source: Position{".mcp.json", 11, 5}},
		{Name: "deep", Transport: TransportHTTP, URL: "https://x.example", Source: Position{".mcp.json", 12, 5}},
		{Name: "here", Transport: TransportStdio, Command: "./server", Cwd: m.path("project/sub"), Source: Position{".mcp.json", 13, 5}},
	}
	if diff := cmp.Diff(want, c.Servers); diff != "" {
		t.Errorf("servers, -want +got:\n%s", diff)
	}
	if want := []string{`.mcp.json:14:5: the server "me" is Retort itself and was left out`}; !cmp.Equal(want, c.Warnings) {
		t.Errorf("warnings: %q, want %q", c.Warnings, want)
	}
	if c.Home != m.path("project/.retort") {
		t.Errorf("home: %s", c.Home)
	}
}

// TestWrongServerAlone checks that an error in one server's entry does not affect other servers.
func TestWrongServerAlone(t *testing.T) {
	m := newMachine(t, map[string]string{"project/.mcp.json": `{"mcpServers": {"bad": {"command": "${NOPE}"}, "good": {"command": "x"}}}`})
	c := m.load()
	if c.Servers[0].Err == nil || c.Servers[0].Err.Kind != core.KindUpstreamGone || c.Servers[0].Err.Server != "bad" || c.Servers[1].Err != nil {
		t.Errorf("got %+v", c.Servers)
	}
}

func TestWhichFiles(t *testing.T) {
	const (
		project  = `{"mcpServers": {"project": {"command": "x"}}}`
		user     = `{"mcpServers": {"user": {"command": "x"}}}`
		tokens7  = "results: {maxTokens: 700}\n"
		tokens8  = "results: {maxTokens: 800}\n"
		inObject = `{"mcpServers": {"in": {"command": "x"}}, "mcpCodeExecution": {"results": {"maxTokens": 900}}}`
	)
	for _, tt := range []struct {
		name   string
		files  map[string]string
		args   []string
		server string
		tokens int
		home   string
	}{
		{name: "nothing", tokens: 2000, home: ".local/share/retort"},
		{
			name:   "project before user",
			files:  map[string]string{"project/.mcp.json": project, ".config/retort/mcp.json": user},
			server: "project", tokens: 2000, home: "project/.retort",
		},
		{
			name:   "user",
			files:  map[string]string{".config/retort/mcp.json": user, ".config/retort/retort.yaml": tokens7},
			server: "user", tokens: 700, home: ".local/share/retort",
		},
		{
			name:   "settings of the project before those of the user",
			files:  map[string]string{"project/.mcp.json": project, "project/retort.yaml": tokens7, ".config/retort/retort.yaml": tokens8},
			server: "project", tokens: 700, home: "project/.retort",
		},
		{
			name:   "settings of the project for servers of the user",
			files:  map[string]string{".config/retort/mcp.json": user, "project/retort.yaml": tokens7},
			server: "user", tokens: 700, home: "project/.retort",
		},
		{
			name:   "settings of the user for servers of the project",
			files:  map[string]string{"project/.mcp.json": project, ".config/retort/retort.yaml": tokens8},
			server: "project", tokens: 800, home: "project/.retort",
		},
		{
			name:   "settings inside before those of the user",
			files:  map[string]string{"project/.mcp.json": inObject, ".config/retort/retort.yaml": tokens8},
			server: "in", tokens: 900, home: "project/.retort",
		},
		{
			name:  "given, with settings beside it",
			files: map[string]string{"other/a.json": project, "other/retort.yaml": tokens7, "project/.mcp.json": user, "project/retort.yaml": tokens8},
			args:  []string{"../other/a.json"}, server: "project", tokens: 700, home: "other/.retort",
		},
		{
			name:  "settings given",
			files: map[string]string{"project/a.json": project, "project/b.yaml": tokens7, "project/retort.yaml": tokens8},
			args:  []string{"a.json", "b.yaml", "a.json"}, server: "project", tokens: 700, home: "project/.retort",
		},
		{
			name:  "an editor's directory",
			files: map[string]string{"project/.vscode/mcp.json": strings.Replace(project, "mcpServers", "servers", 1)},
			args:  []string{".vscode/mcp.json"}, server: "project", tokens: 2000, home: "project/.retort",
		},
		{
			name:  "another editor's directory",
			files: map[string]string{"project/.cursor/mcp.json": project},
			args:  []string{".cursor/mcp.json"}, server: "project", tokens: 2000, home: "project/.retort",
		},
		{
			name:  "a file in the person's home is no project",
			files: map[string]string{".claude.json": user},
			args:  []string{"../.claude.json"}, server: "user", tokens: 2000, home: ".local/share/retort",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMachine(t, tt.files)
			c := m.load(tt.args...)
			var server string
			for _, s := range c.Servers {
				server += s.Name
			}
			if server != tt.server || c.Settings.Results.MaxTokens != tt.tokens || c.Home != m.path(tt.home) {
				t.Errorf("servers %q, tokens %d, home %s", server, c.Settings.Results.MaxTokens, c.Home)
			}
		})
	}
}

func TestXDGAndHome(t *testing.T) {
	m := newMachine(t, map[string]string{"xdg/retort/mcp.json": `{"mcpServers": {"x": {"command": "x"}}}`})
	o := m.options()
	o.Getenv = func(name string) (string, bool) {
		switch name {
		case "XDG_CONFIG_HOME":
			return m.path("xdg"), true
		case "XDG_DATA_HOME":
			return m.path("data"), true
		}
		return "", false
	}
	c, err := Load(o)
	if err != nil || len(c.Servers) != 1 || c.Home != m.path("data/retort") {
		t.Errorf("got %+v, %v", c, err)
	}
	relative := o
	relative.Getenv = func(string) (string, bool) { return "relative", true }
	if c, err = Load(relative); err != nil || c.Home != m.path(".local/share/retort") {
		t.Errorf("relative XDG directories must be ignored: %+v, %v", c, err)
	}
	o.Home = "kept"
	if c, err = Load(o); err != nil || c.Home != m.path("project/kept") {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestSettingsOfAServer(t *testing.T) {
	m := newMachine(t, map[string]string{
		"project/.mcp.json":   `{"mcpServers": {"github": {"command": "x", "timeout": 100, "disabled": true}, "b": {"command": "x"}}}`,
		"project/retort.yaml": `servers: {github: {allow: ["list_*", "get_*"], deny: ["get_secret*"], category: code, timeout: 1m, pii: {reveal: [email]}}, b: {disabled: true}}`,
	})
	c := m.load()
	s := c.Servers[0]
	if s.Category != "code" || s.Timeout != time.Minute || !cmp.Equal(s.Reveal, []string{"email"}) || !s.Disabled || !c.Servers[1].Disabled {
		t.Errorf("got %+v", c.Servers)
	}
	rules := c.Settings.Servers["github"].ToolRules
	if !cmp.Equal(rules, ToolRules{Allow: []string{"list_*", "get_*"}, Deny: []string{"get_secret*"}}) {
		t.Errorf("got %+v", rules)
	}
}

// TestWholeSettings checks that the example file from the documentation loads, and that its values are those that its
// comments describe.
func TestWholeSettings(t *testing.T) {
	text, err := os.ReadFile("testdata/retort.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, err := ParseSettings("retort.yaml", "/p", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := Settings{}.WithDefaults()
	want.PII.Modes = map[string]PIIMode{"email": PIISealed, "name": PIIBorder}
	want.PII.Regions = []string{"US", "DE"}
	want.Network.Whitelist = []NetworkRule{{Domain: "*.googleapis.com", Ports: []int{443}, Protocols: []string{"https"}}}
	want.Network.Blacklist = []string{"10.0.0.0/8"}
	want.Servers = map[string]ServerSettings{"github": {
		ToolRules: ToolRules{Allow: []string{"list_*", "get_*"}, Deny: []string{"delete_*"}}, Category: "code", PII: ServerPII{Reveal: []string{"email"}},
	}}
	want.ToolDefinitions = []string{filepath.FromSlash("/p/tools_registry")}
	want.Search.Embeddings = Embeddings{URL: "http://127.0.0.1:11434/v1", Model: "…"}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestSettingsInDocs checks that every block of settings in the README and in docs/ can be parsed. A block below a
// comment "defaults: KEYS" must show the defaults of these keys.
func TestSettingsInDocs(t *testing.T) {
	blocks := settingsBlocks(t)
	if len(blocks) < 15 {
		t.Fatalf("only %d blocks of settings were found", len(blocks))
	}
	checked := map[string]bool{}
	for _, b := range blocks {
		s, err := ParseSettings(b.file, "/p", []byte(b.text), func(string) (string, bool) { return "0123456789abcdef", true })
		if err != nil {
			t.Error(err)
			continue
		}
		for _, key := range b.defaults {
			checked[key] = true
			compareDefaults(t, b.file, key, s)
		}
		if b.commands {
			checked["commands"] = true
			if c := s.Commands; len(c) != 3 || c[1].Command != "/usr/bin/xmllint" || !cmp.Equal(c[2].Args, []string{"-n", "-k*"}) {
				t.Errorf("%s: the commands shown are %+v", b.file, c)
			}
		}
	}
	for _, key := range []string{"all", "approval", "anomalies", "http", "model", "network", "orchestrator", "commands"} {
		if !checked[key] {
			t.Errorf("no block shows the defaults of %s", key)
		}
	}
}

// settingsBlock is a block of YAML in a documentation page.
type settingsBlock struct {
	file, text string
	defaults   []string // keys whose defaults the block shows
	commands   bool     // whether the block is the example of commands
}

var fencedYAML = regexp.MustCompile("(?m)(?:^<!-- ([a-z: ]+) -->\n)?^```yaml\n((?:.*\n)*?)^```$")

func settingsBlocks(t *testing.T) (blocks []settingsBlock) {
	t.Helper()
	add := func(file string) error {
		text, err := os.ReadFile(file)
		for _, m := range fencedYAML.FindAllStringSubmatch(string(text), -1) {
			b := settingsBlock{file: file, text: m[2], commands: m[1] == "commands"}
			if keys, ok := strings.CutPrefix(m[1], "defaults: "); ok {
				b.defaults = strings.Fields(keys)
			}
			if m[1] != "not settings" {
				blocks = append(blocks, b)
			}
		}
		return err
	}
	if err := add("../../README.md"); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir("../../docs", func(file string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".md" {
			return err
		}
		return add(file)
	})
	if err != nil {
		t.Fatal(err)
	}
	return blocks
}

// TestRetentionInDocs checks that the guide to the audit log states the actual defaults of audit.keep and audit.size.
func TestRetentionInDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/guides/audit-log.md")
	if err != nil {
		t.Fatal(err)
	}
	keep := Settings{}.WithDefaults().Audit
	for _, sentence := range []string{
		fmt.Sprintf("`audit.keep` (%d days)", keep.Keep/(24*time.Hour)), fmt.Sprintf("`audit.size` (%d GB)", keep.Size/gib),
	} {
		if !strings.Contains(string(text), sentence) {
			t.Errorf("the guide does not say: %s", sentence)
		}
	}
}

func compareDefaults(t *testing.T, file, key string, shown Settings) {
	t.Helper()
	defaults := Settings{}.WithDefaults()
	want, got := any(defaults), any(shown)
	switch key {
	case "all":
	case "approval":
		want, got = defaults.Approval, shown.Approval
	case "anomalies":
		want, got = defaults.Anomalies, shown.Anomalies
	case "http":
		if shown.HTTP.PerAddress != shown.HTTP.Connections/4 {
			t.Errorf("%s: a quarter of %d connections is not %d", file, shown.HTTP.Connections, shown.HTTP.PerAddress)
		}
		shown.HTTP.AllowedHosts, shown.HTTP.AllowedOrigins, shown.HTTP.TLS, shown.HTTP.PerAddress = nil, nil, TLS{}, 0
		want, got = defaults.HTTP, shown.HTTP
	case "model":
		m := shown.Model
		m.URL, m.Model, m.Key, m.Price, m.Provider = "", "", "", ModelPrice{Currency: "$"}, ProviderAuto
		want, got = defaults.Model, m
	case "orchestrator":
		want, got = defaults.Orchestrator, shown.Orchestrator
	case "network":
		n := shown.Network
		n.Whitelist, n.Blacklist, n.Certificates, n.Secrets = nil, nil, "", nil
		want, got = defaults.Network, n
	default:
		t.Errorf("%s: defaults of %q cannot be compared", file, key)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s: the defaults shown for %s are not the defaults:\n%s", file, key, diff)
	}
}

// TestDefaults checks that WithDefaults makes the zero Settings complete and safe.
func TestDefaults(t *testing.T) {
	s := Settings{}.WithDefaults()
	if diff := cmp.Diff(s, s.WithDefaults(), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("Defaults is not idempotent:\n%s", diff)
	}
	if s.ExecutionLimits() != core.DefaultLimits() {
		t.Errorf("limits: %+v", s.ExecutionLimits())
	}
	if !s.PIITokenization.IsOn() || !s.AuditLogging.IsOn() || s.Approval.AutoApproveHigh.IsOn() || s.Network.Default != NetworkDeny {
		t.Errorf("not safe: %+v", s)
	}
	l := Settings{MaxExecutionTime: time.Minute, ResourceLimits: ResourceLimits{Memory: 1 << 30}}.ExecutionLimits()
	if l.Timeout != time.Minute || l.Memory != 1<<30 || l.ToolCalls != core.DefaultLimits().ToolCalls {
		t.Errorf("limits: %+v", l)
	}
}

func TestFolders(t *testing.T) {
	m := newMachine(t, map[string]string{
		".config/retort/retort.yaml": `toolDefinitions: ["./a", "~/b", "${workspaceFolder}/c", "/d/../e"]`,
	})
	want := []string{m.path(".config/retort/a"), m.path("b"), m.path("project/c"), filepath.FromSlash("/e")}
	if got := m.load().Settings.ToolDefinitions; !cmp.Equal(want, got) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestBounds(t *testing.T) {
	m := newMachine(t, map[string]string{
		"project/.mcp.json": `{"mcpServers": {"` + strings.Repeat("n", 129) + `": {"command": "x"}, "a\u0007b": {"command": "x"}, " ": {}}}`,
		"project/retort.yaml": "network: {blacklist: [" + strings.Repeat("a.", 130) + "com]}\nresults: {maxTokens: true}\n" +
			"resourceLimits: {memory: true}\n",
		"project/large.json": "{}" + strings.Repeat(" ", maxFileBytes-1),
		"project/many.json":  "[" + strings.Repeat("0,", maxNodes) + "]",
	})
	for _, tt := range []struct{ file, want string }{
		{"", "is longer than 128 bytes"},
		{"", "contains control characters"},
		{"", "a server's name is empty"},
		{"", "network.blacklist.1: expected a domain"},
		{"", "results.maxTokens: expected a whole number, found true"},
		{"", "resourceLimits.memory: expected a size such as 512MB, found true"},
		{"large.json", "large.json: it is larger than 64MB"},
		{"many.json", "the file has more than 1048576 values"},
	} {
		var args []string
		if tt.file != "" {
			args = []string{tt.file}
		}
		if got := m.problems(args...); !strings.Contains(got, tt.want) {
			t.Errorf("got %s\nwant %s", got, tt.want)
		}
	}
}

func TestUnreadable(t *testing.T) {
	m := newMachine(t, map[string]string{"project/dir/x": ""})
	if got := m.problems("missing.json", "dir", "gone.yaml"); got != "missing.json: there is no such file\ndir: it is a directory\ngone.yaml: there is no such file" {
		t.Error(got)
	}
}

func TestOurselves(t *testing.T) {
	for _, tt := range []struct {
		words string
		want  bool
	}{
		{"retort serve", true},
		{`C:\Tools\Retort.exe serve --surface lean`, true},
		{"npx -y retort serve", true},
		{"go run ./cmd/retort --home=x serve", true},
		{"env A=b retort --config c.json serve", true},
		{"retort demo-server drive", false},
		{"serve", false},
		{"my-retort serve", false},
	} {
		words := strings.Fields(tt.words)
		if got := isOurselves(Server{Command: words[0], Args: words[1:]}); got != tt.want {
			t.Errorf("isOurselves(%q) = %v", tt.words, got)
		}
	}
}
