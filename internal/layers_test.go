// Package internal_test holds the rules that keep the tree readable. It reads
// the sources itself: a test that asked "go list" in a child process would be
// answered from the cache after a violation.
package internal_test

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// layers says which of our packages a package may import, besides run, and why
// no others. A package that is not listed fails the test: a new one needs a line
// here and a sentence in docs/ARCHITECTURE.md.
var layers = []struct {
	dir string
	may []string
	why string
}{
	{".", []string{"internal/..."}, "joins implementations to the interfaces of their consumers"},
	{"cmd/retort", []string{".", "internal/..."}, "joins implementations to the interfaces of their consumers"},
	{"examples/07-embed", []string{"."}, "it is what a reader's program would be"},
	{"cmd/package", []string{"internal/packaging"}, "a program of releases, which needs nothing of the engine"},
	{"scripts/stylestats", nil, "reads any tree of Go files; it needs nothing of this one"},
	{"internal/packaging", nil, "makes files of files; it needs nothing of the engine"},
	{"internal/run", nil, "the nouns: everybody speaks of them, so they know nobody"},
	{"internal/deadline", nil, "ends contexts; who waits for a person, and who is permitted what, is said through run"},
	{"internal/egress", nil, "decides what programs reach; who runs them, and what the settings say, is given to it"},
	{"internal/egress/egresstest", nil, "a piece of the Internet, for tests"},
	{"internal/runtimes", []string{"internal/guest/python", "internal/guest/script", "internal/pipeline/isolate/interpreter"}, "joins harnesses to the programs that run them"},
	{"internal/wire", []string{"internal/wire/ring"}, "both sides of the wall use it"},
	{"internal/wire/lanes", nil, "both sides of the wall use it"},
	{"internal/wire/ring", nil, "both sides of the wall use it"},
	{"internal/guest", []string{"internal/guest/js", "internal/wire", "internal/wire/ring"}, "it is on the other side of the wall"},
	{"internal/guest/guesttest", []string{"internal/testenv", "internal/wire"}, "programs and how they end, for tests of guests and of sandboxes that it does not know"},
	{"internal/guest/machine", []string{"internal/pipeline/isolate/process/walls"}, "the first process of a machine; the guest that it starts is another role of this program"},
	{"internal/guest/js", nil, "files that every JavaScript runtime evaluates"},
	{"internal/guest/script", []string{"internal/guest/js"}, "files, and how a process is started that reads them"},
	{"internal/guest/python", nil, "text that runs on the other side of the wall"},
	{"internal/reaper", nil, "a process of its own that must outlive every accident"},
	{"internal/pipeline", []string{"internal/pipeline/...", "internal/deadline", "internal/egress", "internal/ledger", "internal/pii/screen", "internal/policy", "internal/skills", "internal/workspace"}, "knows the order of the phases, and no implementation behind them"},
	{"internal/pipeline/discover", []string{"internal/pipeline/discover/index", "internal/seal"}, "declares the interfaces it needs; opens the file of its vectors as all files of a home are"},
	{"internal/pipeline/discover/index", nil, "pure: words in, ranking out"},
	{"internal/pipeline/emit", nil, "pure: schema in, text out"},
	{"internal/pipeline/gate", []string{"internal/pipeline/gate/typescript", "internal/pipeline/gate/python", "internal/pipeline/gate/rules", "internal/pipeline/gate/source", "internal/policy/effect"}, "judges a program before anything happens, so it can do nothing"},
	{"internal/pipeline/gate/rules", nil, "pure: a tree in, findings out"},
	{"internal/pipeline/gate/typescript", []string{"internal/pipeline/emit", "internal/pipeline/gate/rules", "internal/pipeline/gate/source"}, "hides the compiler, which checks against what emit writes"},
	{"internal/pipeline/gate/python", []string{"internal/pipeline/emit", "internal/pipeline/gate/rules", "internal/pipeline/gate/source"}, "judges facts that it is given; the sandbox they come from is an interface"},
	{"internal/pipeline/gate/approval", []string{"internal/reaper", "internal/seal", "internal/webhook"}, "a table that everybody who may answer reads; it knows none of them, and asks who was started by an engine"},
	{"internal/pipeline/gate/source", []string{"internal/pipeline/gate/rules"}, "what checkers have in common, what the rules say of it too; it knows none of them"},
	{"internal/pipeline/gate/gatetest", []string{"internal/guest/python", "internal/testenv", "internal/wire"}, "a parser for tests: an interpreter without a sandbox"},
	{"internal/pipeline/isolate", nil, "the contract: it knows no backend"},
	{"internal/pipeline/isolate/isolatetest", []string{"internal/guest/guesttest", "internal/pipeline/isolate", "internal/testenv", "internal/wire"}, "the contract as tests, for backends that it does not know"},
	{"internal/pipeline/isolate/interpreter", nil, "files of the machine; what becomes of them is for the backend that asks"},
	{"internal/pipeline/isolate/spawn", nil, "processes, their groups and what they say as they die; what runs in them is for the backend that starts them"},
	{"internal/pipeline/isolate/commands", []string{"internal/pipeline/isolate", "internal/pipeline/isolate/interpreter", "internal/pipeline/isolate/process/walls"}, "files of the machine that programs start; what they run in is for the backend"},
	{"internal/pipeline/isolate/process/walls", []string{"internal/wire/lanes", "internal/wire/ring"}, "what a child does before it is anything, and where no descriptor leaves, beside it"},
	{"internal/pipeline/isolate/docker", []string{"internal/pipeline/isolate", "internal/pipeline/isolate/commands", "internal/pipeline/isolate/interpreter", "internal/pipeline/isolate/process/walls", "internal/pipeline/isolate/spawn", "internal/pipeline/isolate/standby", "internal/wire", "internal/wire/ring"}, "a backend sees Host and nothing else; the walls are what its guest does first"},
	{"internal/pipeline/isolate/standby", []string{"internal/pipeline/isolate", "internal/wire", "internal/wire/lanes"}, "the host's side of guests behind a stream; how they are started is given to it"},
	{"internal/pipeline/isolate/process", []string{"internal/pipeline/isolate", "internal/pipeline/isolate/commands", "internal/pipeline/isolate/interpreter", "internal/pipeline/isolate/process/walls", "internal/pipeline/isolate/spawn", "internal/pipeline/isolate/standby", "internal/wire"}, "a backend sees Host and nothing else: no relay, no upstream, no other backend"},
	{"internal/pipeline/isolate/gvisor", []string{"internal/pipeline/isolate", "internal/pipeline/isolate/commands", "internal/pipeline/isolate/interpreter", "internal/pipeline/isolate/process/walls", "internal/pipeline/isolate/spawn", "internal/pipeline/isolate/standby", "internal/wire", "internal/wire/ring"}, "a backend sees Host and nothing else; the walls are what its guest does first"},
	{"internal/pipeline/isolate/vm", []string{"internal/guest/machine", "internal/pipeline/isolate", "internal/pipeline/isolate/commands", "internal/pipeline/isolate/interpreter", "internal/pipeline/isolate/process/walls", "internal/pipeline/isolate/spawn", "internal/pipeline/isolate/standby", "internal/wire", "internal/wire/lanes", "internal/wire/ring"}, "a backend sees Host and nothing else; the walls are what its guest does first"},
	{"internal/policy/effect", []string{"internal/jsonscan"}, "pure: a definition and arguments in, how far a call goes out"},
	{"internal/policy", []string{"internal/policy/cel", "internal/policy/effect"}, "pure: rules and a call in, a decision out"},
	{"internal/pii/places", nil, "where many things are, in little memory"},
	{"internal/pii/vault", []string{"internal/pii/places", "internal/seal"}, "keeps values and their tokens, whatever they are"},
	{"internal/pii/screen", []string{"internal/pii", "internal/pii/vault"}, "joins what finds to what keeps; it knows neither programs nor servers"},
	{"internal/secrets", nil, "pure: values and a text in, a text out; where values come from and texts go is given to it"},
	{"internal/pii", []string{"internal/pii/places"}, "pure: bytes and a vault in, bytes out; who keeps values is given to it"},
	{"internal/policy/cel", nil, "pure: an expression and values in, a value out"},
	{"internal/headers", nil, "headers, schemas and arguments in, what is wrong with them out; both edges of the protocol have the same rules"},
	{"internal/jsonscan", nil, "pure: bytes in, tokens out"},
	{"internal/schema", nil, "pure: schema and value in, violations out"},
	{"internal/pipeline/relay", []string{"internal/deadline", "internal/jsonscan", "internal/pipeline/isolate", "internal/policy", "internal/schema"}, "a chain of guards around a Host; what answers in the end is given to it"},
	{"internal/pipeline/report", []string{"internal/pipeline/isolate", "internal/ledger"}, "turns what a sandbox reports into what the model sees"},
	{"internal/catalog", []string{"internal/catalog/prose", "internal/catalog/shape", "internal/pipeline/emit", "internal/seal"}, "keeps definitions; where they come from is an interface"},
	{"internal/catalog/prose", nil, "pure: text in, findings out"},
	{"internal/catalog/shape", nil, "pure: documents in, their types out"},
	{"internal/seal", nil, "files and a key; it does not know what they are for"},
	{"internal/memory", nil, "counts bytes for whoever holds them; it does not know what they are"},
	{"internal/upstream", []string{"internal/deadline", "internal/headers", "internal/jsonscan", "internal/memory", "internal/reaper"}, "speaks MCP to the user's servers and knows nothing of programs"},
	{"internal/upstream/oauth", []string{"internal/seal"}, "logs in at servers and gives requests their credentials; it knows nothing of the protocol in them"},
	{"internal/upstream/oauth/oauthtest", nil, "a server that wants a login, for tests; it knows nothing of who logs in"},
	{"internal/mcpserver", []string{"internal/headers", "internal/ledger"}, "speaks MCP to clients; the engine behind it is an interface"},
	{"internal/mcpserver/web", []string{"internal/deadline", "internal/headers", "internal/mcpserver"}, "decides who may ask and how much; the protocol and the engine are behind it"},
	{"internal/ledger", nil, "counts tokens of text that it is given"},
	{"internal/audit", []string{"internal/seal"}, "keeps what it is told; who writes rows is an interface"},
	{"internal/anomaly", nil, "pure: events in, findings out; who is told of them is given to it"},
	{"internal/model", nil, "prompts in, answers out; what a prompt may say is decided before"},
	{"internal/model/modeltest", nil, "a model for tests; it knows nothing of who asks it"},
	{"internal/templates", nil, "plain data in, texts out; what they are for is told by whoever fills them in"},
	{"internal/orchestrator", []string{"internal/model", "internal/templates"}, "does tasks by what the phases offer; it knows no phase, and reaches nothing past them"},
	{"internal/skills/lift", nil, "pure: a program in, a function out"},
	{"internal/doctor", nil, "what is known of something in, causes in words out; it knows no part of the engine"},
	{"internal/telemetry", nil, "is told of steps; who tells it is given the interface that it implements"},
	{"internal/audit/export", []string{"internal/audit"}, "entries in, lines of other systems out"},
	{"internal/recommend", []string{"internal/audit", "internal/pipeline/discover/index", "internal/seal"}, "entries in, advice in words out; which servers there are is given to it"},
	{"internal/audit/report", []string{"internal/audit"}, "entries in, counts and pages out; what the settings say is given to it"},
	{"internal/skills", []string{"internal/seal", "internal/templates"}, "folders with code that it does not understand; one process at a time writes them"},
	{"internal/queue", []string{"internal/seal"}, "keeps jobs that it does not understand; who does them is given to it"},
	{"internal/workspace", []string{"internal/seal"}, "files below one directory, and a few values beside them"},
	{"internal/store", []string{"internal/audit", "internal/seal"}, "the only package with SQL; it does not understand what it keeps"},
	{"internal/config", []string{"internal/policy", "internal/policy/cel", "internal/seal"}, "read by cmd and retort.go, which hand every package its own small struct; says where a condition is wrong"},
	{"internal/clients", []string{"internal/config", "internal/seal"}, "files of other programs in, files out; it starts nothing, so it knows no upstream"},
	{"internal/demo", []string{"internal/schema"}, "upstream servers like anybody else's: they check arguments, and know nothing of Retort"},
	{"internal/access", []string{"internal/seal"}, "says who calls; what they may do, and how they reach us, is none of its business"},
	{"internal/webhook", nil, "an address and bytes; it does not know what they tell"},
	{"internal/page", nil, "pure: text and numbers in, a page out"},
	{"internal/testenv", nil, "tells tests what a machine has"},
	{"internal/bench", []string{".", "internal/..."}, "measures the parts"},
}

// owners says who may import a module that is not ours.
var owners = []struct {
	module string
	dirs   []string
	why    string
}{
	{"github.com/modelcontextprotocol/go-sdk", []string{"internal/upstream", "internal/upstream/oauth", "internal/mcpserver", "internal/bench"}, "the protocol has two edges, and its plain client is the yardstick"},
	{"github.com/segmentio/encoding", []string{"internal/upstream", "internal/pipeline/relay"}, "messages and results are read with the decoder of the SDK, without its copies, and with exact names"},
	{"github.com/microsoft/typescript-go/tsc", []string{"internal/pipeline/gate/typescript"}, "nothing else sees the compiler"},
	{"modernc.org/quickjs", []string{"internal/guest"}, "untrusted code never runs in the host's own process"},
	{"modernc.org/libquickjs", []string{"internal/guest"}, "the same engine, one floor below"},
	{"modernc.org/sqlite", []string{"internal/store"}, "the only package with SQL"},
	{"github.com/jackc/pgx/v5", []string{"internal/store"}, "the only package with SQL"},
	{"modernc.org/libc", []string{"internal/guest"}, "the same engine, two floors below"},
	{"filippo.io/age", []string{"internal/pii/vault"}, "one way to keep the key"},
	{"github.com/zalando/go-keyring", []string{"internal/model", "internal/pii/vault"}, "another way to keep a key"},
	{"github.com/goccy/go-yaml", []string{"internal/clients", "internal/config", "internal/skills"}, "settings, the front matter of skills, and a client's file"},
	{"github.com/pelletier/go-toml/v2", []string{"internal/clients"}, "a client's file"},
	{"github.com/tailscale/hujson", []string{"internal/clients"}, "clients' files are edited without touching what is around"},
	{"github.com/go-jose/go-jose/v4", []string{"internal/access"}, "tokens of others are judged in one place"},
	{"github.com/spf13/cobra", []string{"cmd/retort"}, "the command line"},
	{"github.com/spf13/pflag", []string{"cmd/retort"}, "the command line"},
	{"go.opentelemetry.io/otel", []string{"internal/telemetry"}, "one place decides what is told to others"},
	{"github.com/kljensen/snowball", []string{"internal/pipeline/discover/index"}, "words are stemmed where they are ranked"},
	{"github.com/dlclark/regexp2/v2", []string{"internal/ledger"}, "judges in the tests where text is cut into tokens"},
	{"github.com/tiktoken-go/tokenizer", []string{"internal/ledger"}, "judges in the tests what the tokens are"},
	{"golang.org/x/sys", []string{"internal/reaper", "internal/wire/ring", "internal/guest", "internal/guest/machine", "internal/pipeline/isolate/commands", "internal/pipeline/isolate/gvisor", "internal/pipeline/isolate/vm", "internal/pipeline/isolate/isolatetest", "internal/pipeline/isolate/process", "internal/pipeline/isolate/process/walls"}, "processes and their limits"},
	{"github.com/pierrec/lz4", []string{"internal/pipeline/isolate/vm"}, "kernels as some distributions pack them"},
	{"github.com/landlock-lsm/go-landlock", []string{"internal/pipeline/isolate/process/walls"}, "one of the walls"},
	{"kernel.org/pub/linux/libs/security/libcap/psx", []string{"internal/pipeline/isolate/process/walls"}, "walls are around all threads"},
	{"golang.org/x/net/idna", []string{"internal/egress"}, "hosts are read in one place"},
	{"go.uber.org/goleak", []string{"internal/testenv"}, "one way to find goroutines that tests leave"},
	{"golang.org/x/term", []string{"cmd/retort"}, "colour only on a terminal"},
}

// testOnly packages are imported by tests and by nothing else.
var testOnly = []string{"internal/testenv", "internal/guest/guesttest", "internal/pipeline/gate/gatetest", "internal/pipeline/isolate/isolatetest", "internal/model/modeltest", "internal/upstream/oauth/oauthtest", "internal/egress/egresstest"}

// testModules may be imported by the tests of every package.
var testModules = []string{"cel.dev/cel-go", "github.com/goccy/go-yaml", "github.com/google/go-cmp", "github.com/modelcontextprotocol/go-sdk", "github.com/nyaruka/phonenumbers", "github.com/prometheus/common", "github.com/rogpeppe/go-internal", "github.com/santhosh-tekuri/jsonschema/v6", "go.opentelemetry.io/proto/slim/otlp", "go.uber.org/goleak", "golang.org/x/tools", "google.golang.org/protobuf"}

// pure packages do no I/O and read no clock: the same input, the same output.
var (
	pure       = []string{"internal/run", "internal/page", "internal/anomaly", "internal/schema", "internal/jsonscan", "internal/policy", "internal/policy/cel", "internal/catalog/prose", "internal/catalog/shape", "internal/pii", "internal/pii/places", "internal/secrets", "internal/skills/lift", "internal/pipeline/emit", "internal/pipeline/discover/index", "internal/pipeline/gate/rules"}
	impure     = []string{"os", "os/exec", "net", "net/http", "syscall", "log", "log/slog", "math/rand", "math/rand/v2", "crypto/rand", "io/ioutil"}
	clockCalls = []string{"time.Now", "time.Since", "time.Until", "time.Sleep", "time.After", "time.Tick", "time.NewTimer", "time.NewTicker", "time.AfterFunc"}
)

// importRules holds a package to the tables above. Tests may import more of
// ours, since they join things as cmd does.
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
		case dir != "internal/run" && !under(dir, l.may):
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

// under says whether dir is one of patterns; "x/..." is x and all below.
func under(dir string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		tree, deep := strings.CutSuffix(p, "...")
		return dir == p || deep && strings.HasPrefix(dir+"/", tree)
	})
}

func TestWhoMayImportWhom(t *testing.T) { hold(t, importRules) }

// Every line of the tables must still be about something.
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

// Rules that cannot fail hold nothing.
func TestImportRulesFindViolations(t *testing.T) {
	violations(t, importRules, map[string]string{
		"internal/run/a.go":                      `package run; import "retort/internal/wire"`,
		"internal/wire/a.go":                     `package wire; import ("retort/internal/run"; "os")`,
		"internal/pipeline/emit/a.go":            `package emit; import "os"`,
		"internal/pipeline/emit/a_test.go":       `package emit; import ("os"; "github.com/google/go-cmp/cmp")`,
		"internal/pipeline/isolate/process/a.go": `package process; import "retort/internal/pipeline/relay"`,
		"internal/pipeline/relay/a.go":           `package relay; import _ "github.com/microsoft/typescript-go/tsc"`,
		"internal/pipeline/a.go":                 `package pipeline; import "retort/internal/pipeline/isolate/isolatetest"`,
		"internal/new/a.go":                      `package new; import "retort/internal/run"`,
		"internal/upstream/a.go":                 `package upstream; import ("github.com/modelcontextprotocol/go-sdk/mcp"; "example.com/x")`,
		"internal/catalog/a.go":                  `package catalog; import "github.com/google/go-cmp/cmp"`,
		"cmd/retort/a.go":                        `package main; import ("retort"; "retort/internal/config")`,
	}, []string{
		"internal/catalog/a.go:1: internal/catalog must not import github.com/google/go-cmp/cmp: it is not in the table of modules",
		"internal/new/a.go:1: internal/new must not import retort/internal/run: the importing package is not in the table of layers",
		"internal/pipeline/a.go:1: internal/pipeline must not import retort/internal/pipeline/isolate/isolatetest: that is for tests",
		"internal/pipeline/emit/a.go:1: internal/pipeline/emit must not import os: it is pure: no I/O, no clock, no chance",
		"internal/pipeline/isolate/process/a.go:1: internal/pipeline/isolate/process must not import retort/internal/pipeline/relay: a backend sees Host and nothing else: no relay, no upstream, no other backend",
		"internal/pipeline/relay/a.go:1: internal/pipeline/relay must not import github.com/microsoft/typescript-go/tsc: it is for internal/pipeline/gate/typescript, since nothing else sees the compiler",
		"internal/run/a.go:1: internal/run must not import retort/internal/wire: the nouns: everybody speaks of them, so they know nobody",
		"internal/upstream/a.go:1: internal/upstream must not import example.com/x: it is not in the table of modules",
	})
}
