// Package internal_test checks rules that keep the source tree readable. It reads the source files itself, because go
// test could repeat a cached result if a child process such as "go list" read them.
package internal_test

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// layers lists, for each package of this module, the other packages that it may import besides core, and why it needs
// no others. The test fails for a package that is not listed. A new package needs an entry here and a sentence in
// docs/ARCHITECTURE.md.
var layers = []struct {
	dir string
	may []string
	why string
}{
	{".", []string{"internal/engine", "internal/mcp/client", "internal/mcp/server/web"}, "the Go API: public types, and their conversion to those of the engine"},
	{"internal/engine", []string{"internal/..."}, "joins implementations to the interfaces of their consumers"},
	{"internal/admin", []string{"internal/audit", "internal/audit/export", "internal/audit/report", "internal/audit/sqlstore", "internal/auth", "internal/base/seal", "internal/catalog", "internal/config", "internal/doctor", "internal/engine", "internal/home", "internal/jobs", "internal/pipeline/approval", "internal/privacy/redact", "internal/privacy/vault", "internal/recommend", "internal/workspace", "internal/privacy/pii"}, "opens what an engine keeps, and no engine"},
	{"cmd/retort", []string{"internal/..."}, "hands the parts what the command line says; the Go API is for programs of others"},
	{"examples/07-embed", []string{"."}, "it is what a reader's program would be"},
	{"cmd/package", []string{"internal/devel/packaging"}, "a program of releases, which needs nothing of the engine"},
	{"scripts/stylestats", nil, "reads any tree of Go files; it needs nothing of this one"},
	{"internal/devel/pictures", nil, "texts and figures in, SVG out; it knows nothing of what they are about"},
	{"internal/devel/packaging", nil, "makes files of files; it needs nothing of the engine"},
	{"internal/core", nil, "the nouns: everybody speaks of them, so they know nobody"},
	{"internal/home", nil, "pure names: what lies in the files is for whoever opens them"},
	{"internal/base/deadline", nil, "ends contexts; who waits for a person, and who is permitted what, is said through run"},
	{"internal/egress", []string{"internal/base/throttle"}, "decides what programs reach; who runs them, and what the settings say, is given to it"},
	{"internal/egress/egresstest", nil, "a piece of the Internet, for tests"},
	{"internal/sandbox/runtimes", []string{"internal/sandbox/guest/python", "internal/sandbox/guest/nodejs", "internal/sandbox/interpreter"}, "joins harnesses to the programs that run them"},
	{"internal/sandbox/wire", []string{"internal/sandbox/wire/shm"}, "both sides of the wall use it"},
	{"internal/sandbox/wire/mux", nil, "both sides of the wall use it"},
	{"internal/sandbox/wire/shm", nil, "both sides of the wall use it"},
	{"internal/sandbox/guest", []string{"internal/sandbox/guest/js", "internal/sandbox/wire", "internal/sandbox/wire/shm"}, "it is on the other side of the wall"},
	{"internal/sandbox/guest/guesttest", []string{"internal/devel/testenv", "internal/sandbox/wire"}, "programs and how they end, for tests of guests and of sandboxes that it does not know"},
	{"internal/sandbox/guest/vminit", []string{"internal/sandbox/confine"}, "the first process of a machine; the guest that it starts is another role of this program"},
	{"internal/sandbox/guest/js", nil, "files that every JavaScript runtime evaluates"},
	{"internal/sandbox/guest/nodejs", []string{"internal/sandbox/guest/js"}, "files, and how a process is started that reads them"},
	{"internal/sandbox/guest/python", nil, "text that runs on the other side of the wall"},
	{"internal/base/reaper", nil, "a process of its own that must outlive every accident"},
	{"internal/pipeline", []string{"internal/pipeline/...", "internal/base/canonjson", "internal/base/deadline", "internal/sandbox", "internal/egress", "internal/tokens", "internal/privacy/redact", "internal/policy", "internal/skills", "internal/workspace"}, "knows the order of the phases, and no implementation behind them"},
	{"internal/pipeline/search", []string{"internal/pipeline/search/index", "internal/base/seal", "internal/base/throttle"}, "declares the interfaces it needs; opens the file of its vectors as all files of a home are"},
	{"internal/pipeline/search/index", []string{"internal/base/jsonscan"}, "pure: words in, ranking out"},
	{"internal/pipeline/bindings", []string{"internal/base/jsonscan", "internal/pipeline/paging", "internal/privacy/pii"}, "pure: schema in, text out"},
	{"internal/pipeline/paging", []string{"internal/base/jsonscan"}, "pure: a schema and answers in, the next request out"},
	{"internal/pipeline/check", []string{"internal/pipeline/check/typescript", "internal/pipeline/check/python", "internal/pipeline/check/rules", "internal/pipeline/check/source", "internal/policy/effect"}, "judges a program before anything happens, so it can do nothing"},
	{"internal/pipeline/check/rules", nil, "pure: a tree in, findings out"},
	{"internal/pipeline/check/typescript", []string{"internal/base/memory", "internal/pipeline/bindings", "internal/pipeline/check/rules", "internal/pipeline/check/source"}, "hides the compiler, which checks against what emit writes"},
	{"internal/pipeline/check/python", []string{"internal/pipeline/bindings", "internal/pipeline/check/rules", "internal/pipeline/check/source"}, "judges facts that it is given; the sandbox they come from is an interface"},
	{"internal/pipeline/approval", []string{"internal/base/reaper", "internal/base/seal", "internal/base/webhook"}, "a table that everybody who may answer reads; it knows none of them, and asks who was started by an engine"},
	{"internal/pipeline/check/source", []string{"internal/pipeline/check/rules"}, "what checkers have in common, what the rules say of it too; it knows none of them"},
	{"internal/pipeline/check/python/parsertest", []string{"internal/sandbox/guest/python", "internal/devel/testenv", "internal/sandbox/wire"}, "a parser for tests: an interpreter without a sandbox"},
	{"internal/sandbox", nil, "the contract: it knows no backend"},
	{"internal/sandbox/sandboxtest", []string{"internal/sandbox/guest/guesttest", "internal/sandbox", "internal/devel/testenv", "internal/sandbox/wire"}, "the contract as tests, for backends that it does not know"},
	{"internal/sandbox/exitcause", nil, "how a process ended in, an error out"},
	{"internal/sandbox/interpreter", nil, "files of the machine; what becomes of them is for the backend that asks"},
	{"internal/sandbox/procgroup", []string{"internal/base/seal"}, "processes, their groups and what they say as they die; what runs in them is for the backend that starts them"},
	{"internal/sandbox/hostcmd", []string{"internal/sandbox", "internal/sandbox/interpreter", "internal/sandbox/confine"}, "files of the machine that programs start; what they run in is for the backend"},
	{"internal/sandbox/confine", []string{"internal/sandbox/wire/mux", "internal/sandbox/wire/shm"}, "what a child does before it is anything, and where no descriptor leaves, beside it"},
	{"internal/sandbox/docker", []string{"internal/sandbox", "internal/sandbox/exitcause", "internal/sandbox/hostcmd", "internal/sandbox/interpreter", "internal/sandbox/confine", "internal/sandbox/procgroup", "internal/sandbox/warmpool", "internal/sandbox/wire", "internal/sandbox/wire/shm", "internal/base/seal"}, "a backend sees Host and nothing else; the walls are what its guest does first"},
	{"internal/sandbox/warmpool", []string{"internal/sandbox", "internal/sandbox/wire", "internal/sandbox/wire/mux"}, "the host's side of guests behind a stream; how they are started is given to it"},
	{"internal/sandbox/process", []string{"internal/sandbox", "internal/sandbox/exitcause", "internal/sandbox/hostcmd", "internal/sandbox/interpreter", "internal/sandbox/confine", "internal/sandbox/procgroup", "internal/sandbox/warmpool", "internal/sandbox/wire", "internal/base/seal"}, "a backend sees Host and nothing else: no relay, no upstream, no other backend"},
	{"internal/sandbox/gvisor", []string{"internal/sandbox", "internal/sandbox/exitcause", "internal/sandbox/hostcmd", "internal/sandbox/interpreter", "internal/sandbox/confine", "internal/sandbox/procgroup", "internal/sandbox/warmpool", "internal/sandbox/wire", "internal/sandbox/wire/shm", "internal/base/seal"}, "a backend sees Host and nothing else; the walls are what its guest does first"},
	{"internal/sandbox/vm", []string{"internal/sandbox/guest/vminit", "internal/sandbox", "internal/sandbox/exitcause", "internal/sandbox/hostcmd", "internal/sandbox/interpreter", "internal/sandbox/confine", "internal/sandbox/procgroup", "internal/sandbox/warmpool", "internal/sandbox/wire", "internal/sandbox/wire/mux", "internal/sandbox/wire/shm", "internal/base/seal"}, "a backend sees Host and nothing else; the walls are what its guest does first"},
	{"internal/policy/effect", []string{"internal/base/jsonscan"}, "pure: a definition and arguments in, how far a call goes out"},
	{"internal/policy", []string{"internal/policy/cel", "internal/policy/effect"}, "pure: rules and a call in, a decision out"},
	{"internal/privacy/offsets", nil, "where many things are, in little memory"},
	{"internal/privacy/vault", []string{"internal/privacy/offsets", "internal/base/seal"}, "keeps values and their tokens, whatever they are"},
	{"internal/privacy/redact", []string{"internal/base/jsonscan", "internal/privacy/offsets", "internal/privacy/pii", "internal/privacy/vault"}, "joins what finds to what keeps; it knows neither programs nor servers"},
	{"internal/privacy/secrets", []string{"internal/base/jsonscan"}, "pure: values and a text in, a text out; where values come from and texts go is given to it"},
	{"internal/privacy/pii", []string{"internal/base/jsonscan", "internal/privacy/offsets"}, "pure: bytes and a vault in, bytes out; who keeps values is given to it"},
	{"internal/policy/cel", nil, "pure: an expression and values in, a value out"},
	{"internal/mcp/headers", nil, "headers, schemas and arguments in, what is wrong with them out; both edges of the protocol have the same rules"},
	{"internal/base/canonjson", nil, "pure: JSON in, its canonical form out"},
	{"internal/base/jsonscan", nil, "pure: bytes in, tokens out"},
	{"internal/base/jsonschema", nil, "pure: schema and value in, violations out"},
	{"internal/pipeline/relay", []string{"internal/base/canonjson", "internal/base/deadline", "internal/base/jsonscan", "internal/sandbox", "internal/policy", "internal/pipeline/paging", "internal/base/jsonschema"}, "a chain of guards around a Host; what answers in the end is given to it"},
	{"internal/pipeline/report", []string{"internal/base/jsonscan", "internal/sandbox", "internal/tokens"}, "turns what a sandbox reports into what the model sees"},
	{"internal/catalog", []string{"internal/catalog/sanitize", "internal/catalog/infer", "internal/pipeline/bindings", "internal/base/jsonscan", "internal/base/seal", "internal/home"}, "keeps definitions; where they come from is an interface"},
	{"internal/catalog/sanitize", nil, "pure: text in, findings out"},
	{"internal/catalog/infer", []string{"internal/base/jsonscan"}, "pure: documents in, their types out"},
	{"internal/base/seal", nil, "files and a key; it does not know what they are for"},
	{"internal/base/memory", nil, "counts bytes for whoever holds them; it does not know what they are"},
	{"internal/mcp/client", []string{"internal/base/deadline", "internal/mcp/headers", "internal/base/jsonscan", "internal/base/memory", "internal/base/reaper", "internal/base/throttle"}, "speaks MCP to the user's servers and knows nothing of programs"},
	{"internal/mcp/client/oauth", []string{"internal/base/seal"}, "logs in at servers and gives requests their credentials; it knows nothing of the protocol in them"},
	{"internal/mcp/client/oauth/oauthtest", nil, "a server that wants a login, for tests; it knows nothing of who logs in"},
	{"internal/mcp/server", []string{"internal/base/canonjson", "internal/mcp/headers", "internal/tokens"}, "speaks MCP to clients; the engine behind it is an interface"},
	{"internal/mcp/server/web", []string{"internal/base/deadline", "internal/mcp/headers", "internal/mcp/server", "internal/base/throttle"}, "decides who may ask and how much; the protocol and the engine are behind it"},
	{"internal/tokens", nil, "counts tokens of text that it is given"},
	{"internal/audit", []string{"internal/base/seal"}, "keeps what it is told; who writes rows is an interface"},
	{"internal/anomaly", nil, "pure: events in, findings out; who is told of them is given to it"},
	{"internal/agent/model", nil, "prompts in, answers out; what a prompt may say is decided before"},
	{"internal/agent/model/modeltest", nil, "a model for tests; it knows nothing of who asks it"},
	{"internal/agent/templates", nil, "plain data in, texts out; what they are for is told by whoever fills them in"},
	{"internal/agent", []string{"internal/agent/model", "internal/agent/templates"}, "does tasks by what the phases offer; it knows no phase, and reaches nothing past them"},
	{"internal/skills/extract", nil, "pure: a program in, a function out"},
	{"internal/doctor", nil, "what is known of something in, causes in words out; it knows no part of the engine"},
	{"internal/telemetry", nil, "is told of steps; who tells it is given the interface that it implements"},
	{"internal/audit/export", []string{"internal/audit"}, "entries in, lines of other systems out"},
	{"internal/recommend", []string{"internal/audit", "internal/pipeline/search/index", "internal/base/seal"}, "entries in, advice in words out; which servers there are is given to it"},
	{"internal/audit/report", []string{"internal/audit"}, "entries in, counts and pages out; what the settings say is given to it"},
	{"internal/skills", []string{"internal/base/seal", "internal/agent/templates"}, "folders with code that it does not understand; one process at a time writes them"},
	{"internal/jobs", []string{"internal/base/seal"}, "keeps jobs that it does not understand; who does them is given to it"},
	{"internal/workspace", []string{"internal/base/seal"}, "files below one directory, and a few values beside them"},
	{"internal/audit/sqlstore", []string{"internal/audit", "internal/base/seal", "internal/home"}, "rows of the audit log, which it does not understand"},
	{"internal/config", []string{"internal/policy", "internal/policy/cel", "internal/privacy/pii", "internal/base/seal"}, "read by cmd and the engine, which hand every package its own small struct; says where a condition is wrong"},
	{"internal/config/clientfiles", []string{"internal/config", "internal/home", "internal/base/seal"}, "files of other programs in, files out; it starts nothing, so it knows no upstream"},
	{"internal/devel/demo", []string{"internal/base/jsonschema"}, "upstream servers like anybody else's: they check arguments, and know nothing of Retort"},
	{"internal/auth", []string{"internal/base/seal", "internal/home"}, "says who calls; it does not decide what they may do or how they reach us"},
	{"internal/base/throttle", nil, "pure: failures, events and times in, a wait out"},
	{"internal/base/webhook", nil, "an address and bytes; it does not know what they tell"},
	{"internal/base/htmlpage", nil, "pure: text and numbers in, a page out"},
	{"internal/devel/testenv", nil, "tells tests what a machine has"},
	{"internal/devel/bench", []string{"internal/..."}, "measures the parts"},
}

// owners lists, for each external module, the packages that may import it.
var owners = []struct {
	module string
	dirs   []string
	why    string
}{
	{"github.com/modelcontextprotocol/go-sdk", []string{"internal/mcp/client", "internal/mcp/client/oauth", "internal/mcp/server", "internal/devel/bench"}, "the protocol has two edges, and its plain client is the yardstick"},
	{"github.com/segmentio/encoding", []string{"internal/mcp/client", "internal/pipeline/relay"}, "messages and results are read with the decoder of the SDK, without its copies, and with exact names"},
	{"github.com/microsoft/typescript-go/tsc", []string{"internal/pipeline/check/typescript"}, "nothing else sees the compiler"},
	{"modernc.org/quickjs", []string{"internal/sandbox/guest"}, "untrusted code never runs in the host's own process"},
	{"modernc.org/libquickjs", []string{"internal/sandbox/guest"}, "the same engine, one floor below"},
	{"modernc.org/sqlite", []string{"internal/audit/sqlstore", "internal/devel/demo"}, "the audit log, and the demo's database"},
	{"github.com/jackc/pgx/v5", []string{"internal/audit/sqlstore"}, "the audit log"},
	{"modernc.org/libc", []string{"internal/sandbox/guest"}, "the same engine, two floors below"},
	{"filippo.io/age", []string{"internal/privacy/vault"}, "one way to keep the key"},
	{"github.com/zalando/go-keyring", []string{"internal/agent/model", "internal/privacy/vault"}, "another way to keep a key"},
	{"github.com/goccy/go-yaml", []string{"internal/config/clientfiles", "internal/config", "internal/skills"}, "settings, the front matter of skills, and a client's file"},
	{"github.com/pelletier/go-toml/v2", []string{"internal/config/clientfiles"}, "a client's file"},
	{"github.com/tailscale/hujson", []string{"internal/config", "internal/config/clientfiles"}, "JSON with comments is read, and edited without touching what is around"},
	{"github.com/go-jose/go-jose/v4", []string{"internal/auth"}, "tokens of others are judged in one place"},
	{"github.com/spf13/cobra", []string{"cmd/retort"}, "the command line"},
	{"github.com/spf13/pflag", []string{"cmd/retort"}, "the command line"},
	{"go.opentelemetry.io/otel", []string{"internal/telemetry"}, "one place decides what is told to others"},
	{"github.com/kljensen/snowball", []string{"internal/pipeline/search/index"}, "words are stemmed where they are ranked"},
	{"github.com/dlclark/regexp2/v2", []string{"internal/tokens"}, "judges in the tests where text is cut into tokens"},
	{"github.com/tiktoken-go/tokenizer", []string{"internal/tokens"}, "judges in the tests what the tokens are"},
	{"golang.org/x/sys", []string{"internal/base/reaper", "internal/sandbox/wire/shm", "internal/sandbox/guest", "internal/sandbox/guest/vminit", "internal/sandbox/hostcmd", "internal/sandbox/gvisor", "internal/sandbox/vm", "internal/sandbox/sandboxtest", "internal/sandbox/process", "internal/sandbox/confine"}, "processes and their limits"},
	{"github.com/pierrec/lz4", []string{"internal/sandbox/vm"}, "kernels as some distributions pack them"},
	{"github.com/landlock-lsm/go-landlock", []string{"internal/sandbox/confine"}, "one of the walls"},
	{"kernel.org/pub/linux/libs/security/libcap/psx", []string{"internal/sandbox/confine"}, "walls are around all threads"},
	{"golang.org/x/net/idna", []string{"internal/egress"}, "hosts are read in one place"},
	{"golang.org/x/net/netutil", []string{"internal/telemetry"}, "bounds the connections of a listener"},
	{"golang.org/x/text/unicode/norm", []string{"internal/policy", "internal/privacy/pii", "internal/privacy/redact"}, "names of groups and personal values are compared in one Unicode form"},
	{"golang.org/x/text/encoding", []string{"internal/pipeline/relay"}, "text that servers send as bytes is read in the encoding that it has"},
	{"go.uber.org/goleak", []string{"internal/devel/testenv"}, "one way to find goroutines that tests leave"},
	{"golang.org/x/term", []string{"cmd/retort"}, "colour only on a terminal"},
}

// testOnly lists the packages that only tests may import.
var testOnly = []string{"internal/devel/testenv", "internal/sandbox/guest/guesttest", "internal/pipeline/check/python/parsertest", "internal/sandbox/sandboxtest", "internal/agent/model/modeltest", "internal/mcp/client/oauth/oauthtest", "internal/egress/egresstest", "internal/devel/pictures"}

// testModules lists the external modules that the tests of every package may import.
var testModules = []string{"cel.dev/cel-go", "github.com/goccy/go-yaml", "github.com/google/go-cmp", "github.com/modelcontextprotocol/go-sdk", "github.com/nyaruka/phonenumbers", "github.com/prometheus/common", "github.com/rogpeppe/go-internal", "github.com/santhosh-tekuri/jsonschema/v6", "go.opentelemetry.io/proto/slim/otlp", "go.uber.org/goleak", "golang.org/x/tools", "google.golang.org/protobuf"}

// pure lists packages that do no I/O and read no clock, so that the same input always gives the same output. impure
// and clockCalls list what these packages may not import or call.
var (
	pure       = []string{"internal/core", "internal/base/htmlpage", "internal/anomaly", "internal/base/jsonschema", "internal/base/jsonscan", "internal/base/canonjson", "internal/base/throttle", "internal/policy", "internal/policy/cel", "internal/catalog/sanitize", "internal/catalog/infer", "internal/privacy/pii", "internal/privacy/offsets", "internal/privacy/secrets", "internal/skills/extract", "internal/pipeline/bindings", "internal/pipeline/paging", "internal/pipeline/search/index", "internal/pipeline/check/rules"}
	impure     = []string{"os", "os/exec", "net", "net/http", "syscall", "log", "log/slog", "math/rand", "math/rand/v2", "crypto/rand", "io/ioutil"}
	clockCalls = []string{"time.Now", "time.Since", "time.Until", "time.Sleep", "time.After", "time.Tick", "time.NewTimer", "time.NewTicker", "time.AfterFunc"}
)

// importRules returns the imports that violate the tables of this file, such as layers, owners and pure. Tests may
// import any package of this module, because they combine packages as cmd does.
func importRules(all []source) (found []string) {
	for _, s := range all {
		for _, i := range s.imports() {
			var why string
			switch {
			case i.path == module || strings.HasPrefix(i.path, module+"/"):
				why = oursRefused(s, path.Clean(strings.TrimPrefix(strings.TrimPrefix(i.path, module), "/")))
			case strings.Contains(strings.Split(i.path, "/")[0], "."):
				why = foreignRefused(s, i.path)
			case !s.test && under(s.dir, pure) && slices.Contains(impure, i.path):
				why = "it is pure: no I/O, no clock, no chance"
			}
			if why != "" {
				found = append(found, s.at(i.spec)+": "+s.dir+" must not import "+i.path+": "+why)
			}
		}
	}
	return found
}

func oursRefused(s source, dir string) (why string) {
	if s.test || strings.HasPrefix(s.dir, "examples") {
		return ""
	}
	for _, l := range layers {
		switch {
		case l.dir != s.dir:
			continue
		case slices.Contains(testOnly, dir) && !slices.Contains(testOnly, s.dir):
			return "that is for tests"
		case dir != "internal/core" && !under(dir, l.may):
			return l.why
		}
		return ""
	}
	return "the importing package is not in the table of layers"
}

func foreignRefused(s source, imported string) (why string) {
	within := func(m string) bool { return imported == m || strings.HasPrefix(imported, m+"/") }
	if s.test && slices.ContainsFunc(testModules, within) {
		return ""
	}
	for _, o := range owners {
		switch {
		case !within(o.module):
			continue
		case !under(s.dir, o.dirs):
			return "it is for " + strings.Join(o.dirs, ", ") + ", since " + o.why
		}
		return ""
	}
	return "it is not in the table of modules"
}

// under reports whether dir matches one of patterns. The pattern "x/..." matches x and all directories below it.
func under(dir string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		tree, deep := strings.CutSuffix(p, "...")
		return dir == p || deep && strings.HasPrefix(dir+"/", tree)
	})
}

func TestWhoMayImportWhom(t *testing.T) { hold(t, importRules) }

// TestTablesAreCurrent checks that every entry in layers and owners is still used: the package exists and really has
// the import that the entry allows.
func TestTablesAreCurrent(t *testing.T) {
	edges := map[string]bool{} // "from to", and every directory by itself
	for _, s := range sources(t) {
		edges[s.dir] = true
		for _, i := range s.imports() {
			edges[s.dir+" "+path.Clean(strings.TrimPrefix(strings.TrimPrefix(i.path, module), "/"))] = true
			for _, o := range owners {
				if i.path == o.module || strings.HasPrefix(i.path, o.module+"/") {
					edges[s.dir+" "+o.module] = true
				}
			}
		}
	}
	for _, l := range layers {
		if !edges[l.dir] {
			t.Errorf("layers: there is no package %s", l.dir)
		}
		for _, to := range l.may {
			if !strings.HasSuffix(to, "...") && !edges[l.dir+" "+to] {
				t.Errorf("layers: %s may import %s, but does not", l.dir, to)
			}
		}
	}
	for _, o := range owners {
		for _, dir := range o.dirs {
			if !edges[dir+" "+o.module] {
				t.Errorf("owners: %s may import %s, but does not", dir, o.module)
			}
		}
	}
}

// TestImportRulesFindViolations checks that importRules finds forbidden imports in made-up files.
func TestImportRulesFindViolations(t *testing.T) {
	violations(t, importRules, map[string]string{
		"internal/core/a.go":                   `package core; import "retort/internal/sandbox/wire"`,
		"internal/sandbox/wire/a.go":           `package wire; import ("retort/internal/core"; "os")`,
		"internal/pipeline/bindings/a.go":      `package bindings; import "os"`,
		"internal/pipeline/bindings/a_test.go": `package bindings; import ("os"; "github.com/google/go-cmp/cmp")`,
		"internal/sandbox/process/a.go":        `package process; import "retort/internal/pipeline/relay"`,
		"internal/pipeline/relay/a.go":         `package relay; import _ "github.com/microsoft/typescript-go/tsc"`,
		"internal/pipeline/a.go":               `package pipeline; import "retort/internal/sandbox/sandboxtest"`,
		"internal/new/a.go":                    `package new; import "retort/internal/core"`,
		"internal/mcp/client/a.go":             `package client; import ("github.com/modelcontextprotocol/go-sdk/mcp"; "example.com/x")`,
		"internal/catalog/a.go":                `package catalog; import "github.com/google/go-cmp/cmp"`,
		"cmd/retort/a.go":                      `package main; import ("retort"; "retort/internal/config")`,
	}, []string{
		"cmd/retort/a.go:1: cmd/retort must not import retort: hands the parts what the command line says; the Go API is for programs of others",
		"internal/catalog/a.go:1: internal/catalog must not import github.com/google/go-cmp/cmp: it is not in the table of modules",
		"internal/core/a.go:1: internal/core must not import retort/internal/sandbox/wire: the nouns: everybody speaks of them, so they know nobody",
		"internal/mcp/client/a.go:1: internal/mcp/client must not import example.com/x: it is not in the table of modules",
		"internal/new/a.go:1: internal/new must not import retort/internal/core: the importing package is not in the table of layers",
		"internal/pipeline/a.go:1: internal/pipeline must not import retort/internal/sandbox/sandboxtest: that is for tests",
		"internal/pipeline/bindings/a.go:1: internal/pipeline/bindings must not import os: it is pure: no I/O, no clock, no chance",
		"internal/pipeline/relay/a.go:1: internal/pipeline/relay must not import github.com/microsoft/typescript-go/tsc: it is for internal/pipeline/check/typescript, since nothing else sees the compiler",
		"internal/sandbox/process/a.go:1: internal/sandbox/process must not import retort/internal/pipeline/relay: a backend sees Host and nothing else: no relay, no upstream, no other backend",
	})
}
