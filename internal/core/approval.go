package core

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Question asks a person to approve a program before it runs, or a call before it is sent.
type Question struct {
	Execution string   `json:"execution_id,omitempty"` // The execution that waits.
	Session   string   `json:"session,omitempty"`      // Its session.
	Principal string   `json:"principal,omitempty"`    // The user whose execution it is.
	Client    string   `json:"client,omitempty"`       // The name and version of the MCP client.
	Language  Language `json:"language,omitempty"`     // The language of the program.
	Code      string   `json:"code,omitempty"`         // The program as it was written. Empty for a call without a program.
	Skills    []Skill  `json:"skills,omitempty"`       // The skills that the program imports, directly or through others.
	Server    string   `json:"server,omitempty"`       // The server of the call that needs approval. Empty for a program.
	Tool      string   `json:"tool,omitempty"`         // The tool of the call that needs approval. Empty for a program.
	// The arguments of the call.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Shown     json.RawMessage `json:"-"` // the arguments as a model may see them; nil: Arguments
	// Spans means that one approval, whatever its scope, also covers the other calls of the same execution that send
	// the same kinds of personal data to the same tool.
	Spans bool `json:"-"`
	// ShowInForms lets a client's form contain Arguments, with real personal values, instead of Shown. This is safe
	// because only the person sees the form.
	ShowInForms bool     `json:"-"`
	Outlines    []string `json:"-"`                // the personal values behind tokens in what is shown, one line each
	Effect      string   `json:"effect,omitempty"` // The effect of the call: `read`, `write` or `irreversible`.
	// The grade of an irreversible call: `money`, `deletion`, `other`, `send_outside` or `send_inside`.
	Grade string `json:"grade,omitempty"`
	// Why a person is asked, in one or two sentences. `rule` names the setting.
	Why string `json:"why,omitempty"`
	// The calls that an approval allows, each once: those of a dry run, or those that the program names in advance.
	Effects  []IntendedCall `json:"effects,omitempty"`
	Start    bool           `json:"start,omitempty"`    // The program has not started; the calls are those that it is expected to make.
	Purpose  string         `json:"purpose,omitempty"`  // What the program says that these calls are for.
	Optional bool           `json:"optional,omitempty"` // The program continues without these calls if they are denied.
	Crosses  string         `json:"crosses,omitempty"`  // Personal data that would be sent to a server it does not come from.
	Rule     string         `json:"rule,omitempty"`     // The setting that made Retort ask.
	Repeats  RepeatKind     `json:"repeats,omitempty"`  // How the call repeats a call of an earlier program of the same agent task.
	Before   []string       `json:"before,omitempty"`   // The earlier calls that it repeats, in words.
	Unusual  string         `json:"unusual,omitempty"`  // Kinds of anomalies that are a part of the reason, with commas.
	Merely   bool           `json:"-"`                  // the anomaly is the only reason
	Risk     int            `json:"risk,omitempty"`     // The risk of the program, from 0 to 100.
	Level    string         `json:"level,omitempty"`    // The risk as a word, from `low` to `critical`.
	Impact   *Impact        `json:"impact,omitempty"`   // What the program or the call can change. Absent for a login.
	Discreet *Impact        `json:"-"`                  // the impact as a model may see it; nil: Impact
	Critical string         `json:"critical,omitempty"` // Why no earlier approval covers the call, in words.
	Reasons  []string       `json:"reasons,omitempty"`  // Reasons for the risk in words, the heaviest first.
	Change   string         `json:"change,omitempty"`   // How the tool's definition differs from the trusted one, in lines.
	Login    string         `json:"login,omitempty"`    // The address that a person opens to log in at the server. To approve means that it was opened.
	Pin      string         `json:"-"`                  // of the tool's definition
	Policy   string         `json:"-"`                  // version of the policy
	Entries  string         `json:"-"`                  // entries of groups that restrict the principal; see PrincipalView.GroupEntries
}

// RepeatKind says how a call repeats a call that an earlier program of the same agent task has made.
type RepeatKind string

// Values of RepeatKind.
const (
	RepeatsSame    RepeatKind = "same"    // the same tool with the same arguments
	RepeatsSimilar RepeatKind = "similar" // the same tool
)

// ApprovalDigest returns a hash of the program or call to approve, as 64 hexadecimal digits. An approval is valid
// only for the question with this hash.
func (q Question) ApprovalDigest() string {
	h := sha256.New()
	parts := []string{string(q.Language), q.Code, q.Server, q.Tool, string(q.Arguments), q.Crosses, q.Unusual, q.Pin, q.Policy}
	if q.Start {
		parts = append(parts, "start")
	}
	if q.Purpose != "" {
		parts = append(parts, "purpose", q.Purpose, fmt.Sprint(q.Optional))
	}
	for _, s := range q.Skills {
		parts = append(parts, s.Name, string(s.Language), s.Code)
	}
	if q.Repeats != "" {
		parts = append(append(parts, string(q.Repeats)), q.Before...)
	}
	for _, e := range q.Effects {
		parts = append(parts, e.Server, e.Tool, string(e.Arguments), e.Pin)
	}
	if q.Login != "" {
		parts = append(parts, q.Login)
	}
	for _, part := range parts {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write([]byte(part))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// IsCall reports whether the question is about one call, not about a program.
func (q Question) IsCall() bool { return q.Tool != "" }

// IsBatch reports whether the question is about calls that a program names in advance, or is expected to make.
func (q Question) IsBatch() bool { return len(q.Effects) > 0 && (q.Purpose != "" || q.Start) }

// HasScopes reports whether the question is about a call that an approval with a wider scope than ScopeOnce can cover.
func (q Question) HasScopes() bool { return q.IsCall() && q.Critical == "" }

// Danger ranks how much harm an approval may do, from 0 to 4.
func (q Question) Danger() int {
	if q.Critical != "" {
		return 4
	}
	danger := map[string]int{"medium": 1, "high": 3, "critical": 4}[q.Level]
	if q.IsCall() {
		danger = effectDanger(q.Effect)
		if q.Crosses != "" || q.Unusual != "" {
			danger = max(danger, 2)
		}
	}
	for _, e := range q.Effects {
		danger = max(danger, effectDanger(e.Effect))
	}
	return danger
}

func effectDanger(effect string) int {
	switch k, ok := ParseEffect(effect); {
	case ok && k == EffectIrreversible:
		return 3
	case ok && k == EffectWrite:
		return 1
	}
	return 0
}

// SortByDanger sorts approvals by danger, the highest first, and keeps the order of equal ones. It returns the list.
func SortByDanger(list []Approval) []Approval {
	slices.SortStableFunc(list, func(a, b Approval) int { return b.Danger() - a.Danger() })
	return list
}

// sortedEffects returns the calls that an approval allows, those that cannot be undone first.
func (q Question) sortedEffects() []IntendedCall {
	list := slices.Clone(q.Effects)
	slices.SortStableFunc(list, func(a, b IntendedCall) int { return effectDanger(b.Effect) - effectDanger(a.Effect) })
	return list
}

// ActionLine returns one line of text that describes the action to approve.
func (q Question) ActionLine() string {
	if q.Login != "" {
		return fmt.Sprintf("use %s, which needs you to log in", LegibleLine(q.Server))
	}
	if q.IsCall() {
		return fmt.Sprintf("call %s.%s (%s)", LegibleLine(q.Server), LegibleLine(q.Tool), q.Effect)
	}
	if q.Start {
		return q.startLine()
	}
	if q.IsBatch() {
		return q.batchLine()
	}
	action := fmt.Sprintf("run a program in %s (risk %d, %s)", q.Language, q.Risk, q.Level)
	switch n := len(q.Effects); n {
	case 0:
		return action
	case 1:
		return action + " with the one effect from the dry run"
	default:
		return fmt.Sprintf("%s with the %d effects from the dry run", action, n)
	}
}

// ActionLine returns one line of text that describes the actions to approve.
func (a Approval) ActionLine() string {
	if a.Count < 2 || !a.IsCall() {
		return a.Question.ActionLine()
	}
	return fmt.Sprintf("call %s.%s %d times (%s)", LegibleLine(a.Server), LegibleLine(a.Tool), a.Count, a.Effect)
}

// IntendedCall describes a call that a program would make and that may have effects.
type IntendedCall struct {
	Server    string          `json:"server"`           // The server.
	Tool      string          `json:"tool"`             // The tool.
	Arguments json.RawMessage `json:"arguments"`        // The arguments as canonical JSON: names sorted, no blanks.
	Effect    string          `json:"effect"`           // `write` or `irreversible`.
	Grade     string          `json:"grade,omitempty"`  // The grade of an irreversible call, such as `money`.
	Reason    string          `json:"reason,omitempty"` // What the call does, and why Retort thinks so, in one or two sentences.
	Shown     json.RawMessage `json:"-"`                // the arguments as a model may see them; as they are if nil
	Pin       string          `json:"-"`                // of the tool's definition
}

// Approval holds a question that waits for a person's decision.
type Approval struct {
	ID      string    `json:"id,omitempty"`     // The id, for `retort approvals approve ID`.
	Digest  string    `json:"digest,omitempty"` // A hash of what is approved.
	Created time.Time `json:"created,omitzero"` // When the question was asked.
	Expires time.Time `json:"expires,omitzero"` // When it expires.
	// The number of equal questions. It is absent if there is only one. Of an approval that was given: how many calls it
	// covered.
	Count int `json:"count,omitempty"`
	// How an approval was given: `client`, `terminal`, `command line`, `webhook` or `earlier approval`.
	By    string        `json:"by,omitempty"`
	Scope ApprovalScope `json:"scope,omitempty"` // The scope with which an approval was given.
	Same  []string      `json:"same,omitempty"`  // The ids of the other equal questions.
	// The arguments of all calls that one answer decides, if they differ.
	Rows []json.RawMessage `json:"rows,omitempty"`
	Question

	shownRows []json.RawMessage // Rows as a model may see them; nil: Rows
	hidden    bool              // the arguments have tokens in the place of personal values
}

// ForModel returns a copy of the approval that a model may see. The arguments in the copy contain no personal data.
func (a Approval) ForModel() Approval {
	a.hidden = true
	if a.Shown != nil {
		a.Arguments = a.Shown
	}
	if a.shownRows != nil {
		a.Rows = a.shownRows
	}
	if a.Discreet != nil {
		a.Impact = a.Discreet
	}
	a.Effects = slices.Clone(a.Effects)
	for i, e := range a.Effects {
		if e.Shown != nil {
			a.Effects[i].Arguments = e.Shown
		}
	}
	return a
}

// RenderText returns everything a person needs to decide, as plain text: the action, all arguments, the reason, the risk
// and the program. Characters that are invisible or misleading, such as marks that change the direction of text, are
// escaped.
func (a Approval) RenderText() string {
	var b strings.Builder
	a.writeAction(&b)
	if a.hidden && len(a.Outlines) > 0 {
		b.WriteString("\nvalues that are sent in place of tokens, in outline:\n")
		for _, outline := range a.Outlines {
			fmt.Fprintf(&b, "  %s\n", LegibleLine(outline))
		}
	}
	if len(a.Before) > 0 {
		b.WriteString("\nan earlier attempt at the same task already called it:\n")
	}
	for _, before := range a.Before {
		fmt.Fprintf(&b, "  - %s\n", LegibleLine(before))
	}
	if n := a.countIrreversible(); n > 0 && n < len(a.Effects) {
		fmt.Fprintf(&b, "\n%d of the %d calls cannot be undone; they come first:\n", n, len(a.Effects))
	}
	if a.Purpose != "" {
		fmt.Fprintf(&b, "\nthe program says what the calls are for: %s\n", LegibleLine(a.Purpose))
	}
	if a.Start {
		b.WriteString("\nnone of these calls has been made: Retort has only tried the program without calls that have effects\nif the program makes other calls that need approval, you will be asked about them\n")
	}
	if a.Optional {
		b.WriteString("\nif you deny, the program continues without these calls\n")
	}
	listed := a.sortedEffects()
	if a.effectsTool() != "" && len(listed) > 1 {
		b.WriteString(describeRows(a.effectRows()))
		listed = nil
	}
	for i, e := range listed {
		fmt.Fprintf(
			&b, "\n%d. %s.%s (%s)\n%s\n%s\n", i+1, LegibleLine(e.Server), LegibleLine(e.Tool), e.Effect,
			LegibleLine(e.Reason), indentJSON(shortFirst(e.Arguments)),
		)
	}
	a.writeReason(&b)
	if (a.IsCall() || a.IsBatch()) && a.Code != "" {
		fmt.Fprintf(&b, "risk of the program: %d (%s)\n", a.Risk, a.Level)
	}
	for _, reason := range a.Reasons {
		fmt.Fprintf(&b, "  - %s\n", LegibleLine(reason))
	}
	if a.Impact != nil {
		fmt.Fprintf(&b, "\nimpact, as far as %s shows it:\n%s", a.impactSubject(), a.Impact.describeLines())
	}
	if a.Change != "" {
		fmt.Fprintf(&b, "\nthe tool's definition differs from the trusted one:\n%s\n", EscapeIllegible(strings.TrimRight(a.Change, "\n")))
	}
	if a.Code != "" {
		fmt.Fprintf(&b, "\nthe program:\n%s\n", EscapeIllegible(strings.TrimRight(a.Code, "\n")))
	}
	for _, s := range a.Skills {
		fmt.Fprintf(&b, "\nthe skill %s, which the program uses:\n%s\n", LegibleLine(s.Name), EscapeIllegible(strings.TrimRight(s.Code, "\n")))
	}
	return b.String()
}

// writeAction writes what is to be approved: the action, and the arguments of a call.
func (a Approval) writeAction(b *strings.Builder) {
	fmt.Fprintf(b, "%s wants to %s\n", LegibleLine(nonEmpty(a.Client, "A program")), a.ActionLine())
	switch {
	case len(a.Rows) > 0:
		fmt.Fprintf(b, "\nthere are %d calls, and the answer applies to all %d\n", a.Count, a.Count)
	case a.Count > 1:
		fmt.Fprintf(b, "\nthere are %d identical requests, and the answer applies to all %d\n", a.Count, a.Count)
	}
	if a.Login != "" {
		fmt.Fprintf(
			b, "\nopen this address in a browser on this machine; the program continues after you have logged in:\n%s\n",
			LegibleLine(a.Login),
		)
	}
	switch {
	case len(a.Rows) > 0:
		b.WriteString(describeRows(a.Rows))
	case a.IsCall():
		fmt.Fprintf(b, "\narguments%s:\n%s\n", sizeNote(a.Arguments), indentJSON(shortFirst(a.Arguments)))
	}
}

// writeReason writes why a person is asked: a sentence if there is one, and the setting.
func (a Approval) writeReason(b *strings.Builder) {
	switch {
	case a.Why != "":
		fmt.Fprintf(b, "\nreason for this request: %s\n", LegibleLine(a.Why))
		if a.Rule != "" {
			fmt.Fprintf(b, "setting: %s\n", LegibleLine(a.Rule))
		}
	case a.Rule != "":
		fmt.Fprintf(b, "\nreason for this request: %s\n", LegibleLine(a.Rule))
	}
}

// impactSubject returns the words for the subject of sentences about the impact: "the call", "each of the calls" or
// "the program's text".
func (a Approval) impactSubject() string {
	switch {
	case a.IsBatch(), len(a.Rows) > 0:
		return "each of the calls"
	case a.IsCall():
		return "the call"
	}
	return "the program's text"
}

func nonEmpty(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func (q Question) countIrreversible() (n int) {
	for _, e := range q.Effects {
		if EffectName(e.Effect) == EffectIrreversible.String() {
			n++
		}
	}
	return n
}

// longArguments is the size in bytes from which arguments are shown with their short members first, so that a long text
// cannot hide them.
const longArguments = 4 << 10

func sizeNote(arguments json.RawMessage) string {
	if len(arguments) < longArguments {
		return ""
	}
	return fmt.Sprintf(" (%d bytes, short values first)", len(arguments))
}

// shortFirst returns long arguments with their members sorted by length. Nothing is left out, and members with equal
// names keep their order. It returns arguments that are not a JSON object unchanged.
func shortFirst(arguments json.RawMessage) json.RawMessage {
	if len(arguments) < longArguments {
		return arguments
	}
	d := json.NewDecoder(bytes.NewReader(arguments))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return arguments
	}
	var members [][]byte
	for d.More() {
		from := d.InputOffset()
		var value json.RawMessage
		if _, err := d.Token(); err != nil || d.Decode(&value) != nil {
			return arguments
		}
		members = append(members, bytes.TrimLeft(arguments[from:d.InputOffset()], ", \t\r\n"))
	}
	slices.SortStableFunc(members, func(a, b []byte) int { return len(a) - len(b) })
	return slices.Concat([]byte("{"), bytes.Join(members, []byte(",")), []byte("}"))
}

func indentJSON(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return LegibleLine(string(raw))
	}
	return EscapeIllegible(b.String())
}

// ApprovalScope says which calls an approval covers, and for how long.
type ApprovalScope string

// Values of ApprovalScope.
const (
	ScopeOnce   ApprovalScope = "once"   // for this one
	ScopeEach   ApprovalScope = "each"   // of a question before a program starts: it may start, and each call is asked about
	ScopeRun    ApprovalScope = "run"    // and for the rest of this kind, the same tool, in this run
	ScopeAlways ApprovalScope = "always" // and for this tool with arguments of this shape, until its definition or the policy changes
)

// ApprovalScopes lists the scopes, narrowest first.
func ApprovalScopes() []ApprovalScope {
	return []ApprovalScope{ScopeOnce, ScopeEach, ScopeRun, ScopeAlways}
}

// ParseScope parses the name of a scope. An empty name means ScopeOnce.
func ParseScope(s string) (ApprovalScope, *Error) {
	if s == "" {
		return ScopeOnce, nil
	}
	if !slices.Contains(ApprovalScopes(), ApprovalScope(s)) {
		return "", Errorf(KindInvalidArguments, "approval", "there is no scope %q", s).WithHint("once, each, run or always")
	}
	return ApprovalScope(s), nil
}

// ApprovalAnswer holds a person's decision on a question.
type ApprovalAnswer struct {
	Approve bool          `json:"approve"`
	Scope   ApprovalScope `json:"scope,omitempty"` // of an approval; ScopeOnce if empty
	Calls   int           `json:"calls,omitempty"` // with ScopeRun: how many calls of a tool are covered, including those shown; 0: all
	Note    string        `json:"note,omitempty"`  // why not, for the model
	// Also lists the ids of equal questions that were shown together with the answered one (see Approval.Same). Ids
	// of other questions are ignored.
	Also []string `json:"also,omitempty"`
	By   string   `json:"-"` // how it was given: "client", "terminal", "command line", "webhook"
}

// ApprovalChannel asks the person at the client of an execution for approval. ok is false if the client could not
// ask. ctx ends when an answer is no longer needed.
type ApprovalChannel func(ctx context.Context, a Approval) (ApprovalAnswer, bool)

// WithBrowser returns a context in which a person can be asked to open a web address, either through the
// ApprovalChannel or in the response to the request. done, which may be nil, is called with an address that need not
// be opened any more.
func WithBrowser(ctx context.Context, done func(address string)) context.Context {
	if done == nil {
		done = func(string) {}
	}
	return WithRequester(ctx, Requester{Browsed: &done})
}

// NotifyBrowsed reports that a person need not open the page at address any more. It calls the function that was
// given to WithBrowser.
func NotifyBrowsed(ctx context.Context, address string) {
	if done := findRequester(ctx, hasBrowser).Browsed; done != nil && address != "" {
		(*done)(address)
	}
}

// HasBrowser reports whether ctx was made by WithBrowser.
func HasBrowser(ctx context.Context) bool { return findRequester(ctx, hasBrowser).Browsed != nil }

func hasBrowser(r *Requester) bool { return r.Browsed != nil }

// WithChannel returns a context whose executions ask for approval through c, in addition to the other ways of asking.
func WithChannel(ctx context.Context, c ApprovalChannel) context.Context {
	return WithRequester(ctx, Requester{Channel: &c})
}

// ChannelOf returns the approval channel of the context, or nil.
func ChannelOf(ctx context.Context) ApprovalChannel {
	if c := findRequester(ctx, func(r *Requester) bool { return r.Channel != nil }).Channel; c != nil {
		return *c
	}
	return nil
}
