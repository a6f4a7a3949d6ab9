package engine

import (
	"encoding/json"
	"path"
	"slices"
	"sync"

	"retort/internal/agent/templates"
	"retort/internal/audit"
	"retort/internal/catalog"
	"retort/internal/catalog/sanitize"
	"retort/internal/config"
	"retort/internal/core"
	"retort/internal/pipeline"
	"retort/internal/pipeline/approval"
	"retort/internal/pipeline/relay"
	"retort/internal/skills"
	"retort/internal/tokens"
	"retort/internal/workspace"
)

// executionAssembly holds the pipeline that executes programs.
type executionAssembly struct {
	closeStack
	pipeline *pipeline.Pipeline  // with the policy for all principals
	warm     func(core.Language) // starts what a program in the language will need
}

// newExecutionAssembly builds the pipeline from the other parts of the engine. If there is an audit log, it starts
// recording changed tool definitions.
func newExecutionAssembly(
	c *configuration, agents *agentAssembly, data *dataAssembly, tools *toolAssembly, programs *programAssembly, people *peopleAssembly,
) *executionAssembly {
	var opened closeStack
	s := c.config.Settings
	warm := newCompilerStarter(programs.checker, c.source.Reserve)
	running := pipeline.NewFlights(approval.NewJournals(c.home.Pending()))
	if data.audit != nil {
		opened.push(recordDefinitionChanges(tools.catalog, data.audit))
	}
	opened.push(running.Close)
	return &executionAssembly{opened, &pipeline.Pipeline{
		Tools: tools.live, Searcher: programs.searcher, Gate: programs.checker, Sandboxes: programs.sandboxes,
		Relay: relay.New(tools.pool, newAnswerCache(c)), Policy: c.policy.ViewFor(""),
		Logins: people.logins, Approvals: people.approvals, Flights: running, Ledger: tokens.New(),
		Workspaces: data.workspaces, States: data.states, Limits: data.limits,
		MaxTokens: s.Results.MaxTokens, DefinitionTokens: s.Results.DefinitionTokens, Runtime: s.Runtime,
		Routing: pipeline.SandboxRouting{
			ByRisk: s.SandboxMode == config.SandboxAuto, Level: strictnessLevels[s.SecurityLevel], Least: requiredStrengths[s.SandboxFloor],
		},
		Secrets: c.secrets, Privacy: data.redactor, Network: programs.network, Skills: openSkills(c, agents.templates),
		Prose: func(text string) (string, []string) { return cleanText(sanitize.New(), text) }, Learner: shapeLearner{tools.catalog},
		Outlines: pipeline.NewToldOutlines(),
		Wrapper:  wrapperRenderer(agents.templates), Stub: stubRenderer(agents.templates),
		Recorder: data.recorder(), Watch: data.anomalyWatch(), Tracer: people.tracer(), Describer: newResultDescriber(c, agents),
		Memory: tools.memory, RestoreToModel: s.PII.RestoreToModel.IsOn(), ShowInForms: s.PII.ShowInForms.IsOn(),
		KeptTokens: logUncopied(c),
	}, warm}
}

// recordDefinitionChanges records each tool whose definition differs from the trusted one, once for each new
// definition, until stop is called.
func recordDefinitionChanges(known *catalog.Catalog, log *audit.Log) (stop func() error) {
	var mu sync.Mutex
	recorded := map[string]string{} // pins by server and tool
	end := known.OnChange(func(*core.Toolset) {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range known.ListChanges() {
			if name := c.Server + "\x00" + c.Tool; recorded[name] != c.Pin {
				recorded[name] = c.Pin
				_ = log.Record(
					core.AuditEvent{Kind: core.EventPin, Server: c.Server, Tool: c.Tool, Status: "changed", Facts: map[string]any{"pin": c.Pin}},
					false,
				)
			}
		}
	})
	return func() error { end(); return nil }
}

// newAnswerCache returns the cache of tool results; nil if the settings disable it.
func newAnswerCache(c *configuration) *relay.AnswerCache {
	s := c.config.Settings.Cache
	if s.TTL == 0 || c.config.Home == "" {
		return nil
	}
	listed := func(t *core.Tool) bool {
		return slices.ContainsFunc(s.Tools, func(pattern string) bool { ok, _ := path.Match(pattern, t.Server+"."+t.Name); return ok })
	}
	return relay.NewCache(workspace.NewAnswers(c.DataDir().Cache(), s.TTL, s.Size), listed)
}

// shapeLearner passes results of tools to the catalog, which learns the tools' result types from them.
type shapeLearner struct{ catalog *catalog.Catalog }

func (l shapeLearner) Learn(t *core.Tool, answer json.RawMessage, private func(string) bool) {
	l.catalog.LearnShape(catalog.ToolObservation{Tool: t, Answer: answer, Private: private})
}

func (l shapeLearner) Infer(t *core.Tool, answer json.RawMessage, private func(string) bool) *core.LearnedSchema {
	return l.catalog.InferType(catalog.ToolObservation{Tool: t, Answer: answer, Private: private})
}

func (l shapeLearner) Outline(t *core.Tool, answer json.RawMessage, private func(string) bool) string {
	return l.catalog.OutlineAnswer(catalog.ToolObservation{Tool: t, Answer: answer, Private: private})
}

// logUncopied returns a function that logs why a workspace file was not copied with real values in place of privacy
// tokens. It returns nil if the settings disable these copies.
func logUncopied(c *configuration) func(session string, why error) {
	if !c.config.Settings.Workspace.RealValues.IsOn() {
		return nil
	}
	return func(session string, why error) {
		c.log.Warn("no copy with real values was written for a file", "session", session, "reason", why, "hint", core.AsError(why).Hint)
	}
}

// openSkills returns the store of the project's and the user's skills. The project's take precedence.
func openSkills(c *configuration, rendered *templates.TemplateSet) *skills.SkillStore {
	own := c.UserDir().Skills()
	if c.config.Home == "" {
		return skills.New(rendered)
	}
	project := c.DataDir().Skills()
	if project == own {
		return skills.New(rendered, skills.SkillPlace{Origin: skills.User, Dir: own})
	}
	return skills.New(rendered, skills.SkillPlace{Origin: skills.Project, Dir: project}, skills.SkillPlace{Origin: skills.User, Dir: own})
}

// cleanText returns text without the parts that models must not see. It also returns the reasons for what it
// removed, each once.
func cleanText(s *sanitize.TextScanner, text string) (string, []string) {
	clean, found := s.CleanText(text)
	var reasons []string
	for _, f := range found {
		if !slices.Contains(reasons, f.Reason) {
			reasons = append(reasons, f.Reason)
		}
	}
	return clean, reasons
}
