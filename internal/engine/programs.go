package engine

import (
	"context"
	"io"
	"sync"

	"retort/internal/catalog"
	"retort/internal/config"
	"retort/internal/core"
	"retort/internal/egress"
	"retort/internal/pipeline/check"
	"retort/internal/pipeline/check/rules"
	"retort/internal/pipeline/search"
	"retort/internal/policy"
	"retort/internal/sandbox"
	"retort/internal/sandbox/process"
)

// programAssembly holds the parts that find tools for programs, check programs and run them.
type programAssembly struct {
	closeStack
	network   *egress.Network // for requests of programs; blocks everything unless the settings say otherwise
	sandboxes *sandbox.BackendChooser
	checker   *check.ProgramChecker
	searcher  *search.Searcher
}

// newProgramAssembly builds the network of programs, the sandbox backends, the checker of programs and the search.
// It starts the sandboxes that Config.Reserve asks for.
func newProgramAssembly(c *configuration, tools *toolAssembly) (_ *programAssembly, err error) {
	var opened closeStack
	defer opened.closeOnError(&err)
	network, err := openNetwork(c)
	if err != nil {
		return nil, err
	}
	sandboxes, processes := newSandboxes(c, network, findHostCommands(c.config.Settings))
	opened.push(sandboxes.Close)
	checker := newChecker(c, network, processes)
	opened.push(checker.Close)
	searcher, err := search.New(visibleTools{tools.live, c.policy.ViewFor("")}, searchOptions(c))
	if err != nil {
		return nil, err
	}
	stop := tools.catalog.OnChange(func(*core.Toolset) { searcher.StartIndexing() })
	opened.push(searcher.Close)
	opened.push(func() error { stop(); return nil })
	return &programAssembly{opened, network, sandboxes, checker, searcher}, nil
}

// visibleTools provides the tools that a caller without a principal may see. The search index covers these tools; the
// results are filtered further for the principal who searches.
type visibleTools struct {
	live *catalog.LiveCatalog
	view *policy.PrincipalView
}

func (v visibleTools) Toolset() *core.Toolset { return v.view.VisibleToolset(v.live.Toolset()) }

// searchOptions returns the search options with the embedding endpoint of the settings, if any.
func searchOptions(c *configuration) search.Options {
	e := c.config.Settings.Search.Embeddings
	if e.URL == "" {
		return search.Options{}
	}
	return search.Options{Embedder: search.NewEndpoint(e.URL, e.Model, e.APIKey), Dir: c.home.Vectors()}
}

// strictnessLevels maps the setting securityLevel to the strictness of the rules that check programs.
var strictnessLevels = map[config.SecurityLevel]rules.StrictnessLevel{
	config.SecurityPermissive: rules.Permissive, config.SecurityStandard: rules.Standard,
	config.SecurityHigh: rules.Strict, config.SecurityMaximum: rules.Maximum,
}

// maxCompilerMemory limits the memory of a compiler process, in bytes. Most programs need some 50 MB.
const maxCompilerMemory = 1 << 30

// newChecker returns the checker of programs. The TypeScript compiler and the Python parser that it uses run in
// sandboxes.
func newChecker(c *configuration, network *egress.Network, sandboxes *process.Backend) *check.ProgramChecker {
	level := strictnessLevels[c.config.Settings.SecurityLevel]
	if !network.IsClosed() {
		level |= rules.Networked
	}
	if len(c.config.Settings.Commands) > 0 {
		level |= rules.Commanding
	}
	return check.New(check.Options{
		Start: func() (io.ReadWriteCloser, error) {
			return sandboxes.StartHelper(c.commands.compiler, maxCompilerMemory)
		},
		Parser: pythonParser{sandboxes}, Level: level,
		Effect: func(t *core.Tool) core.EffectInfo { return c.policy.ViewFor("").EffectOf(t) },
	})
}

// pythonParser parses Python programs in a sandbox.
type pythonParser struct{ sandboxes *process.Backend }

func (p pythonParser) Parse(ctx context.Context, code string) (core.ParsedProgram, error) {
	return p.sandboxes.Parse(ctx, "python", code)
}

// newCompilerStarter returns a function that is called with the language of each program before the program is
// checked. At the first language other than Python, the function starts the TypeScript compiler in the background;
// Python needs no compiler. With ReserveMany, newCompilerStarter starts the compiler itself.
func newCompilerStarter(checker *check.ProgramChecker, reserve Reserve) func(core.Language) {
	start := sync.OnceFunc(func() { go checker.Warm() })
	if reserve == ReserveMany {
		start()
	}
	return func(l core.Language) {
		if l != core.Python {
			start()
		}
	}
}
