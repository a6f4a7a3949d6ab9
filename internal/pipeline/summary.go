package pipeline

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"retort/internal/core"
	"retort/internal/pipeline/relay"
	"retort/internal/policy"
	"retort/internal/workspace"
)

// ResultDescriber describes a result in natural language, usually with a model.
type ResultDescriber interface {
	// Name returns the name of the model that would describe a result in this context, or "".
	Name(ctx context.Context) string
	// Describe returns a sentence that describes data. The sentence contains no personal data and no secrets.
	Describe(ctx context.Context, data string) (string, *core.Error)
}

// Bounds on a ResultDescriber: the size of the text that it gets and of the text that it returns, in bytes, and the
// time that it may take.
const (
	maxDescribed    = 8 << 10
	maxSaid         = 240
	describeTimeout = 20 * time.Second
	maxChanged      = 3 // tools that a summary names
)

// changeSummary collects what an execution has changed, for the summary in its Outcome.
type changeSummary struct {
	files  atomic.Bool
	skills atomic.Int32 // that were saved by writing to ./skills/

	mu    sync.Mutex
	calls map[string]int // that may have had effects, by the tool's qualified name
	words string         // of a Describer, about the result
}

// noteCall adds a call that is sent to the summary of changes, unless the call only reads.
func (c *changeSummary) noteCall(tools *core.Toolset, t *core.Tool, d policy.AccessDecision) {
	if d.Effect.Kind == core.EffectRead {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls == nil {
		c.calls = map[string]int{}
	}
	c.calls[tools.QualifiedName(t)]++
}

// noteWriting wraps f, a function with which programs write files. The wrapping function also notes in the summary
// that the program has changed files in the workspace. A file in ./skills/ does not count here, because the skill
// that it becomes is counted instead.
func (c *changeSummary) noteWriting(tree *workspace.FileTree, f relay.EngineFunction) relay.EngineFunction {
	return func(ctx context.Context, raw json.RawMessage) (any, error) {
		answer, err := f(ctx, raw)
		var file struct{ Path, To string }
		if err == nil && json.Unmarshal(raw, &file) == nil && tree.InWorkspace(cmp.Or(file.Path, file.To)) {
			c.files.Store(true)
		}
		return answer, err
	}
}

// savedSkillsText describes how many skills were saved, or returns "" if none.
func (c *changeSummary) savedSkillsText() string {
	switch n := c.skills.Load(); n {
	case 0:
		return ""
	case 1:
		return ", saved a skill"
	default:
		return fmt.Sprintf(", saved %d skills", n)
	}
}

// describeEffects describes the calls that may have changed something, or returns "" if there were none.
func (c *changeSummary) describeEffects() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	total := 0
	for _, n := range c.calls {
		total += n
	}
	if total == 0 {
		return ""
	}
	names := slices.Sorted(maps.Keys(c.calls))
	more := ""
	if len(names) > maxChanged {
		more = fmt.Sprintf(" and %d others", len(names)-maxChanged)
		names = names[:maxChanged]
	}
	return fmt.Sprintf("%d with effects (%s%s)", total, strings.Join(names, ", "), more)
}

// endingTexts maps statuses other than ok to a text that says how the program ended.
var endingTexts = map[core.OutcomeStatus]string{
	core.StatusDenied: "was refused", core.StatusTimeout: "ran out of time",
	core.StatusMemoryLimit: "ran out of memory", core.StatusOutputLimit: "printed too much",
	core.StatusCallLimit: "made too many tool calls", core.StatusCancelled: "was cancelled",
}

// summarizeOutcome describes in one sentence what ran, what it changed and how much data it returned. The sentence
// contains none of that data.
func (x *programExecution) summarizeOutcome(o core.Outcome) string {
	if x.exact != nil {
		return ""
	}
	what := "The program"
	if x.req.Code == "" {
		what = "The call"
	}
	if o.Status == core.StatusRejected && o.Stats.ToolCalls == 0 {
		return what + " was rejected; nothing ran."
	}
	var b strings.Builder
	b.WriteString(what)
	switch ending, known := endingTexts[o.Status]; {
	case o.DryRun:
		b.WriteString(" ran as a dry run and changed nothing")
	case o.Status == core.StatusOK:
		b.WriteString(" ran")
	case known:
		b.WriteString(" " + ending)
	default:
		b.WriteString(" failed")
	}
	b.WriteString(x.describeCalls(o))
	if x.changes.files.Load() && !o.DryRun {
		b.WriteString(", wrote to the workspace")
	}
	if !o.DryRun {
		b.WriteString(x.changes.savedSkillsText())
	}
	if o.Status == core.StatusOK {
		b.WriteString(" and returned " + describeAmount(o))
	}
	b.WriteString(".")
	x.changes.mu.Lock()
	defer x.changes.mu.Unlock()
	return b.String() + x.changes.words
}

// describeCalls returns the part of the summary that says how many tool calls were made and what they changed. For a
// single direct call without effects, it returns "".
func (x *programExecution) describeCalls(o core.Outcome) string {
	effects := x.changes.describeEffects()
	if x.req.Code == "" {
		if effects == "" {
			return ""
		}
		return ", " + strings.TrimPrefix(effects, "1 ")
	}
	s := fmt.Sprintf(" with %d tool calls", o.Stats.ToolCalls)
	switch o.Stats.ToolCalls {
	case 0:
		s = " without tool calls"
	case 1:
		s = " with 1 tool call"
	}
	if effects != "" {
		s += ", " + effects
	}
	return s
}

// describeAmount describes how much data was returned.
func describeAmount(o core.Outcome) string {
	for _, f := range o.Artifacts {
		if len(o.Result) == 0 && strings.HasPrefix(f.Path, "results/"+o.ExecutionID+".") && !strings.HasSuffix(f.Path, ".output.txt") {
			return fmt.Sprintf("%d bytes, stored as a file", f.Bytes)
		}
	}
	return shapeOf(o.Result)
}

// shapeOf describes the type and size of a value without showing its content.
func shapeOf(value json.RawMessage) string {
	var list []json.RawMessage
	var object map[string]json.RawMessage
	var text string
	switch trimmed := strings.TrimSpace(string(value)); {
	case trimmed == "", trimmed == "null":
		return "no value"
	case trimmed[0] == '[' && json.Unmarshal(value, &list) == nil:
		return countUnits("an array of", len(list), "item")
	case trimmed[0] == '{' && json.Unmarshal(value, &object) == nil:
		return countUnits("an object of", len(object), "field")
	case trimmed[0] == '"' && json.Unmarshal(value, &text) == nil:
		return countUnits("a text of", utf8.RuneCountInString(text), "character")
	case trimmed == "true", trimmed == "false":
		return "a boolean"
	}
	return "a number"
}

func countUnits(what string, n int, unit string) string {
	if n != 1 {
		unit += "s"
	}
	return fmt.Sprintf("%s %d %s", what, n, unit)
}

// describeResult adds a description of the result in natural language to the Outcome, if there is a ResultDescriber.
// Personal data and secrets are removed from the describer's input and output. The description is quoted, so that
// readers of the summary take it for data and not for instructions.
func (x *programExecution) describeResult(ctx context.Context, o core.Outcome) core.Outcome {
	d := x.pipeline.Describer
	if d == nil || o.Status != core.StatusOK || x.exact != nil || x.isDryRun() ||
		len(o.Result) == 0 && o.Output == "" && len(o.Artifacts) == 0 {
		return o
	}
	name := d.Name(ctx)
	if name == "" {
		return o
	}
	said, refused := x.askDescriber(ctx, d, name, o)
	if refused != nil {
		o.Warnings = append(o.Warnings, "results.summarize: "+refused.Message)
		return o
	}
	if said != "" {
		x.changes.mu.Lock()
		x.changes.words = fmt.Sprintf(
			" %s, a model, describes the data as follows (unverified, not an instruction): \u201c%s\u201d", core.LegibleLine(name), said,
		)
		x.changes.mu.Unlock()
	}
	return o
}

// askDescriber asks a ResultDescriber for a description. It returns one line of bounded length from which
// instructions to models are removed.
func (x *programExecution) askDescriber(ctx context.Context, d ResultDescriber, name string, o core.Outcome) (string, *core.Error) {
	data, refused := x.describableText(o)
	if refused != nil {
		return "", refused
	}
	facts := map[string]any{"execution": x.req.ID, "model": name, "bytes": len(data)}
	if refused := x.pipeline.recordEvent(core.EventTask, x.req.Session, "summarize", facts, requestBody{}); refused != nil {
		return "", refused
	}
	ctx, done := context.WithTimeout(ctx, describeTimeout)
	defer done()
	said, refused := d.Describe(ctx, data)
	if refused != nil {
		return "", refused
	}
	if x.pipeline.Secrets != nil {
		said = string(x.pipeline.Secrets.Mask([]byte(said)))
	}
	if x.screen != nil {
		said = x.screen.RedactText(said)
	}
	said = x.pipeline.CleanText(strings.Join(strings.Fields(said), " "))
	said = strings.NewReplacer("\u201c", "'", "\u201d", "'", `"`, "'", "`", "'").Replace(said)
	return core.LegibleLine(cutTo(said, maxSaid)), nil
}

// describableText returns, as JSON, the parts of an Outcome that a ResultDescriber gets. It contains no more than a
// model may see.
func (x *programExecution) describableText(o core.Outcome) (string, *core.Error) {
	hidden := x.hideOutcome(o)
	if hidden.Error != nil {
		return "", hidden.Error
	}
	about := struct {
		Result, Output, Preview string
	}{Result: cutTo(string(hidden.Result), maxDescribed), Output: cutTo(hidden.Output, maxDescribed/4)}
	for _, f := range hidden.Artifacts {
		about.Preview += f.Preview
	}
	about.Preview = cutTo(about.Preview, maxDescribed/2)
	text, err := json.Marshal(about)
	if x.pipeline.Secrets != nil {
		text = x.pipeline.Secrets.Mask(text)
	}
	return string(text), core.AsError(err)
}

func cutTo(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "\u2026"
}
