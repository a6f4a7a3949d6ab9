package engine

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"retort/internal/agent"
	"retort/internal/agent/model"
	"retort/internal/agent/templates"
	"retort/internal/config"
	"retort/internal/core"
	"retort/internal/pipeline"
	"retort/internal/privacy/secrets"
	"retort/internal/tokens"
)

// Aliases of the types of agent tasks.
type (
	Task     = core.AgentTask  // a task in natural language
	Budget   = core.TaskBudget // the limits of a task
	TaskStep = core.TaskStep   // a progress report of a task
)

// agentAssembly holds what agent tasks need: the prompt templates, the model, and the tasks that wait for a person.
type agentAssembly struct {
	closeStack
	templates *templates.TemplateSet
	provider  config.Provider
	endpoint  *model.ModelEndpoint // nil if the settings name no endpoint
	parked    *agent.ParkedTasks
}

// newAgentAssembly opens the project's templates and the model of the settings.
func newAgentAssembly(c *configuration) (*agentAssembly, error) {
	set, err := openTemplates(c)
	if err != nil {
		return nil, err
	}
	endpoint, err := openModel(c)
	if err != nil {
		return nil, err
	}
	var opened closeStack
	if endpoint != nil {
		opened.push(endpoint.Close)
	}
	return &agentAssembly{opened, set, c.config.Settings.Model.Provider, endpoint, &agent.ParkedTasks{}}, nil
}

// openModel returns the model endpoint of the settings, or nil. It registers the model's API key as a secret.
func openModel(c *configuration) (*model.ModelEndpoint, error) {
	s := c.config.Settings.Model
	if !s.IsEndpoint() {
		return nil, nil
	}
	key := s.Key
	if key == "keyring" {
		var refused *core.Error
		if key, refused = model.KeyFromKeyring(); refused != nil {
			return nil, refused
		}
		c.secrets.Add(modelKeySecrets(key)...)
	}
	endpoint, refused := model.New(model.Options{Format: model.APIFormat(s.Provider), URL: s.URL, Model: s.Model, Key: key, Timeout: s.Timeout})
	if refused != nil {
		return nil, refused
	}
	return endpoint, nil
}

// modelFor returns the model for a request: the endpoint in the settings or, if they have no endpoint, the model that
// the client offers. It returns nil if there is neither.
func (a *agentAssembly) modelFor(ctx context.Context) model.Model {
	switch {
	case a.endpoint != nil:
		return a.endpoint
	case (a.provider == config.ProviderAuto || a.provider == config.ProviderSampling) && core.PeerOf(ctx).Samples:
		return model.ClientModel{}
	}
	return nil
}

// RenderWrapper puts generated code into the project's template for wrapper files and returns the result. A
// wrapper file has the typed functions through which code calls tools.
func (e *Engine) RenderWrapper(lang core.Language, path, code string) string {
	return e.pipeline.RenderWrapper(lang, path, code)
}

// orchestrator returns the orchestrator that performs tasks for the engine's principal.
func (e *Engine) orchestrator() *agent.Orchestrator {
	s := e.config.Settings
	return &agent.Orchestrator{
		Finder: taskFinder{e}, Runner: e.pipeline, Screen: modelScreen{e.pipeline, e.secrets}, Recorder: e.pipeline, Templates: e.agents.templates,
		Model: e.agents.modelFor, Count: tokens.CountTokens, Parked: e.agents.parked, Principal: e.pipeline.Policy.Principal(),
		Options: agent.Options{
			Attempts: s.Orchestrator.Attempts, Tools: s.Orchestrator.Tools, Tokens: s.Orchestrator.Tokens, MaxTokens: s.Model.MaxTokens,
			Price: agent.TokenPrice(s.Model.Price),
		},
	}
}

// taskFinder searches tools and skills for a task. Its searches are recorded in the audit log.
type taskFinder struct{ engine *Engine }

func (f taskFinder) Search(ctx context.Context, q core.ToolQuery) (core.FoundTools, error) {
	return f.engine.Search(ctx, q)
}

// maxServerWait limits the time that a task waits until servers that have just been started list their tools.
const maxServerWait = 30 * time.Second

func (f taskFinder) Settled(ctx context.Context, tell func(string)) {
	ctx, done := context.WithTimeout(ctx, maxServerWait)
	defer done()
	const early = 200 * time.Millisecond // a shorter wait is not reported
	report := time.AfterFunc(early, func() {
		if pending := f.engine.PendingServers(); len(pending) > 0 && ctx.Err() == nil {
			tell("waiting for " + strings.Join(pending, ", "))
		}
	})
	defer report.Stop()
	f.engine.tools.live.WaitForListing(ctx)
}

func (f taskFinder) LoadSkill(name, version, session string) (core.LoadedSkill, *core.Error) {
	return f.engine.pipeline.LoadSkill(name, version, session)
}

func (f taskFinder) Offer(ctx context.Context, names []string, lang core.Language, full bool) ([]core.OfferedTool, *core.Error) {
	return f.engine.pipeline.Offer(ctx, names, lang, full)
}

// modelScreen removes secrets and personal values from texts before they are sent to a model.
type modelScreen struct {
	pipeline *pipeline.Pipeline
	secrets  *secrets.Masker
}

func (s modelScreen) Text(session, text string) (string, *core.Error) {
	clean, _, err := s.pipeline.SanitizeText(session, s.secrets.MaskString(text))
	return clean, core.AsError(err)
}

func (s modelScreen) JSON(session string, raw json.RawMessage) (json.RawMessage, *core.Error) {
	return s.pipeline.SealJSON(session, s.secrets.Mask(raw))
}

func (s modelScreen) Cleaned(text string) string { return s.pipeline.CleanText(text) }
