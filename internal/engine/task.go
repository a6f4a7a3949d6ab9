package engine

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"time"

	"retort/internal/agent"
	"retort/internal/agent/model"
	"retort/internal/agent/templates"
	"retort/internal/config"
	"retort/internal/core"
	"retort/internal/pipeline"
	"retort/internal/pipeline/bindings"
	"retort/internal/privacy/secrets"
	"retort/internal/tokens"
)

// The nouns of tasks.
type (
	// Types of agent tasks.
	Task     = core.AgentTask  // something to be done, said in words
	Budget   = core.TaskBudget // what bounds it
	TaskStep = core.TaskStep   // how far it is
)

// Wrapped returns a wrapper file rendered with the project's template.
func (e *Engine) Wrapped(lang core.Language, path, code string) string {
	return e.pipeline.RenderWrapper(lang, path, code)
}

// orchestrator returns the orchestrator that performs tasks for the engine's principal.
func (e *Engine) orchestrator() *agent.Orchestrator {
	s := e.config.Settings
	return &agent.Orchestrator{
		Finder: finder{e}, Runner: e.pipeline, Screen: screened{e.pipeline, e.secrets}, Recorder: e.pipeline, Templates: e.templates,
		Model: e.modelOf, Count: tokens.CountTokens, Parked: e.parked, Principal: e.pipeline.Policy.Principal(),
		Options: agent.Options{
			Attempts: s.Orchestrator.Attempts, Tools: s.Orchestrator.Tools, Tokens: s.Orchestrator.Tokens, MaxTokens: s.Model.MaxTokens,
			Price: agent.TokenPrice(s.Model.Price),
		},
	}
}

// finder searches tools and skills for a task. Its searches are recorded in the audit log.
type finder struct{ engine *Engine }

func (f finder) Search(ctx context.Context, q core.ToolQuery) (core.FoundTools, error) {
	return f.engine.Search(ctx, q)
}

// firstAnswers limits the time that a task waits for the first answers of servers that have just been started.
const firstAnswers = 30 * time.Second

func (f finder) Settled(ctx context.Context, tell func(string)) {
	ctx, done := context.WithTimeout(ctx, firstAnswers)
	defer done()
	const patience = 200 * time.Millisecond // before it is told
	told := time.AfterFunc(patience, func() {
		if awaited := f.engine.Pending(); len(awaited) > 0 && ctx.Err() == nil {
			tell("waiting for " + strings.Join(awaited, ", "))
		}
	})
	defer told.Stop()
	f.engine.live.WaitForListing(ctx)
}

func (f finder) LoadSkill(name, version, session string) (core.LoadedSkill, *core.Error) {
	return f.engine.pipeline.LoadSkill(name, version, session)
}

func (f finder) Offer(ctx context.Context, names []string, lang core.Language, full bool) ([]core.OfferedTool, *core.Error) {
	return f.engine.pipeline.Offer(ctx, names, lang, full)
}

// screened removes secrets and personal values from what is sent to a model.
type screened struct {
	pipeline *pipeline.Pipeline
	secrets  *secrets.Masker
}

func (s screened) Text(session, text string) (string, *core.Error) {
	clean, _, err := s.pipeline.SanitizeText(session, s.secrets.MaskString(text))
	return clean, core.AsError(err)
}

func (s screened) JSON(session string, raw json.RawMessage) (json.RawMessage, *core.Error) {
	return s.pipeline.SealJSON(session, s.secrets.Mask(raw))
}

func (s screened) Cleaned(text string) string { return s.pipeline.CleanText(text) }

// modelOf returns the model for a request: the one in the settings or else the client's, or nil.
func (p *parts) modelOf(ctx context.Context) model.Model {
	switch provider := p.config.Settings.Model.Provider; {
	case p.model != nil:
		return p.model
	case (provider == config.ProviderAuto || provider == config.ProviderSampling) && core.PeerOf(ctx).Samples:
		return model.ClientModel{}
	}
	return nil
}

// words opens the project's templates and the model of the settings.
func (p *parts) words() error {
	dir := ""
	if p.config.Home != "" {
		dir = p.DataDir().Templates()
	}
	var refused *core.Error
	if p.templates, refused = templates.Open(dir); refused != nil {
		return refused
	}
	for _, name := range templates.TemplateNames() {
		if file := p.templates.OverriddenFile(name); file != "" {
			p.log.Info("a template of the project replaces the built-in one", "file", file)
		}
	}
	s := p.config.Settings.Model
	if !s.IsEndpoint() {
		return nil
	}
	key := s.Key
	if key == "keyring" {
		if key, refused = model.KeyFromKeyring(); refused != nil {
			return refused
		}
		p.secrets.Add(modelKey(key)...)
	}
	endpoint, refused := model.New(model.Options{Format: model.APIFormat(s.Provider), URL: s.URL, Model: s.Model, Key: key, Timeout: s.Timeout})
	if refused != nil {
		return refused
	}
	p.model = endpoint
	p.onClose(endpoint.Close)
	return nil
}

// wrapper returns the function that renders wrapper files with the project's templates; nil if the project has none.
func (p *parts) wrapper() func(core.Language, string, string) string {
	if p.templates.OverriddenFile(templates.WrapperTS) == "" && p.templates.OverriddenFile(templates.WrapperPy) == "" {
		return nil
	}
	return func(lang core.Language, path, code string) string {
		name := templates.WrapperTS
		if lang == core.Python {
			name = templates.WrapperPy
		}
		text, refused := p.templates.Render(name, templates.WrapperData{Path: path, Code: code})
		if refused != nil || !strings.Contains(text, code) {
			return code
		}
		return text
	}
}

// stub returns the function that renders a tool's definition for models with the project's templates; nil if the
// project has none.
func (p *parts) stub() func(core.Language, *core.Tool, string, string, bool) string {
	if p.templates.OverriddenFile(templates.StubTS) == "" && p.templates.OverriddenFile(templates.StubPy) == "" {
		return nil
	}
	return func(lang core.Language, t *core.Tool, name, definition string, full bool) string {
		file := templates.StubTS
		if lang == core.Python {
			file = templates.StubPy
		}
		text, refused := p.templates.Render(file, templates.StubData{
			Server: t.Server, Tool: t.Name, Name: name, Definition: definition, Full: full,
		})
		if refused != nil || !strings.Contains(text, definition) {
			return definition
		}
		return text
	}
}

// provesStub returns an error if the project's template leaves out the tool's definition.
func (p *parts) provesStub(name templates.TemplateName) error {
	file := p.templates.OverriddenFile(name)
	if file == "" {
		return nil
	}
	text, refused := p.templates.Render(name, templates.ExampleData(name))
	if refused == nil && !strings.Contains(text, templates.ExampleDefinition) {
		refused = core.Errorf(core.KindInvalidArguments, "templates", "%s: {{.definition}} is missing from its output, or altered in it", file)
	}
	if refused != nil {
		return refused.WithHint("fix the file, or remove it to use the built-in template")
	}
	return nil
}

// provesTemplates returns an error if the output of a project's template fails the check of programs.
func (p *parts) provesTemplates(ctx context.Context) error {
	for name, lang := range map[templates.TemplateName]core.Language{
		templates.SkeletonTS: core.TypeScript, templates.WrapperTS: core.TypeScript, templates.SkeletonPy: core.Python,
		templates.WrapperPy: core.Python,
	} {
		file := p.templates.OverriddenFile(name)
		if file == "" {
			continue
		}
		text, refused := p.templates.Render(name, templates.ExampleData(name))
		if refused == nil && (name == templates.WrapperTS || name == templates.WrapperPy) &&
			!strings.Contains(text, templates.ExampleCode(name)) {
			refused = core.Errorf(core.KindInvalidArguments, "templates", "%s: {{.code}} is missing from its output, or altered in it", file)
		}
		if refused == nil {
			refused = p.proves(ctx, file, lang, text)
		}
		if refused != nil {
			return refused.WithHint("fix the file, or remove it to use the built-in template")
		}
	}
	for _, name := range []templates.TemplateName{templates.StubTS, templates.StubPy} {
		if err := p.provesStub(name); err != nil {
			return err
		}
	}
	return nil
}

// proves checks the example output of a template as a program that can call one sample tool.
func (p *parts) proves(ctx context.Context, file string, lang core.Language, text string) *core.Error {
	names, tools := bindings.AssignServer([]string{"sample"})["sample"], bindings.AssignTools([]string{"listThings"})["listThings"]
	tool := &core.Tool{
		Server: "sample", Name: "listThings", TypeScript: tools.TypeScript, Python: tools.Python,
		InputSchema: json.RawMessage(`{"type":"object","properties":{"limit":{"type":"integer"}}}`),
	}
	sample := core.NewToolset(
		[]*core.ToolServer{{Name: "sample", TypeScript: names.TypeScript, Python: names.Python, Tools: []*core.Tool{tool}}},
	)
	_, refused := p.pipeline.Gate.Check(ctx, core.ExecutionRequest{Language: lang, Code: text, Name: filepath.Base(file)}, sample, nil)
	if refused == nil || refused.Kind == core.KindSandboxUnavailable {
		return nil
	}
	return core.Errorf(
		core.KindInvalidArguments, "templates", "%s: its output fails the program check, at line %d of the output: %s", file,
		refused.Line, refused.Message,
	)
}
