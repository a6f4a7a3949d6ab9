package config

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"retort/internal/core"
	"retort/internal/privacy/pii"
)

// Switch holds a boolean setting that may also be unset.
type Switch uint8

// The values of a Switch. After Load or WithDefaults, no Switch in the settings is Unset.
const (
	Unset Switch = iota
	Off
	On
)

// IsOn reports whether s is On, and not Off or Unset.
func (s Switch) IsOn() bool { return s == On }

// Settings holds the content of retort.yaml. The zero Settings is valid, and WithDefaults completes it. The
// reference of settings explains each field under its key.
type Settings struct {
	Enabled         Switch
	SandboxMode     SandboxMode
	GVisor          GVisor
	VM              VM
	Commands        []Command
	SandboxFallback SandboxFallback
	Runtime         string   // default for programs in TypeScript and JavaScript
	Runtimes        Runtimes // runtimes installed on this machine
	Docker          Docker
	SecurityLevel   SecurityLevel
	// SandboxFloor is the weakest sandbox that sandboxMode: auto may choose. If it is empty, SecurityLevel and the
	// risk decide.
	SandboxFloor     SandboxMode
	PermissionLevel  PermissionLevel
	Levels           map[PermissionLevel]LevelRules // rules by permission level; a level without rules is missing
	PolicyNotes      []string                       // parts of the policy blocks that have no effect, with the reason
	MaxExecutionTime time.Duration                  // active time, which excludes the wait for a person
	PIITokenization  Switch
	PII              PII
	AuditLogging     Switch
	Audit            Audit
	ResourceLimits   ResourceLimits
	Results          Results
	Workspace        Workspace
	Cache            Cache
	Approval         Approval
	Network          Network
	Servers          map[string]ServerSettings // by the server's name in the client's file
	Principals       map[string]Principal
	ToolChanges      ToolChanges
	ToolDefinitions  []string // absolute paths of folders
	Search           Search
	Model            Model
	Orchestrator     Orchestrator
	Anomalies        Anomalies
	Telemetry        Telemetry
	Stats            Stats
	Recommend        Recommend
	HTTP             HTTP
	Memory           int64 // bytes that the engine may use; 0: as much as the machine allows
	MaxTasks         int   // jobs that run concurrently
	Tasks            Tasks
}

// Recommend configures where retort recommend --update fetches the list of servers.
type Recommend struct {
	Registry string // URL of the registry, without /v0/servers; "": none
}

// Tasks bounds the job queue.
type Tasks struct {
	Waiting int           // maximum number of unfinished jobs of one principal
	Keep    time.Duration // time after its end at which a job is removed
}

// SandboxMode selects the backend that programs run in.
type SandboxMode string

// The sandbox modes. SandboxAuto chooses the sandbox by the program's risk.
const (
	SandboxProcess SandboxMode = "process"
	SandboxDocker  SandboxMode = "docker"
	SandboxGVisor  SandboxMode = "gvisor"
	SandboxVM      SandboxMode = "vm"
	SandboxAuto    SandboxMode = "auto"
)

// SandboxNames returns the backends that settings and requests can name, weakest first.
func SandboxNames() []string {
	return []string{string(SandboxProcess), string(SandboxDocker), string(SandboxGVisor), string(SandboxVM)}
}

func sandboxModes() (modes []SandboxMode) {
	for _, name := range SandboxNames() {
		modes = append(modes, SandboxMode(name))
	}
	return append(modes, SandboxAuto)
}

// SandboxFallback selects which programs may run if the operating system does not let the sandbox confine them.
type SandboxFallback string

// The values of SandboxFallback, strictest first.
const (
	FallbackNone    SandboxFallback = "none"
	FallbackQuickJS SandboxFallback = "quickjs" // only programs for the built-in QuickJS runtime
	FallbackAll     SandboxFallback = "all"
)

// Runtimes names the runtimes installed on this machine, as paths or as names in PATH. An empty field means the usual
// name of the runtime.
type Runtimes struct {
	Python, Node, Bun, Deno string
}

// ScriptRuntimes returns the runtimes for TypeScript and JavaScript. The first one is built in.
func ScriptRuntimes() []string { return []string{"quickjs", "node", "bun", "deno"} }

// SecurityLevel selects how strictly programs are checked before they run.
type SecurityLevel string

// The security levels, weakest first.
const (
	SecurityPermissive SecurityLevel = "permissive"
	SecurityStandard   SecurityLevel = "standard"
	SecurityHigh       SecurityLevel = "high"
	SecurityMaximum    SecurityLevel = "maximum"
)

// PermissionLevel selects which side effects a program may have.
type PermissionLevel string

// The permission levels, strictest first.
const (
	PermissionReadOnly        PermissionLevel = "read_only"
	PermissionWriteRestricted PermissionLevel = "write_restricted"
	PermissionExecuteFull     PermissionLevel = "execute_full"
)

// ToolChanges selects what happens to a tool when its definition differs from the trusted one.
type ToolChanges string

// The treatments of a changed tool, strictest first.
const (
	ChangesBlock ToolChanges = "block" // the tool is hidden, and calls are refused
	ChangesAsk   ToolChanges = "ask"   // a person must approve each call
	ChangesNote  ToolChanges = "note"  // calls are sent, and the result has a warning
)

// PII configures how personal data is hidden.
type PII struct {
	Modes          map[string]PIIMode // by type, such as "email"
	Regions        []string           // ISO 3166 codes of countries whose numbers are recognised
	RestoreToModel Switch
	// ShowInForms says whether forms in the client may show the values of restore_pii, because only the user sees
	// forms.
	ShowInForms Switch
	Words       map[string][]string // by type: words and phrases that always have this type
	Keys        map[string]string   // maps the name of a JSON key, in any spelling, to the type of its values
	Types       map[string]PIIType  // additional types, by name
	Key         PIIKey
	Expiry      time.Duration // time without use after which the tokens of a session are removed
}

// PIIKey configures where the encryption key for personal data is stored. If it is empty, the key is in the system's
// keyring or in a file of the user.
type PIIKey struct{ Variable, Age, Identity string }

// PIIType defines a further type of personal data. If both fields are empty, a value has this type only if its key is
// listed in PII.Keys.
type PIIType struct {
	Pattern string   // regular expression (RE2) that matches its values
	Words   []string // words and phrases that always have this type
}

// PIIMode selects from whom the values of one type of personal data are hidden.
type PIIMode string

// The modes. Sealed hides values from programs and from the model. Border hides them only from the model. Off hides
// nothing.
const (
	PIISealed PIIMode = "sealed"
	PIIBorder PIIMode = "border"
	PIIOff    PIIMode = "off"
)

// piiTypes returns the built-in types of personal data, which settings can name without defining them.
func piiTypes() (names []string) {
	for _, t := range pii.AllTypes() {
		names = append(names, string(t))
	}
	return names
}

// ResourceLimits bounds one execution. A field that is zero was not stated in the settings.
type ResourceLimits struct {
	Computing   time.Duration // the part of maxExecutionTime that is not spent waiting for tools; 0: maxExecutionTime
	Memory      int64         // in bytes
	CPU         float64
	Disk        int64 // in bytes
	Processes   int
	Output      int64 // in bytes
	Result      int64 // in bytes
	ToolCalls   int
	Concurrency int
}

// Results bounds how much of a result is returned to the model, and configures whether result types are learned.
type Results struct {
	MaxTokens        int    // tokens of the encoding o200k_base
	DefinitionTokens int    // tokens (o200k_base) of the definition of one tool
	Learn            Switch // whether to learn the types of results that tools do not declare
	Summarize        Switch // whether a model summarizes each result, if a model is configured
}

// Workspace configures how long unused files of sessions are kept. It also says whether the user gets copies of files
// in which tokens such as [EMAIL_1] are replaced by the original values.
type Workspace struct {
	Results  time.Duration // how long results that were too large to return are kept
	Sessions time.Duration // time after which all files of an unused session are removed
	Size     int64         // bytes of all sessions, above which the oldest results are deleted
	// RealValues says whether the data directory gets copies of files with the original values in place of tokens.
	RealValues Switch
}

// Audit configures where the audit log is stored and how long its entries are kept.
type Audit struct {
	Store      string        // PostgreSQL URL; "": files in the data directory
	Required   AuditRequired // actions that are refused if they cannot be recorded
	Keep       time.Duration // age at which entries are moved to archives
	Size       int64         // bytes of entries above which the oldest are moved to archives
	Archives   time.Duration // age at which archives are deleted
	Checkpoint []string      // command that receives each checkpoint as a line on its standard input
}

// AuditRequired selects the actions that are refused if they cannot be recorded in the audit log.
type AuditRequired string

// The actions that are refused if they cannot be recorded.
const (
	AuditEffects AuditRequired = "effects" // only calls that may have effects
	AuditAll     AuditRequired = "all"     // all actions
)

// Cache configures how long results of tools are reused. A TTL of 0 turns the cache off.
type Cache struct {
	TTL  time.Duration
	Size int64 // in bytes
	// Tools has patterns of SERVER.TOOL. Results of matching tools are cached even if the tools do not declare
	// that they are idempotent.
	Tools []string
}

// Approval configures which calls run without approval, by their risk, and how long an execution waits for an
// approval.
type Approval struct {
	AutoApproveLow    Switch
	AutoApproveMedium Switch
	AutoApproveHigh   Switch
	AskFirst          Switch
	Irreversible      map[string]GradeRule `json:",omitempty"` // by the name of a grade
	Timeout           time.Duration
	// Wait is how long an execution waits for an approval that no client can show, before it returns as pending.
	Wait time.Duration
	// Questions bounds the questions that one program may ask a person. The servers that it calls may ask the same
	// number in addition.
	Questions int `json:"-"`
	// Declined is the number of consecutive declined questions after which the program may ask no more.
	Declined int `json:"-"`
	Webhook  Webhook
}

// GradeRule says whether a person is asked about irreversible calls of one grade.
type GradeRule string

// Values of GradeRule.
const (
	GradeAsk     GradeRule = "ask"     // about each call
	GradeApprove GradeRule = "approve" // only where a person is also asked about calls that write
)

// Webhook configures a URL that receives notifications and requests, with the secret that both sides sign with. If
// URL is empty, nothing is sent.
type Webhook struct{ URL, Secret string }

// Anomalies configures the reactions to unusual behaviour. Actions has the reactions to single kinds of anomalies,
// and Default applies to all other kinds.
type Anomalies struct {
	Default AnomalyAction
	Actions map[string]AnomalyAction // by kind of anomaly
	Webhook Webhook                  // receives alerts
}

// AnomalyAction selects the reaction to one kind of anomaly.
type AnomalyAction string

// The actions, mildest first. Each one except off includes those before it.
const (
	AnomalyOff     AnomalyAction = "off"
	AnomalyNote    AnomalyAction = "note"
	AnomalyAlert   AnomalyAction = "alert"
	AnomalyApprove AnomalyAction = "approve"
	AnomalyStop    AnomalyAction = "stop"
)

// AnomalyKinds returns the kinds of anomalies that settings can name.
func AnomalyKinds() []string {
	return []string{
		"rate", "size", "duration", "errors", "first_use", "irreversible_burst", "exfiltration", "denials", "probing",
		"night", "blacklist", "volume",
	}
}

// ActionFor returns the action for one kind of anomaly.
func (a Anomalies) ActionFor(kind string) AnomalyAction { return cmp.Or(a.Actions[kind], a.Default) }

// withDefaults fills in the default action for anomalies. It fills in the usual actions of single kinds only if the
// settings state no default action.
func (a Anomalies) withDefaults() Anomalies {
	if a.Default != "" {
		return a
	}
	a.Default, a.Actions = AnomalyNote, maps.Clone(a.Actions)
	if a.Actions == nil {
		a.Actions = map[string]AnomalyAction{}
	}
	for kind, action := range usualActions() {
		if a.Actions[kind] == "" {
			a.Actions[kind] = action
		}
	}
	return a
}

// usualActions maps kinds of anomalies to their default actions. All other kinds are only noted by default. These
// actions apply only if the settings state no default action.
func usualActions() map[string]AnomalyAction {
	return map[string]AnomalyAction{
		"irreversible_burst": AnomalyApprove, "exfiltration": AnomalyApprove, "denials": AnomalyAlert, "probing": AnomalyAlert,
		"blacklist": AnomalyOff, "volume": AnomalyOff,
	}
}

func (a *Anomalies) reader() settingReader {
	fields := []fieldReader{
		{"default", "Reaction to the kinds that are not stated. If it is set, it also replaces the defaults of the kinds below. Each action includes those before it.", readAnomalyAction(&a.Default)},
		{"webhook", "Address that alerts are sent to.", a.Webhook.reader()},
	}
	for _, kind := range AnomalyKinds() {
		fields = append(fields, fieldReader{kind, "Reaction to " + describeAnomaly(kind) + ".", a.actionReader(kind)})
	}
	fields = append(fields, fieldReader{"destructive_burst", "Former name of irreversible_burst.", a.formerReader()})
	return readObject(fields...)
}

func describeAnomaly(kind string) string {
	return map[string]string{
		"rate": "unusually many calls", "size": "unusually large results", "duration": "unusually slow calls",
		"errors": "unusually many errors", "first_use": "the first use of a tool",
		"irreversible_burst": "many calls that cannot be undone",
		"exfiltration":       "reading far more than usual and sending something elsewhere",
		"denials":            "many calls that were refused or denied",
		"probing":            "many invalid tokens, or many comparisons of tokens",
		"night":              "calls at an hour at which nothing usually happens",
		"blacklist":          "attempts to reach something on network.blacklist",
		"volume":             "more than 10 MB with one host in one execution",
	}[kind]
}

func readAnomalyAction(s *AnomalyAction) settingReader {
	return readOneOf(s, AnomalyOff, AnomalyNote, AnomalyAlert, AnomalyApprove, AnomalyStop)
}

// formerReader returns the reader for the reaction to irreversible calls under the name that earlier versions used. The
// present name is stronger.
func (a *Anomalies) formerReader() settingReader {
	var one AnomalyAction
	action := readAnomalyAction(&one)
	return action.checkedBy(func(r *nodeReader, n *valueNode) {
		action.read(r, n)
		if a.Actions[core.AnomalyIrreversible] != "" {
			return
		}
		if a.Actions == nil {
			a.Actions = map[string]AnomalyAction{}
		}
		a.Actions[core.AnomalyIrreversible] = one
	})
}

// actionReader returns the reader for the reaction to one kind of anomaly.
func (a *Anomalies) actionReader(kind string) settingReader {
	one := a.Actions[kind]
	action := readAnomalyAction(&one)
	return action.checkedBy(func(r *nodeReader, n *valueNode) {
		action.read(r, n)
		if a.Actions == nil {
			a.Actions = map[string]AnomalyAction{}
		}
		a.Actions[kind] = one
	})
}

// ServerSettings holds the settings for one server of a client's file.
type ServerSettings struct {
	ToolRules
	ServerInstances
	Category string
	Disabled bool
	Trusted  bool              // whether the hints (annotations) of its tools may lower the effect that Retort assumes
	Effects  map[string]string // effects of tools by pattern, in the form that core.ParseEffectRule reads
	Timeout  time.Duration     // of one call; 0: not set
	Changes  ToolChanges       // what to do when its tools change; "": not set
	PII      ServerPII
	OAuth    OAuthClient
	PassThrough
}

// ToolRules configures which tools of a server may be called.
type ToolRules struct {
	Allow      []string          // patterns of tool names; nil: all tools
	Deny       []string          // patterns of tool names; takes precedence over Allow
	Conditions map[string]string // maps a pattern of tool names to the CEL condition that calls must meet
}

// Principal configures what one principal may do. These settings can only restrict what the general settings allow
// all principals.
type Principal struct {
	PermissionLevel PermissionLevel
	Servers         map[string]ToolRules
}

// ServerPII says how the personal data of one server is handled. Its fields take precedence over the general settings
// in PII.
type ServerPII struct {
	Hide   []string // types that its results contain only as tokens, even for programs
	Reveal []string // types that may be sent to the server even if they came from other servers
	Mask   []string // types that its results contain only in outline, such as the last digits
	Block  []string // types that are removed from its results
}

// Search configures how tools are found.
type Search struct {
	Embeddings Embeddings
}

// Embeddings configures an OpenAI-compatible endpoint for embeddings. If URL is empty, no embeddings are used.
type Embeddings struct {
	URL    string
	Model  string
	APIKey string
}

// NamedServers returns the names of all servers that the settings mention, sorted.
func (s Settings) NamedServers() []string {
	names := slices.Collect(maps.Keys(s.Servers))
	for _, p := range s.Principals {
		names = slices.AppendSeq(names, maps.Keys(p.Servers))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// ChangesOf returns how Retort treats a tool of this server whose definition has changed.
func (s Settings) ChangesOf(server string) ToolChanges {
	return cmp.Or(s.Servers[server].Changes, s.ToolChanges, ChangesBlock)
}

// ExecutionLimits returns the limits of one execution, with defaults for those that are not stated.
func (s Settings) ExecutionLimits() core.Limits {
	l := s.ResourceLimits
	return core.Limits{
		Timeout: s.MaxExecutionTime, Computing: l.Computing, Memory: l.Memory, CPU: l.CPU, Disk: l.Disk, Processes: l.Processes,
		Output: l.Output, Result: l.Result, ToolCalls: l.ToolCalls, Concurrency: l.Concurrency,
	}.WithDefaults(core.DefaultLimits())
}

// WithDefaults returns s with defaults for all settings that are not stated. Applying it twice has the same effect as
// once.
func (s Settings) WithDefaults() Settings {
	setDefault(&s.Enabled, On)
	setDefault(&s.SandboxMode, SandboxProcess)
	setDefault(&s.SandboxFallback, FallbackNone)
	setDefault(&s.Runtime, ScriptRuntimes()[0])
	s.Runtimes = s.Runtimes.withDefaults()
	setDefault(&s.SecurityLevel, SecurityStandard)
	setDefault(&s.PermissionLevel, PermissionWriteRestricted)
	setDefault(&s.ToolChanges, ChangesBlock)
	setDefault(&s.PIITokenization, On)
	setDefault(&s.PII.RestoreToModel, Off)
	setDefault(&s.PII.ShowInForms, Off)
	setDefault(&s.AuditLogging, On)
	setDefault(&s.Audit.Required, AuditEffects)
	setDefault(&s.Audit.Keep, 90*24*time.Hour)
	setDefault(&s.Audit.Size, gib)
	setDefault(&s.Audit.Archives, 2*365*24*time.Hour)
	setDefault(&s.Results.MaxTokens, core.DefaultResultTokens)
	setDefault(&s.Results.DefinitionTokens, core.DefaultDefinitionTokens)
	setDefault(&s.Results.Learn, On)
	setDefault(&s.Results.Summarize, Off)
	setDefault(&s.Workspace.Results, 7*24*time.Hour)
	setDefault(&s.Workspace.Sessions, 30*24*time.Hour)
	setDefault(&s.Workspace.Size, 10*gib)
	setDefault(&s.Workspace.RealValues, Off)
	setDefault(&s.Cache.Size, 256*mib)
	setDefault(&s.Approval.AutoApproveLow, On)
	setDefault(&s.Approval.AutoApproveMedium, On)
	setDefault(&s.Approval.AutoApproveHigh, Off)
	setDefault(&s.Approval.AskFirst, On)
	setDefault(&s.Approval.Timeout, core.DefaultApprovalTimeout)
	setDefault(&s.Approval.Questions, core.DefaultQuestions)
	setDefault(&s.Approval.Declined, core.DefaultDeclined)
	s.Model, s.Orchestrator = s.Model.withDefaults(), s.Orchestrator.withDefaults()
	s.Anomalies = s.Anomalies.withDefaults()
	s.Network = s.Network.withDefaults()
	setDefault(&s.Telemetry.Ratio, 1)
	setDefault(&s.Stats.Price.Currency, "$")
	s.HTTP = s.HTTP.withDefaults()
	setDefault(&s.MaxTasks, core.DefaultJobSlots)
	setDefault(&s.Tasks.Waiting, core.DefaultWaitingJobs)
	setDefault(&s.Tasks.Keep, core.DefaultJobExpiry)
	limits := s.ExecutionLimits()
	s.MaxExecutionTime = limits.Timeout
	s.ResourceLimits = ResourceLimits{
		Computing: limits.Computing, Memory: limits.Memory, CPU: limits.CPU, Disk: limits.Disk, Processes: limits.Processes,
		Output: limits.Output, Result: limits.Result, ToolCalls: limits.ToolCalls, Concurrency: limits.Concurrency,
	}
	return s
}

func setDefault[T comparable](v *T, fallback T) {
	var zero T
	if *v == zero {
		*v = fallback
	}
}

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
	tib = 1 << 40
)
