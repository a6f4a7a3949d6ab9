package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"retort/internal/agent"
	"retort/internal/agent/model"
	"retort/internal/agent/templates"
	"retort/internal/audit"
	"retort/internal/base/memory"
	"retort/internal/base/reaper"
	"retort/internal/catalog"
	"retort/internal/catalog/sanitize"
	"retort/internal/config"
	"retort/internal/core"
	"retort/internal/doctor"
	"retort/internal/egress"
	"retort/internal/home"
	"retort/internal/mcp/client"
	"retort/internal/pipeline"
	"retort/internal/pipeline/approval"
	"retort/internal/pipeline/check"
	"retort/internal/pipeline/check/rules"
	"retort/internal/pipeline/relay"
	"retort/internal/pipeline/search"
	"retort/internal/policy"
	"retort/internal/privacy/redact"
	"retort/internal/sandbox"
	"retort/internal/sandbox/docker"
	"retort/internal/sandbox/gvisor"
	"retort/internal/sandbox/hostcmd"
	"retort/internal/sandbox/interpreter"
	"retort/internal/sandbox/process"
	"retort/internal/sandbox/runtimes"
	"retort/internal/skills"
	"retort/internal/telemetry"
	"retort/internal/tokens"
)

// parts holds the components of an engine. closers close them, in reverse order.
type parts struct {
	*Stores
	home      home.Dir     // where is kept what is kept: that of the configuration, or one that goes with the engine
	current   *replaceable // what is in force of it and of later ones
	pool      *client.Pool
	catalog   *catalog.Catalog
	live      *catalog.LiveCatalog
	sandboxes *sandbox.BackendChooser
	ledger    *tokens.TokenLedger
	policy    *policy.CurrentPolicy
	audit     *audit.Log // nil: nothing is recorded
	recalled  *recalled
	watch     *watching            // beside audit
	telemetry *telemetry.Telemetry // nil: nobody is told
	before    *started             // what the engine said of itself that wrote the record before
	screen    *redact.Redactor     // nil: nothing is hidden
	memory    *memory.Budget       // for answers
	network   *egress.Network      // of programs; closed unless settings open it
	commands  hostcmd.CommandSet   // that programs may start
	pipeline  *pipeline.Pipeline
	templates *templates.TemplateSet
	model     *model.ModelEndpoint // nil without a configured model
	parked    *agent.ParkedTasks
	line      *line    // the queue of tasks
	passing   *passing // tells clients what has changed on exposed servers
	reloader  *reloader
	warm      func(core.Language) // starts what a program in the language will need
	closers   []func() error
}

// assemble builds the components of an engine and connects them. On an error it closes what it has opened so far.
func assemble(ctx context.Context, c Config, loaded *config.Config, files *config.Watcher) (_ *parts, err error) {
	p := &parts{Stores: newStores(c, loaded), current: newReplaceable(loaded), ledger: tokens.New(), recalled: &recalled{}, passing: &passing{}, parked: &agent.ParkedTasks{}}
	p.onClose(p.recalled.Close)
	defer func() {
		if err != nil {
			_ = p.close()
			err = masked(p.secrets, err)
		}
	}()
	if err := refuseDisabled(loaded.Settings); err != nil {
		return nil, err
	}
	addFileWarnings(loaded)
	if err := p.enforce(loaded.Settings); err != nil {
		return nil, err
	}
	first, err := p.prepare(c, loaded, nil)
	if err != nil {
		return nil, err
	}
	p.current.Store(first)
	if err := c.strangers(loaded); err != nil {
		return nil, err
	}
	commands, err := c.commands()
	if err != nil {
		return nil, err
	}
	if err := p.settle(); err != nil {
		return nil, err
	}
	if err := p.words(); err != nil {
		return nil, err
	}
	if err := p.record(ctx); err != nil {
		return nil, err
	}
	screen, closeScreen := p.OpenRedactor(func() config.Settings { return p.now().config.Settings })
	p.screen = screen
	p.onClose(closeScreen)
	p.memory = memory.New(cmp.Or(loaded.Settings.Memory, memory.AutoLimit()))
	p.onClose(p.memory.Close)
	children := reaper.New(commands.reaper...)
	p.onClose(func() error { children.Close(0); return nil })
	if err := p.connect(c, children); err != nil {
		return nil, err
	}
	if err := p.openNetwork(c.internet); err != nil {
		return nil, err
	}
	p.commands = findCommands(p.config.Settings)
	sandboxes := p.isolate(commands.guest, c.Reserve)
	compiler := func() (io.ReadWriteCloser, error) { return sandboxes.StartHelper(commands.compiler, compilerMemory) }
	if err := p.join(c, check.New(check.Options{Start: compiler, Parser: parser{sandboxes}, Level: p.level(), Trusted: p.trusts()})); err != nil {
		return nil, err
	}
	p.reloader = newReloader(p, c, files)
	p.onClose(p.reloader.Close)
	return p, p.provesTemplates(ctx)
}

// addFileWarnings adds a warning to loaded for each problem with the limit of open files.
func addFileWarnings(loaded *config.Config) {
	for _, c := range doctor.CheckFiles() {
		loaded.Warnings = append(loaded.Warnings, c.Words+": "+c.Mend)
	}
}

func (p *parts) onClose(f func() error) { p.closers = append(p.closers, f) }

// close closes everything in reverse order.
func (p *parts) close() error {
	var errs []error
	for _, end := range slices.Backward(p.closers) {
		errs = append(errs, end())
	}
	return errors.Join(errs...)
}

// settle sets the data directory. Without one in the configuration it creates a temporary directory, removed when the
// engine is closed.
func (p *parts) settle() error {
	if p.home = p.DataDir(); p.home != "" {
		return nil
	}
	dir, err := os.MkdirTemp("", "retort-")
	if err != nil {
		return core.Errorf(core.KindInternal, "retort.open", "%w", err)
	}
	p.home = home.Dir(dir)
	p.onClose(func() error { return os.RemoveAll(dir) })
	return nil
}

// connect opens the catalog and the server pool, which keeps the catalog current.
func (p *parts) connect(c Config, children *reaper.Reaper) (err error) {
	dir := ""
	if p.config.Home != "" {
		dir = p.DataDir().Catalog()
	}
	settings := p.config.Settings
	kept := catalog.Options{Dir: dir, Learn: settings.Results.Learn.IsOn(), Changes: func(server string) core.ChangePolicy {
		return core.ChangePolicy(p.now().config.Settings.ChangesOf(server))
	}}
	if p.screen != nil {
		kept.Sealed = p.screen.SealedType
	}
	if kept.Key = p.UserDir().ApprovalsKey(); kept.Key == "" && dir != "" {
		p.log.Warn("trusted tool definitions cannot be stored: this user has no home directory")
	}
	if p.catalog, err = catalog.Open(kept); err != nil {
		return err
	}
	p.onClose(p.catalog.Close)
	servers := p.now().servers
	names := namesOf(servers)
	for _, s := range p.config.Servers {
		p.catalog.SetCategory(s.Name, s.Category)
	}
	p.catalog.KeepServers(names)
	if err := p.catalog.LoadStatic(p.config.Settings.ToolDefinitions); err != nil {
		return err
	}
	changed := func(server string) { p.live.NotifyChanged(server) }
	spool := client.SpoolOptions{Dir: p.home.Spool(), Above: c.spoolAbove, Bytes: c.Limits.WithDefaults(settings.ExecutionLimits()).Disk}
	identify := func(definition json.RawMessage) (name, pin string) {
		return catalog.IdentifyTool(p.secrets.Mask(definition))
	}
	p.pool = client.New(servers, client.Options{
		Identify: identify, ClientVersion: Version, Processes: children, OnChange: changed, OnNews: p.passing.tell,
		Log: p.log, Spool: spool, Memory: p.memory, ExitPatience: c.exitPatience,
	})
	p.onClose(p.pool.Close)
	p.live = catalog.NewLive(
		p.catalog, maskedListing{lister{p.pool}, p.secrets},
		catalog.LiveOptions{Servers: names, Log: p.log, Count: tokens.CountTokens},
	)
	p.onClose(p.live.Close)
	return nil
}

// enforce puts the policy rules of the settings in force.
func (p *parts) enforce(s config.Settings) error {
	rules, err := policy.New(rulesOf(s))
	if err != nil {
		return err
	}
	p.policy = policy.NewCurrent(rules)
	return nil
}

// rulesOf returns the policy rules of the settings: which principal may call which tool. Listing, searching and
// calling all use them.
func rulesOf(s config.Settings) policy.Rules {
	r := policy.Rules{
		AccessLimits: policy.AccessLimits{Level: policy.PermissionLevel(s.PermissionLevel), Servers: map[string]policy.ServerRules{}},
		Trusted:      map[string]bool{}, Principals: map[string]policy.AccessLimits{}, Commands: commandsOf(s),
		Levels: map[policy.PermissionLevel]policy.LevelRules{},
	}
	for name, server := range s.Servers {
		r.Servers[name], r.Trusted[name] = policy.ServerRules(server.ToolRules), server.Trusted
	}
	for name, principal := range s.Principals {
		limits := policy.AccessLimits{Level: policy.PermissionLevel(principal.PermissionLevel), Servers: map[string]policy.ServerRules{}}
		for server, rules := range principal.Servers {
			limits.Servers[server] = policy.ServerRules(rules)
		}
		r.Principals[name] = limits
	}
	for level, rules := range s.Levels {
		r.Levels[policy.PermissionLevel(level)] = policy.LevelRules(rules)
	}
	r.Approval = policy.AutoApprovals{
		Low: s.Approval.AutoApproveLow.IsOn(), Medium: s.Approval.AutoApproveMedium.IsOn(),
		High: s.Approval.AutoApproveHigh.IsOn(),
	}
	if !s.Enabled.IsOn() {
		r.Disabled = "enabled: false"
	}
	r.Version = policyVersion(r, s)
	return r
}

// visible provides the tools that every principal may see. Search results are filtered further for single principals.
type visible struct {
	live *catalog.LiveCatalog
	view *policy.PrincipalView
}

func (v visible) Toolset() *core.Toolset { return v.view.VisibleToolset(v.live.Toolset()) }

// levels maps the setting securityLevel to the rules that programs are checked against.
var levels = map[config.SecurityLevel]rules.StrictnessLevel{
	config.SecurityPermissive: rules.Permissive, config.SecurityStandard: rules.Standard,
	config.SecurityHigh: rules.Strict, config.SecurityMaximum: rules.Maximum,
}

// floors maps the sandbox that securityLevel requires to the least strength a sandbox must have.
var floors = map[config.SandboxMode]int{config.SandboxDocker: sandbox.Container, config.SandboxVM: sandbox.Machine}

// trusts returns a function that reports whether the settings trust what a server says about its tools.
func (p *parts) trusts() func(server string) bool {
	return func(server string) bool { return p.now().config.Settings.Servers[server].Trusted }
}

// lister lists the tools of a server in the pool, for the catalog.
type lister struct{ pool *client.Pool }

func (l lister) Link(server string) (count int, up bool) { return l.pool.Connection(server) }

func (l lister) List(ctx context.Context, server string) ([]json.RawMessage, string, error) {
	listing, err := l.pool.List(ctx, server)
	return listing.Tools, listing.Instructions, err
}

func (l lister) Own(ctx context.Context, server string) bool {
	return l.pool.HasOwnInstance(ctx, server)
}

func (l lister) Pin(ctx context.Context, server, tool string, since time.Time) (string, error) {
	return l.pool.Pin(ctx, server, tool, since)
}

func (l lister) ListOwn(ctx context.Context, server string) ([]json.RawMessage, string, error) {
	listing, err := l.pool.ListOwn(ctx, server)
	return listing.Tools, listing.Instructions, err
}

// learner passes results of tools to the catalog, which infers result types from them.
type learner struct{ catalog *catalog.Catalog }

func (l learner) Learn(t *core.Tool, answer json.RawMessage, private func(string) bool) {
	l.catalog.LearnShape(catalog.ToolObservation{Tool: t, Answer: answer, Private: private})
}

func (p *parts) isolate(guest []string, reserve Reserve) *process.Backend {
	settings := p.config.Settings
	interpreters := runtimes.SupportedRuntimes(runtimeCommands(settings.Runtimes), settings.ExecutionLimits().Memory)
	processes := process.New(process.Options{
		Command: guest, Compiles: true, Limits: settings.ExecutionLimits(), Fallback: fallbacks[settings.SandboxFallback],
		Network: p.proxied(), Interpreters: interpreters, Commands: p.commands, Once: reserve != ReserveMany,
		Lazy: reserve == ReserveNone,
	})
	// In the order of their strength. None but the first starts, writes or asks anything before
	// somebody wants to know.
	kernels := gvisor.New(gvisor.Options{
		Guest: guest, Runsc: settings.GVisor.Runsc, Dir: p.home.Sandbox(gvisor.Name), Limits: settings.ExecutionLimits(),
		Interpreters: interpreters, Network: p.proxied(), Commands: p.commands,
	})
	backends := []sandbox.Backend{processes, p.containers(guest, interpreters), kernels, p.machines(guest, interpreters)}
	p.sandboxes = sandbox.NewChooser(string(settings.SandboxMode), backends...)
	p.onClose(p.sandboxes.Close)
	return processes
}

// runtimeCommands returns the commands of runtimes that the settings name, by runtime.
func runtimeCommands(r config.Runtimes) map[string]string {
	return map[string]string{"python": r.Python, "node": r.Node, "bun": r.Bun, "deno": r.Deno}
}

// containers returns the sandbox backend for Docker and Podman.
func (p *parts) containers(guest []string, interpreters []interpreter.Interpreter) sandbox.Backend {
	s := p.config.Settings
	o := docker.Options{
		Guest: guest, Host: s.Docker.Host, Runtime: s.Docker.Runtime, Strict: s.SecurityLevel == config.SecurityMaximum, Images: s.Docker.Images,
		Dir: p.home.Sandbox(docker.Name), Limits: s.ExecutionLimits(), Interpreters: interpreters, Network: p.proxied(), Commands: p.commands,
	}
	if s.Docker.Guest != "" {
		o.Guest = []string{s.Docker.Guest, guestArgument}
	}
	return docker.New(o)
}

var fallbacks = map[config.SandboxFallback]process.FallbackMode{
	config.FallbackNone: process.FallbackNone, config.FallbackQuickJS: process.FallbackQuickJS, config.FallbackAll: process.FallbackAll,
}

// parser parses Python programs inside the sandbox.
type parser struct{ sandboxes *process.Backend }

func (p parser) Parse(ctx context.Context, code string) (core.ParsedProgram, error) {
	return p.sandboxes.Parse(ctx, "python", code)
}

// compilerMemory is the largest memory of a compiler process, in bytes. Most programs need some 50 MB.
const compilerMemory = 1 << 30

// join builds the pipeline.
func (p *parts) join(c Config, g *check.ProgramChecker) error {
	p.onClose(g.Close)
	limits := c.Limits.WithDefaults(p.config.Settings.ExecutionLimits())
	everybody := p.policy.ViewFor("")
	searcher, err := search.New(visible{p.live, everybody}, p.embeddings())
	if err != nil {
		return err
	}
	forget := p.catalog.OnChange(func(*core.Toolset) { searcher.StartIndexing() })
	p.onClose(searcher.Close)
	p.onClose(func() error { forget(); return nil })
	approvals, err := p.approvals()
	if err != nil {
		return err
	}
	if err := p.observe(); err != nil {
		return err
	}
	files, states := OpenWorkspaces(p.home, limits.Disk)
	p.warm = warming(g, c.Reserve)
	p.pipeline = &pipeline.Pipeline{
		Tools: p.live, Searcher: searcher, Gate: g, Sandboxes: p.sandboxes, Relay: relay.New(p.pool, p.cache()), Policy: everybody,
		Ledger: p.ledger, Workspaces: files, States: states, Limits: limits,
		MaxTokens: p.config.Settings.Results.MaxTokens, DefinitionTokens: p.config.Settings.Results.DefinitionTokens,
		Secrets: p.secrets, Privacy: p.screen, Network: p.network, Learner: learner{p.catalog},
		RestoreToModel: p.config.Settings.PII.RestoreToModel.IsOn(),
		ShowInForms:    p.config.Settings.PII.ShowInForms.IsOn(),
		Skills:         p.skills(), Prose: func(text string) (string, []string) { return cleaned(sanitize.New(), text) },
		Routing: pipeline.SandboxRouting{ByRisk: p.config.Settings.SandboxMode == config.SandboxAuto, Level: levels[p.config.Settings.SecurityLevel], Least: floors[p.config.Settings.SandboxFloor]},
		Wrapper: p.wrapper(), Stub: p.stub(),
		Runtime: p.config.Settings.Runtime, Approvals: approvals, Flights: pipeline.NewFlights(approval.NewJournals(p.home.Pending())),
	}
	p.pipeline.Memory = p.memory
	if p.config.Settings.Workspace.RealValues.IsOn() {
		p.pipeline.KeptTokens = func(session string, why error) {
			p.log.Warn("no copy with real values was written for a file", "session", session, "reason", why, "hint", core.AsError(why).Hint)
		}
	}
	if d := p.describes(); d != nil {
		p.pipeline.Describer = d
	}
	p.pipeline.Logins = &logins{parts: p, under: map[whose]*loggingIn{}}
	p.awaitLogins()
	if p.telemetry != nil {
		p.pipeline.Tracer = p.telemetry
	}
	if p.audit != nil {
		p.pipeline.Recorder, p.pipeline.Watch = p.audit, p.watch
		approvals.Table.RecordTo(p.audit)
		p.pins()
	}
	p.onClose(p.pipeline.Flights.Close)
	p.lines()
	p.sweeps()
	if p.config.Home != "" {
		p.attend(p.home.Approvals())
	}
	return nil
}

// warming returns a function that starts the compiler, unless the program is written in Python, which needs none.
// With ReserveMany the compiler starts at once, otherwise with the first program that needs it.
func warming(g *check.ProgramChecker, reserve Reserve) func(core.Language) {
	compiler := sync.OnceFunc(func() { go g.Warm() })
	if reserve == ReserveMany {
		compiler()
	}
	return func(l core.Language) {
		if l != core.Python {
			compiler()
		}
	}
}

// skills returns the store of the project's and the user's skills. The project's take precedence.
func (p *parts) skills() *skills.SkillStore {
	own := p.UserDir().Skills()
	if p.config.Home == "" {
		return skills.New(p.templates)
	}
	project := p.DataDir().Skills()
	if project == own {
		return skills.New(p.templates, skills.SkillPlace{Origin: skills.User, Dir: own})
	}
	return skills.New(p.templates, skills.SkillPlace{Origin: skills.Project, Dir: project}, skills.SkillPlace{Origin: skills.User, Dir: own})
}

// cleaned returns text with everything removed that models must not see, and the reasons for the removals.
func cleaned(s *sanitize.TextScanner, text string) (string, []string) {
	clean, found := s.CleanText(text)
	var reasons []string
	for _, f := range found {
		if !slices.Contains(reasons, f.Reason) {
			reasons = append(reasons, f.Reason)
		}
	}
	return clean, reasons
}

// approvals returns the options for asking a person. Permanent approvals are stored in the data directory, and their
// key in the user's key directory.
func (p *parts) approvals() (pipeline.ApprovalOptions, error) {
	s := p.config.Settings.Approval
	version := p.policy.ViewFor("").PolicyVersion()
	var kept approval.RuleStore
	if key := p.UserDir().ApprovalsKey(); key != "" && p.config.Home != "" {
		kept = approval.OpenKept(p.home.ApprovalRules(), key, version)
	}
	table := approval.New(s.Timeout, trusting{kept, p.catalog})
	bounds := approval.QuestionBounds{Questions: s.Questions, Declined: s.Declined}
	table.SetBounds(bounds)
	if s.Webhook.URL != "" {
		webhook, err := approval.NewWebhook(s.Webhook.URL, s.Webhook.Secret, p.log)
		if err != nil {
			return pipeline.ApprovalOptions{}, err
		}
		table.AddChannel(maskedChannel(p.secrets, webhook.AskApprover))
		p.onClose(webhook.Close)
	}
	return pipeline.ApprovalOptions{Table: table, Bounds: bounds.WithDefaults(), Wait: s.Wait}, nil
}

// trusting wraps a RuleStore. A permanent approval of a tool whose definition has changed also trusts the new
// definition.
type trusting struct {
	approval.RuleStore
	catalog *catalog.Catalog
}

func (t trusting) IsAllowed(r approval.AlwaysRule) bool {
	return t.RuleStore != nil && t.RuleStore.IsAllowed(r)
}

func (t trusting) AllowRule(r approval.AlwaysRule) error {
	var failed error
	if tool, ok := t.catalog.Toolset().WithHidden().FindExact(r.Server, r.Tool); ok && tool.Change != nil {
		failed = t.catalog.TrustTools(r.Server, map[string]string{r.Tool: r.Pin})
	}
	if t.RuleStore == nil {
		return failed
	}
	return errors.Join(failed, t.RuleStore.AllowRule(r))
}

// attend opens the approval socket, through which the command line answers, when something first waits for a person.
func (p *parts) attend(dir string) {
	table := p.pipeline.Approvals.Table
	var mu sync.Mutex
	var desk io.Closer
	var tried bool
	table.NotifyWaiting(func() {
		mu.Lock()
		defer mu.Unlock()
		if tried {
			return
		}
		tried = true
		opened, err := approval.OpenDesk(dir, table)
		if err != nil {
			p.log.Warn("retort approvals cannot reach this engine", "error", err)
			return
		}
		desk = opened
	})
	p.onClose(func() error {
		mu.Lock()
		defer mu.Unlock()
		tried = true
		if desk == nil {
			return nil
		}
		return desk.Close()
	})
}

// policyVersion returns a digest of all settings that decide what is allowed. It differs whenever one of them
// changes.
func policyVersion(r policy.Rules, s config.Settings) string {
	s.Approval.Webhook = config.Webhook{} // who is asked is not what was approved
	s.Network.Secrets = nil               // what is sent along is not where to
	text, err := json.Marshal([]any{r, s.Approval, s.SecurityLevel, s.Network})
	if err != nil {
		panic(err) // they are made of strings, numbers and maps of them
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// embeddings returns the search options with the embedding endpoint of the settings, if any.
func (p *parts) embeddings() search.Options {
	e := p.config.Settings.Search.Embeddings
	if e.URL == "" {
		return search.Options{}
	}
	return search.Options{Embedder: search.NewEndpoint(e.URL, e.Model, e.APIKey), Dir: p.home.Vectors()}
}

// commandLines holds the commands that start this binary in its other roles: guest of a sandbox, reaper and compiler.
type commandLines struct{ guest, reaper, compiler []string }

func (c Config) commands() (commandLines, error) {
	guest := slices.Clone(c.Guest)
	if len(guest) == 0 {
		self, err := os.Executable()
		if err != nil {
			return commandLines{}, core.Errorf(core.KindSandboxUnavailable, "retort.open", "cannot find Retort's own executable: %w", err)
		}
		guest = []string{self, guestArgument}
	}
	return commandLines{guest: guest, reaper: []string{guest[0], reaperArgument}, compiler: []string{guest[0], compilerArgument}}, nil
}

// servers returns the servers of the files and those of c. A name that occurs twice is an error.
func (c Config) servers(loaded *config.Config) ([]Server, error) {
	servers := slices.Clone(c.Servers)
	for _, s := range loaded.Servers {
		if s.Disabled {
			continue
		}
		servers = append(servers, fromConfig(s))
	}
	for i := range servers {
		share(&servers[i], loaded.Settings.Servers[servers[i].Name].ServerInstances)
	}
	seen := map[string]bool{}
	for _, s := range servers {
		if seen[s.Name] {
			return nil, core.Errorf(core.KindInvalidArguments, "retort.open", "the server %q is defined twice", s.Name)
		}
		seen[s.Name] = true
	}
	return servers, nil
}

// strangers returns an error if settings given as text name a server that is not configured: a misspelt name would
// silently drop a rule. Settings from files are checked when they are read.
func (c Config) strangers(loaded *config.Config) error {
	if c.Settings == "" && !c.NoFiles || len(loaded.Settings.ToolDefinitions) > 0 {
		return nil
	}
	var known []string
	for _, s := range c.Servers {
		known = append(known, s.Name)
	}
	for _, s := range loaded.Servers {
		known = append(known, s.Name)
	}
	for _, name := range loaded.Settings.NamedServers() {
		if !slices.Contains(known, name) {
			return core.Errorf(core.KindInvalidArguments, "retort.open", "settings for the server %q, which is not configured", name).
				WithHint("the configured servers are %s", strings.Join(known, ", "))
		}
	}
	return nil
}

// share applies the settings for sharing a server's instances among principals.
func share(s *Server, i config.ServerInstances) {
	s.Isolation = cmp.Or(client.Isolation(i.Isolation), s.Isolation)
	s.Stateful = i.Stateful || s.Stateful
	s.Idle, s.Instances = cmp.Or(i.Idle, s.Idle), cmp.Or(i.Instances, s.Instances)
}

func fromConfig(s config.Server) Server {
	transport := string(s.Transport)
	if s.Transport == config.TransportAuto {
		transport = ""
	}
	u := Server{
		Name: s.Name, Command: s.Command, Args: s.Args, Env: s.Env, Dir: s.Cwd,
		URL: s.URL, Headers: s.Headers, Transport: transport, CallTimeout: s.Timeout,
	}
	if s.Err != nil {
		u.Err = s.Err
	}
	return u
}
