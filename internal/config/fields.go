package config

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"retort/internal/core"
	"retort/internal/policy"
	"retort/internal/policy/cel"
)

// reader returns the settingReader for the whole of retort.yaml. It stores what it reads in s.
func (s *Settings) reader() settingReader {
	written := &policyBlocks{}
	fields := slices.Concat(
		s.executionFields(), s.dataFields(), s.accessFields(), s.serviceFields(), written.fieldReaders(&s.Levels),
	)
	return withPIITypes(written.translateAfter(s, readObject(fields...)))
}

// executionFields returns the readers for the settings that control how programs are checked and run.
func (s *Settings) executionFields() []fieldReader {
	return []fieldReader{
		{"enabled", "Retort may be used. With false, nothing runs: no programs and no single calls.", readSwitch(&s.Enabled)},
		{"sandboxMode", "Sandbox that programs run in. auto chooses by the risk of each program.", readOneOf(&s.SandboxMode, sandboxModes()...)},
		{"sandboxFallback", "Programs that may run in a reduced sandbox, if the operating system does not allow the whole one.", readOneOf(&s.SandboxFallback, FallbackNone, FallbackQuickJS, FallbackAll)},
		{"docker", "How containers are run.", s.Docker.reader()},
		{"gvisor", "Where gVisor is installed.", s.GVisor.reader()},
		{"vm", "Programs and kernel of virtual machines.", s.VM.reader()},
		{"runtime", "Runtime for TypeScript and JavaScript.", readOneOf(&s.Runtime, ScriptRuntimes()...)},
		{"runtimes", "Paths of installed runtimes, or their names in PATH.", s.Runtimes.reader()},
		{"securityLevel", "How strictly programs are checked before they run.", s.readSecurityLevel()},
		{"permissionLevel", "Side effects that programs and calls may have.", readPermissionLevel(&s.PermissionLevel)},
		{"maxExecutionTime", "Maximum active time of a program. Waiting for a person does not count.", readDuration(&s.MaxExecutionTime, time.Millisecond, 24*time.Hour)},
		{"resourceLimits", "Limits of one execution.", s.ResourceLimits.reader()},
		{"commands", "Installed programs that sandboxed programs may start.", readList(&s.Commands, (*Command).reader)},
		{"network", "Hosts that programs may reach directly.", s.Network.reader()},
	}
}

// dataFields returns the readers for the settings of results, personal data and what is stored.
func (s *Settings) dataFields() []fieldReader {
	return []fieldReader{
		{"piiTokenization", "Replace personal data by tokens such as [EMAIL_1].", readSwitch(&s.PIITokenization)},
		{"pii", "Which personal data is hidden, and from whom.", s.PII.reader()},
		{"auditLogging", "Record executions and calls in the audit log.", readSwitch(&s.AuditLogging)},
		{"audit", "Where the audit log is stored, and how long.", s.Audit.reader()},
		{"results", "How much of a result the model receives.", s.Results.reader()},
		{"workspace", "How long files of sessions are kept.", s.Workspace.reader()},
		{"cache", "How long results of tools are reused.", s.Cache.reader()},
	}
}

// accessFields returns the readers for the settings of servers, principals, and the questions that people are
// asked.
func (s *Settings) accessFields() []fieldReader {
	return []fieldReader{
		{"approval", "Which calls run without approval, and how long approvals are waited for.", s.Approval.reader()},
		{"anomalies", "Reactions to unusual behaviour.", s.Anomalies.reader()},
		{"servers", "Settings for single servers, by their name.", readMap(&s.Servers, checkServerName, (*ServerSettings).reader)},
		{"principals", "What single principals may do, and members of groups such as group:finance. It only narrows what all may do.", readMap(&s.Principals, checkPrincipalName, (*Principal).reader)},
		{"toolChanges", "What happens to a tool whose definition differs from the trusted one.", readToolChanges(&s.ToolChanges)},
		{"toolDefinitions", "Folders with definitions of tools.", readList(&s.ToolDefinitions, readPath)},
		{"search", "How tools are found.", readObject(fieldReader{"embeddings", "Endpoint for embeddings, compatible with OpenAI's.", s.Search.Embeddings.reader()})},
	}
}

// serviceFields returns the readers for the settings of Retort itself, its model, its queue and its listeners.
func (s *Settings) serviceFields() []fieldReader {
	return []fieldReader{
		{"model", "Model that writes the programs of agent tasks.", s.Model.reader()},
		{"orchestrator", "Limits of one agent task.", s.Orchestrator.reader()},
		{"telemetry", "Where traces and metrics are exported.", s.Telemetry.reader()},
		{"stats", "How usage is shown.", s.Stats.reader()},
		{"recommend", "What retort recommend uses.", readObject(
			fieldReader{"registry", "Registry of MCP servers that retort recommend --update reads.", readTrustworthy(&s.Recommend.Registry, "https://servers.example.org")},
		)},
		{"http", "Listener for MCP clients.", s.HTTP.reader()},
		{"memory", "Memory that Retort itself may use. auto is half of the control group's limit, or a quarter of the machine.", readOrWord(&s.Memory, "auto", 0, readSize(&s.Memory, 128*mib, 64*tib))},
		{"maxConcurrentTasks", "Maximum number of jobs that run at once.", readInt(&s.MaxTasks, 1, 1024)},
		{"tasks", "Limits of the job queue.", readObject(
			fieldReader{"waiting", "Maximum number of unfinished jobs of one user.", readInt(&s.Tasks.Waiting, 1, 100_000)},
			fieldReader{"keep", "Time after which a finished job is removed.", readDuration(&s.Tasks.Keep, time.Minute, 30*24*time.Hour)},
		)},
	}
}

func readPermissionLevel(l *PermissionLevel) settingReader {
	return readOneOf(l, permissionLevels()...)
}

func (r Runtimes) withDefaults() Runtimes {
	setDefault(&r.Python, core.DefaultCommand("python"))
	setDefault(&r.Node, core.DefaultCommand("node"))
	setDefault(&r.Bun, core.DefaultCommand("bun"))
	setDefault(&r.Deno, core.DefaultCommand("deno"))
	return r
}

func (r *Runtimes) reader() settingReader {
	return readObject(
		fieldReader{"python", "Python.", readProgramName(&r.Python)},
		fieldReader{"node", "Node.js.", readProgramName(&r.Node)},
		fieldReader{"bun", "Bun.", readProgramName(&r.Bun)},
		fieldReader{"deno", "Deno.", readProgramName(&r.Deno)},
	)
}

// readProgramName returns a reader for the path or name of a program installed on this machine.
func readProgramName(s *string) settingReader {
	return readChecked(s, "the path or name of a program", func(c string) bool { return c != "" })
}

func (l *ResourceLimits) reader() settingReader {
	return readObject(
		fieldReader{"memory", "Memory that a program may allocate.", readSize(&l.Memory, 8*mib, tib)},
		fieldReader{"cpu", "Processors that a program may use.", readCores(&l.CPU, 0.01, 1024)},
		fieldReader{"disk", "Size of a session's workspace. Each file and folder counts 4 KB more than its content.", readSize(&l.Disk, mib, 64*tib)},
		fieldReader{"computing", "Maximum active time without waiting for tools or sleeping. If only maxExecutionTime is stated, it is the same.", readDuration(&l.Computing, time.Millisecond, 24*time.Hour)},
		fieldReader{"processes", "Maximum number of processes and threads.", readInt(&l.Processes, 1, 32_768)},
		fieldReader{"output", "Maximum size of console output.", readSize(&l.Output, kib, gib)},
		fieldReader{"result", "Maximum size of the returned value.", readSize(&l.Result, kib, gib)},
		fieldReader{"toolCalls", "Maximum number of tool calls.", readInt(&l.ToolCalls, 1, 10_000_000)},
		fieldReader{"concurrency", "Maximum number of tool calls at once.", readInt(&l.Concurrency, 1, 4096)},
	)
}

func (r *Results) reader() settingReader {
	return readObject(
		fieldReader{"maxTokens", "Tokens of a result that the model receives.", readInt(&r.MaxTokens, 50, 1_000_000)},
		fieldReader{"definitionTokens", "Tokens of one tool's definition that the model receives.", readInt(&r.DefinitionTokens, 100, 1_000_000)},
		fieldReader{"learn", "Learn the types of results that tools do not declare.", readSwitch(&r.Learn)},
		fieldReader{"summarize", "Let the model summarize each result.", readSwitch(&r.Summarize)},
	)
}

func (w *Workspace) reader() settingReader {
	const most = 100 * 365 * 24 * time.Hour
	return readObject(
		fieldReader{"results", "Time after which unused results are removed.", readDuration(&w.Results, time.Minute, most)},
		fieldReader{"sessions", "Time after which all files of an unused session are removed.", readDuration(&w.Sessions, time.Hour, most)},
		fieldReader{"size", "Size of all sessions above which the oldest results are removed.", readSize(&w.Size, mib, 1024*tib)},
		fieldReader{"realValues", "Keep copies of files with real values in place of tokens, for you.", readSwitch(&w.RealValues)},
	)
}

func (c *Cache) reader() settingReader {
	return readObject(
		fieldReader{"ttl", "Time for which results of tools are reused that state that they only read and are idempotent. 0s turns the cache off.", readDuration(&c.TTL, 0, 30*24*time.Hour)},
		fieldReader{"size", "Maximum size of all cached results.", readSize(&c.Size, mib, tib)},
		fieldReader{"tools", "Patterns of SERVER.TOOL whose results may be cached although they do not state that they only read and are idempotent.", readList(&c.Tools, readPattern)},
	)
}

func (a *Audit) reader() settingReader {
	const most = 100 * 365 * 24 * time.Hour
	return readObject(
		fieldReader{"store", "Address of a PostgreSQL database. The default is files in the data directory.", readMatching(&a.Store, "an address such as postgres://user@host/database", `^postgres(ql)?://`)},
		fieldReader{"required", "Actions that are refused if they cannot be recorded: calls that may have effects, or all.", readOneOf(&a.Required, AuditEffects, AuditAll)},
		fieldReader{"keep", "Time after which entries are moved to archives.", readDuration(&a.Keep, time.Hour, most)},
		fieldReader{"size", "Size of the entries above which the oldest are moved to archives.", readSize(&a.Size, mib, 1024*tib)},
		fieldReader{"archives", "Time after which archives are deleted.", readDuration(&a.Archives, time.Hour, most)},
		fieldReader{"checkpoint", "Command that receives each checkpoint as a line on its standard input.", readList(&a.Checkpoint, readArgument)},
	)
}

// readArgument returns a reader for a part of a command line. The value is not shown, because it may contain a
// secret.
func readArgument(s *string) settingReader { return secret(readText(s)) }

func (a *Approval) reader() settingReader {
	return readObject(
		fieldReader{"autoApproveLow", "Run programs of low risk without asking. With false, programs and calls of higher risk wait for approval too.", readSwitch(&a.AutoApproveLow)},
		fieldReader{"autoApproveMedium", "Run programs of medium risk, and calls that write, without asking, if low risk is approved too.", readSwitch(&a.AutoApproveMedium)},
		fieldReader{"autoApproveHigh", "Run programs of high risk without asking, and with execute_full calls that cannot be undone, if low and medium risk are approved too. Critical risk always needs a person.", readSwitch(&a.AutoApproveHigh)},
		fieldReader{"askFirst", "Ask once, before a program starts, about the calls that are expected to need approval. To find these calls, Retort first tries the program: calls that only read are sent, calls with effects are not. You are asked about other calls when the program makes them.", readSwitch(&a.AskFirst)},
		fieldReader{"irreversible", "For grades of calls that cannot be undone: whether you are asked about each of them. It is stronger than permissionLevel and autoApproveHigh. By default these decide.", a.gradesReader()},
		fieldReader{"timeout", "Time after which an approval request that nobody has answered is refused.", readDuration(&a.Timeout, time.Second, 30*24*time.Hour)},
		fieldReader{"wait", "How long a program waits for an approval if the client cannot ask the user. Then it is returned as pending, and can still be approved.", readDuration(&a.Wait, 0, 24*time.Hour)},
		fieldReader{"questions", "Questions that one program may ask. The servers that it calls may ask as many.", readInt(&a.Questions, 1, 10_000)},
		fieldReader{"declined", "Declined questions in a row after which a program may ask no more.", readInt(&a.Declined, 1, 10_000)},
		fieldReader{"webhook", "Address that receives approval requests.", a.Webhook.reader()},
	)
}

// gradesReader returns the reader for the rules for grades of irreversible calls.
func (a *Approval) gradesReader() settingReader {
	var fields []fieldReader
	for _, g := range core.EffectGrades() {
		fields = append(fields, fieldReader{g.String(), gradeDocs[g], a.gradeReader(g.String())})
	}
	return readObject(fields...)
}

var gradeDocs = map[core.EffectGrade]string{
	core.GradeMoney:       "Calls that pay, refund, order, sell or transfer something.",
	core.GradeDeletion:    "Calls that delete, revoke, cancel or overwrite something.",
	core.GradeOther:       "Calls that run something, and calls of which it is not known what they do.",
	core.GradeSendOutside: "Calls that send or publish something outside: e-mail, SMS, public posts, shared files.",
	core.GradeSendInside:  "Calls that post a message or a comment in a channel, chat or ticket of your own workspace.",
}

// gradeReader returns the reader for the rule for one grade. The rule approve asks where a call that writes asks.
func (a *Approval) gradeReader(grade string) settingReader {
	one := a.Irreversible[grade]
	rule := readOneOf(&one, GradeAsk, GradeApprove)
	return rule.checkedBy(func(r *nodeReader, n *valueNode) {
		rule.read(r, n)
		if a.Irreversible == nil {
			a.Irreversible = map[string]GradeRule{}
		}
		a.Irreversible[grade] = one
	})
}

func (w *Webhook) reader() settingReader {
	return requireKeys(readObject(
		fieldReader{"url", "Address that requests are sent to.", hidePath(readChecked(&w.URL, "an address such as https://example.com/approvals", isHTTP))},
		fieldReader{"secret", "Secret that both sides sign with.", secret(readText(&w.Secret))},
	), "url", "secret")
}

// requireKeys returns a reader for an object. It reads the object with o, and adds a problem for each of keys that the
// object does not have.
func requireKeys(o settingReader, keys ...string) settingReader {
	o.schema = o.schema.withRequired(keys...)
	return o.checkedBy(func(r *nodeReader, n *valueNode) {
		o.read(r, n)
		for _, key := range keys {
			if n.kind == objectKind && n.findEntry(key) == nil {
				r.addProblem(n, "", "%s is missing", key)
			}
		}
	})
}

func (s *ServerSettings) reader() settingReader {
	return readObject(slices.Concat(s.ToolRules.fieldReaders(), s.ServerInstances.fieldReaders(), []fieldReader{
		{"category", "Category of the server, which searches can name.", readChecked(&s.Category, "a word", func(c string) bool { return c != "" && len(c) <= 64 })},
		{"disabled", "Do not start this server.", readBool(&s.Disabled)},
		{"trusted", "Hints of its tools may lower the effect that is assumed.", readBool(&s.Trusted)},
		{"effects", "For each pattern of tools: what they do, instead of what Retort assumes. A name without * and ? is stronger than a pattern.", readMap(&s.Effects, checkPatternKey, readEffect)},
		{"timeout", "Maximum time of one call.", readDuration(&s.Timeout, time.Millisecond, 24*time.Hour)},
		{"toolChanges", "What happens to its tools whose definition differs from the trusted one.", readToolChanges(&s.Changes)},
		{"pii", "Personal data of this server.", s.PII.reader()},
		{"oauth", "How Retort logs in at this server.", s.OAuth.reader()},
	}, s.PassThrough.fieldReaders())...)
}

func (p *ServerPII) reader() settingReader {
	return readObject(
		fieldReader{"hide", "Types that its results contain only as tokens, for programs too.", readList(&p.Hide, readPIIType)},
		fieldReader{"reveal", "Types that may be sent to this server even if they came from other servers.", readList(&p.Reveal, readPIIType)},
		fieldReader{"mask", "Types of which its results contain only an outline, such as the last digits.", readList(&p.Mask, readPIIType)},
		fieldReader{"block", "Types that are removed from its results.", readList(&p.Block, readPIIType)},
	)
}

func readToolChanges(c *ToolChanges) settingReader {
	return readOneOf(c, ChangesBlock, ChangesAsk, ChangesNote)
}

// readEffect reads the effect of a tool as a person states it. It accepts the name that earlier versions used for an
// irreversible effect.
func readEffect(e *string) settingReader {
	names := []string{core.EffectRead.String(), core.EffectWrite.String(), core.EffectIrreversible.String(), "destructive"}
	for _, g := range core.EffectGrades() {
		names = append(names, g.String())
	}
	effect := readOneOf(e, names...)
	return effect.checkedBy(func(r *nodeReader, n *valueNode) {
		effect.read(r, n)
		*e = core.EffectName(*e)
	})
}

func (t *ToolRules) fieldReaders() []fieldReader {
	return []fieldReader{
		{"allow", "Patterns of the tools that may be called. It replaces the list in the client's file. The default is that list, or all tools.", readList(&t.Allow, readPattern)},
		{"deny", "Patterns of tools that may not be called. It is stronger than allow.", readList(&t.Deny, readPattern)},
		{"conditions", "For each pattern of tools: an expression that must be true of a call.", readMap(&t.Conditions, checkPatternKey, readCondition)},
	}
}

func (p *Principal) reader() settingReader {
	return readObject(
		fieldReader{"permissionLevel", "Side effects that programs and calls of this principal may have.", readPermissionLevel(&p.PermissionLevel)},
		fieldReader{"servers", "Tools that this principal may call, by server.", readMap(&p.Servers, checkServerName, func(t *ToolRules) settingReader { return readObject(t.fieldReaders()...) })},
	)
}

// checkPrincipalName adds a problem for a name that no access token can contain. It also refuses a name that looks
// like an entry of a group without being one, because such an entry would restrict nobody.
func checkPrincipalName(r *nodeReader, key *valueNode) {
	s := key.text
	group, isGroup := strings.CutPrefix(s, core.GroupPrefix)
	unprintable := func(c rune) bool { return !unicode.IsPrint(c) }
	switch kind, _, found := strings.Cut(s, ":"); {
	case strings.TrimSpace(s) != s || s == "" || len(s) > 128 || strings.ContainsFunc(s, unprintable):
		r.addProblem(key, "", "%q is not a valid name for a principal", shortenText(s))
	case isGroup && (group == "" || strings.TrimSpace(group) != group),
		!isGroup && found && looksLikeGroup(kind):
		r.addProblem(key, "", "%q is not a valid entry for a group; write %sNAME, with the prefix in lower case", shortenText(s), core.GroupPrefix)
	}
}

// looksLikeGroup reports whether the part of a name before a colon is another spelling of "group".
func looksLikeGroup(kind string) bool {
	kind = strings.ToLower(strings.TrimSpace(kind))
	return kind == "group" || kind == "groups"
}

func checkPatternKey(r *nodeReader, key *valueNode) {
	if !isPattern(key.text) {
		r.addProblem(key, "", "expected a tool's name, perhaps with * and ?, found %q", shortenText(key.text))
	}
}

// readCondition returns a reader for a CEL expression over the arguments of a call.
func readCondition(s *string) settingReader {
	return readText(s).checkedBy(func(r *nodeReader, n *valueNode) {
		written, ok := r.scalarText(n)
		if !ok {
			return
		}
		if _, err := cel.Compile(written, policy.ConditionVariables()...); err != nil {
			var e *cel.Error
			hint, where := "", ""
			if errors.As(err, &e) {
				hint = e.Hint
				if written == n.text { // no variable was expanded: the place is that in the text
					where = fmt.Sprintf(" at character %d", utf8.RuneCountInString(written[:e.At])+1)
				}
			}
			r.addProblem(n, hint, "the condition is invalid%s: %s", where, err)
			return
		}
		*s = written
	})
}

func (e *Embeddings) reader() settingReader {
	return requireKeys(readObject(
		fieldReader{"url", "Address of the endpoint.", readChecked(&e.URL, "an address such as http://127.0.0.1:11434/v1", isHTTP)},
		fieldReader{"model", "Name of the model.", readText(&e.Model)},
		fieldReader{"apiKey", "API key, usually a variable such as ${OPENAI_API_KEY}.", secret(readText(&e.APIKey))},
	), "url", "model")
}

// isHTTP reports whether s is an absolute http or https URL.
func isHTTP(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}
