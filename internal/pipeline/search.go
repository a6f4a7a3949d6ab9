package pipeline

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"retort/internal/core"
	"retort/internal/pipeline/bindings"
	"retort/internal/pipeline/check"
	"retort/internal/pipeline/relay"
	"retort/internal/pipeline/search"
	ledger "retort/internal/tokens"
	"retort/internal/workspace"
)

const (
	defaultHits = 10
	maxHits     = 100

	// searchPatience bounds how long a search waits for servers that have not listed their tools yet. The search
	// result names the servers that are still missing.
	searchPatience = 3 * time.Second

	// searchTokens bounds all definitions in one search result that a model reads, in tokens. Tools whose definitions
	// do not fit are named in FoundTools.Others.
	searchTokens = 250
)

// Search finds tools and describes each in the detail that the query asks for. Tools that match much less well than
// others are left out, and counted.
func (p *Pipeline) Search(ctx context.Context, q core.ToolQuery) (core.FoundTools, error) {
	return p.findTools(ctx, q, searchTokens)
}

// findTools finds tools like Search. All definitions in its result together have at most limit tokens, except that the
// best tool always has its definition.
func (p *Pipeline) findTools(ctx context.Context, q core.ToolQuery, limit int) (core.FoundTools, error) {
	q.Limit = min(max(q.Limit, 0), maxHits)
	if q.Limit == 0 {
		q.Limit = defaultHits
	}
	if q.Detail == "" || q.Detail == core.DetailSummary {
		q.Detail = core.DetailDescription
	}
	if !slices.Contains([]core.SearchDetail{core.DetailName, core.DetailDescription, core.DetailFull}, q.Detail) {
		return core.FoundTools{}, core.Errorf(
			core.KindInvalidArguments, "pipeline.search", "detail_level must be name, description (or summary) or full, not %q",
			q.Detail,
		)
	}
	if !q.Settled {
		p.Tools.WaitForPending(ctx, searchPatience)
	}
	tools := p.Toolset()
	answer, err := p.Searcher.Search(ctx, search.SearchQuery{
		Tools: tools, Text: q.Text, Server: q.Server, Category: q.Category, Limit: q.Limit, Settled: q.Settled, Weak: q.Weak,
	})
	if err != nil {
		return core.FoundTools{}, err
	}
	found := core.FoundTools{Tools: []core.FoundTool{}, Total: answer.Total, Warnings: answer.Warnings}
	if pending := p.Tools.PendingServers(); len(pending) > 0 {
		found.Warnings = append(found.Warnings, "not searched, because they are still starting: "+strings.Join(pending, ", "))
	}
	found.Warnings = append(found.Warnings, p.unlistedWarnings()...)
	for _, hit := range answer.Hits {
		found.Tools = append(found.Tools, p.describeTool(tools, hit.Tool, q))
	}
	found.More = max(0, found.Total-len(found.Tools))
	if q.Detail == core.DetailFull {
		p.addDefinitions(tools, answer.Hits, q.Language, &found, limit)
	}
	if q.Server == "" && q.Category == "" && q.Text != "" {
		found.Skills = p.findSkills(q)
	}
	return found, nil
}

func (p *Pipeline) describeTool(tools *core.Toolset, t *core.Tool, q core.ToolQuery) core.FoundTool {
	f := core.FoundTool{
		Name: bindings.RenderStub(tools, t, q.Language, bindings.Name), Server: t.Server, Tool: t.Name,
		Category: t.Category, RegistryOnly: tools.RegistryOnly(t),
	}
	if s, ok := tools.FindServer(t.Server); ok {
		f.Cached = s.Cached
	}
	if q.Detail == core.DetailDescription {
		f.Description = bindings.SummaryLine(t)
	}
	return f
}

// addDefinitions adds the definitions of the tools that a search has found, in order, as long as together they have at
// most limit tokens. It moves the first tool whose definition does not fit, and all tools after it, to found.Others. The
// best tool always keeps its definition, even if that definition alone exceeds the limit.
func (p *Pipeline) addDefinitions(tools *core.Toolset, hits []search.ToolHit, lang core.Language, found *core.FoundTools, limit int) {
	for i, hit := range hits {
		definition := p.completeDefinition(tools, hit.Tool, lang, bindings.Compact)
		n, fits := ledger.FitsLimit(definition, limit)
		if i > 0 && !fits {
			found.Tools = found.Tools[:i]
			for _, other := range hits[i:] {
				found.Others = append(found.Others, bindings.BriefCall(tools, other.Tool, lang))
			}
			return
		}
		limit -= n
		found.Tools[i].Definition = definition
	}
}

// completeDefinition returns the definition of a tool with everything that is known of it.
func (p *Pipeline) completeDefinition(tools *core.Toolset, t *core.Tool, lang core.Language, detail bindings.StubDetail) string {
	definition := p.renderStub(tools, t, lang, detail)
	if tools.RegistryOnly(t) {
		definition = commentOf(lang) + " " + tools.NoServerFor(t).Message + "\n" + definition
	}
	return definition
}

// renderStub returns the stub of a tool, which is its definition for a model, after applying the project's template.
// A definition that is too long is shortened.
func (p *Pipeline) renderStub(tools *core.Toolset, t *core.Tool, lang core.Language, detail bindings.StubDetail) string {
	tools = tools.WithAsks(p.asksAbout)
	definition := bindings.RenderStub(tools, t, lang, detail)
	if most := cmp.Or(p.DefinitionTokens, core.DefaultDefinitionTokens); len(definition) > most { // no text has more tokens than bytes
		if _, fits := ledger.FitsLimit(definition, most); !fits {
			definition = abridgeSignature(bindings.RenderStub(tools, t, lang, bindings.Signature), lang, most)
		}
	}
	if p.Stub == nil {
		return definition
	}
	return p.Stub(lang, t, bindings.RenderStub(tools, t, lang, bindings.Name), definition, detail >= bindings.Full)
}

// abridgeSignature shortens a signature to a number of tokens and adds a remark on where to find the whole
// definition. The result takes the place of a tool's definition that has more tokens than a model may get.
func abridgeSignature(signature string, lang core.Language, most int) string {
	return ledger.PrefixWithin(signature, most) + fmt.Sprintf(
		"\n%s the complete definition has more than %d tokens (results.definitionTokens); it is in the tool's file under servers/\n",
		commentOf(lang), most,
	)
}

func commentOf(lang core.Language) string {
	if lang == core.Python {
		return "#"
	}
	return "//"
}

// Describe returns the typed definitions of tools. names may be in any spelling, and may omit the server if the name
// is unique in the category. An empty category means all categories. If only some names are known, the result
// contains an explanation in place of each missing definition. If no name is known, the error suggests similar names.
func (p *Pipeline) Describe(ctx context.Context, names []string, category string, lang core.Language) ([]core.ToolDefinition, error) {
	if len(names) == 0 {
		return nil, core.Errorf(
			core.KindInvalidArguments, "pipeline.describe", "no tool name was given",
		).WithHint("pass name or names, as returned by search_tools")
	}
	tools := p.Toolset()
	if slices.ContainsFunc(names, func(name string) bool {
		t, unknown := tools.FindInCategory(name, category)
		return unknown != nil || tools.RegistryOnly(t)
	}) {
		p.Tools.WaitForPending(ctx, startTimeout)
		tools = p.Toolset()
	}
	var definitions []core.ToolDefinition
	var missing *core.Error
	for _, name := range names[:min(len(names), maxHits)] {
		t, unknown := tools.FindInCategory(name, category)
		if unknown != nil {
			missing = p.explainUnknown(unknown)
			definitions = append(definitions, core.ToolDefinition{
				Name: name, Definition: fmt.Sprintf("%s %s; %s", commentOf(lang), missing.Message, missing.Hint),
			})
			continue
		}
		definitions = append(definitions, core.ToolDefinition{
			Name: bindings.RenderStub(tools, t, lang, bindings.Name), Definition: p.completeDefinition(tools, t, lang, bindings.Full),
		})
	}
	if missing != nil && len(definitions) == 1 {
		return nil, missing
	}
	return definitions, nil
}

// refuseUncallable refuses a program that names a tool which cannot be called, because its definition is known but no
// server provides it. A program that computes the names of its tools is not refused here, but when it calls such a
// tool.
func refuseUncallable(tools *core.Toolset, v check.Verdict) *core.Error {
	if v.Unknown {
		return nil
	}
	for _, t := range v.Tools {
		if tools.RegistryOnly(t) {
			return tools.NoServerFor(t)
		}
	}
	return nil
}

// engineFunctions returns the engine's own functions that programs can call.
func (p *Pipeline) engineFunctions(x *programExecution) map[string]relay.EngineFunction {
	tree := workspace.FileTree{
		Workspace: x.visibleFiles(),
		Folders:   map[string]workspace.VirtualFolder{"servers": wrapperFolder(x), "skills": x.skillFolder()},
		May:       x.fileRestriction(),
	}
	own := map[string]relay.EngineFunction{
		"search_tools": func(ctx context.Context, raw json.RawMessage) (any, error) {
			return x.searchTools(ctx, raw)
		},
		"exec":       x.commands.execCommand,
		"approve":    x.approveBatch,
		"load_skill": func(_ context.Context, raw json.RawMessage) (any, error) { return p.loadSkill(x, raw) },
	}
	maps.Copy(own, x.networkFunctions())
	if x.screen != nil {
		maps.Copy(own, x.tokenFunctions())
	}
	for name, f := range x.state.StateFunctions() {
		own[name] = f
	}
	for name, f := range tree.FileFunctions() {
		own[name] = f
		if slices.Contains(writingFunctions, name) {
			own[name] = x.changes.noteWriting(&tree, f)
		}
		if x.isDryRun() && slices.Contains(writingFunctions, name) {
			own[name] = x.plan.noteFiles(own[name])
		}
	}
	return own
}

// wrapperFolder returns the read-only folder servers/ of the workspace. It contains the wrapper files, in the
// program's language, through which programs call tools.
func wrapperFolder(x *programExecution) workspace.VirtualFolder {
	const root = "servers/"
	tools := sync.OnceValue(func() *core.Toolset { // the first to look waits for servers that have not listed their tools yet
		x.pipeline.Tools.WaitForPending(context.Background(), searchPatience)
		if now := x.visibleTools(); len(now.Servers) > len(x.tools.Servers) {
			return now
		}
		return x.tools
	})
	return workspace.VirtualFolder{
		File: func(name string) (string, bool) {
			text, ok := bindings.WrapperFile(tools().WithAsks(x.pipeline.asksAbout), x.req.Language, root+name)
			return x.pipeline.RenderWrapper(x.req.Language, root+name, text), ok
		},
		List: func(name string) ([]string, bool) {
			names, ok := bindings.ListWrappers(tools(), x.req.Language, root+name)
			if name == "" { // of servers/ only the servers are listed; its index is there all the same
				names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, "/") })
			}
			return names, ok
		},
	}
}

// searchTools answers a program's search for tools with signatures in the program's language.
func (x *programExecution) searchTools(ctx context.Context, raw json.RawMessage) (any, error) {
	var a struct {
		Query    string            `json:"query"`
		Detail   core.SearchDetail `json:"detail_level"`
		Server   string            `json:"server"`
		Category string            `json:"category"`
		Limit    int               `json:"limit"`
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, core.Errorf(core.KindInvalidArguments, "pipeline.search", "searchTools: %v", err)
	}
	found, err := x.pipeline.findTools(ctx, core.ToolQuery{
		Text: a.Query, Detail: a.Detail, Server: a.Server, Category: a.Category, Limit: a.Limit,
		Language: x.req.Language,
	}, math.MaxInt)
	if err != nil {
		return nil, err
	}
	if x.req.Only != nil {
		found.Tools = slices.DeleteFunc(found.Tools, func(f core.FoundTool) bool { _, ok := x.tools.FindExact(f.Server, f.Tool); return !ok })
	}
	if a.Detail == core.DetailFull && x.req.Language != core.Python {
		now := x.pipeline.Toolset() // servers may have listed their tools since the program began
		for i := range found.Tools {
			x.wholeFile(now, &found.Tools[i])
		}
	}
	return found.Tools, nil
}

// wholeFile replaces the signature of a tool that a program has found by the tool's whole wrapper file. Only the
// program gets this longer text, not the model. The signature stays if the file has more tokens than a single
// definition may have.
func (x *programExecution) wholeFile(tools *core.Toolset, f *core.FoundTool) {
	t, ok := tools.FindExact(f.Server, f.Tool)
	if !ok {
		return
	}
	name, text, ok := bindings.ToolFile(tools.WithAsks(x.pipeline.asksAbout), t)
	if !ok {
		return
	}
	most := cmp.Or(x.pipeline.DefinitionTokens, core.DefaultDefinitionTokens)
	if _, fits := ledger.FitsLimit(text, most); len(text) <= most || fits {
		f.Definition = x.pipeline.RenderWrapper(x.req.Language, name, text)
	}
}
