package report

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"retort/internal/audit"
	"retort/internal/core"
)

// ActivitySummary counts what happened in the period.
type ActivitySummary struct {
	Entries    int64            `json:"entries"`
	First      *time.Time       `json:"first,omitempty"`
	Last       *time.Time       `json:"last,omitempty"`
	Engines    int64            `json:"engine_starts"`
	Asked      int64            `json:"executions_requested"`
	Ended      int64            `json:"executions_ended"`
	DryRuns    int64            `json:"dry_runs"`
	ByStatus   []NamedCount     `json:"by_status"` // of ended executions
	ByRisk     []NamedCount     `json:"by_risk"`   // of ended executions
	Effects    []NamedCount     `json:"calls_by_effect"`
	Tools      []NamedCount     `json:"calls_by_tool"`
	CallErrors []NamedCount     `json:"failed_calls_by_tool"`
	Refused    []NamedCount     `json:"refused_calls"`                 // by tool and reason
	Rejected   []NamedCount     `json:"refused_programs"`              // by reason
	HighRisk   ExecutionList    `json:"high_risk"`                     // with a risk score of 50 or more
	Actions    HighRiskActions  `json:"high_risk_actions"`             // calls with irreversible effects
	Average    *float64         `json:"average_duration_ms,omitempty"` // of ended executions
	Returned   int64            `json:"tokens_returned"`
	Avoided    int64            `json:"tokens_avoided"`
	Failures   ExecutionList    `json:"failures"` // that ended with another status than ok
	Approvals  ApprovalSummary  `json:"approvals"`
	Seen       []NamedCount     `json:"data_found"`    // found personal values, by category
	Revealed   []NamedCount     `json:"data_revealed"` // revealed personal values, by category and recipient
	Reveals    []NamedCount     `json:"reveals"`       // by recipient
	Erasures   []SettingChange  `json:"erasures"`
	Settings   []SettingChange  `json:"settings_changes"`
	Pins       []SettingChange  `json:"definition_changes"`
	Skills     []SettingChange  `json:"skill_changes"`
	Anomalies  []SettingChange  `json:"anomalies"`
	Logins     []NamedCount     `json:"logins"`
	Files      []NamedCount     `json:"files_by_model"`
	Searches   int64            `json:"searches"`
	Gaps       int64            `json:"gaps"`
	Clocks     int64            `json:"clock_accepted"`
	Principals []NamedCount     `json:"executions_by_principal"`
	More       map[string]int64 `json:"not_listed,omitempty"` // number of omitted items, by name of the shortened list

	archived, deleted int64
	millis            float64 // total duration of ended executions
}

// HighRiskAction describes one call with an irreversible effect.
type HighRiskAction struct {
	At        time.Time `json:"at"`
	Execution string    `json:"execution"`
	Principal string    `json:"principal,omitempty"`
	Tool      string    `json:"tool"`
	Approval  string    `json:"approval"` // "automatic", "person", or "not known" for entries of earlier versions
}

// HighRiskActions counts irreversible calls and lists the newest.
type HighRiskActions struct {
	Total int64            `json:"total"`
	List  []HighRiskAction `json:"list"`
}

// NamedCount holds a name and how often it occurs.
type NamedCount struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
}

// ExecutionSummary describes one execution in a list.
type ExecutionSummary struct {
	ID        string    `json:"execution"`
	At        time.Time `json:"at"`
	Principal string    `json:"principal,omitempty"`
	Risk      *int      `json:"risk,omitempty"`
	Status    string    `json:"status"`
	Error     string    `json:"error,omitempty"`
}

// ExecutionList counts executions and lists the newest.
type ExecutionList struct {
	Total int64              `json:"total"`
	List  []ExecutionSummary `json:"list"`
}

// SettingChange describes one rare event, such as a changed setting or an erasure, that a report lists with its time.
type SettingChange struct {
	At   time.Time `json:"at"`
	What string    `json:"what"`
	How  string    `json:"how,omitempty"`
}

// ApprovalSummary counts the approvals that people were asked for and their answers.
type ApprovalSummary struct {
	Asked     int64        `json:"asked"`
	Automatic int64        `json:"automatic"` // programs that the settings approved without asking
	Outcomes  []NamedCount `json:"outcomes"`
	By        []NamedCount `json:"by"`         // answers, by the channel through which they came
	Rules     []NamedCount `json:"rules"`      // questions, by the rule that required them
	Waits     int64        `json:"waits"`      // questions that were settled in the period
	Open      int64        `json:"unanswered"` // questions of the period whose end is not in the period
	Median    *float64     `json:"median_wait_seconds,omitempty"`
	Longest   *float64     `json:"longest_wait_seconds,omitempty"`
}

const (
	// HighRisk is the lowest risk score that counts as high. The report lists executions with at least this score.
	HighRisk = 50

	maxListedLines      = 50      // length of a list
	maxCountedNames     = 1_000   // names that are counted separately; all further names are counted together
	maxPendingQuestions = 100_000 // open questions, and recorded waiting times
	othersName          = "(others)"
)

// entryTally computes the totals of a report. Entries must be added oldest first.
type entryTally struct {
	ActivitySummary
	counts map[*[]NamedCount]map[string]int64
	waits  []float64
	asked  map[string]time.Time // time of each question that is still open
	facts  entryFacts
}

func newTally() *entryTally {
	t := &entryTally{counts: map[*[]NamedCount]map[string]int64{}, asked: map[string]time.Time{}}
	t.More = map[string]int64{}
	t.HighRisk.List, t.Failures.List, t.Actions.List = []ExecutionSummary{}, []ExecutionSummary{}, []HighRiskAction{}
	for _, list := range []*[]SettingChange{&t.Erasures, &t.Settings, &t.Pins, &t.Skills, &t.Anomalies} {
		*list = []SettingChange{}
	}
	return t
}

// entryFacts holds those members of an entry's additional JSON data ("facts") that a report uses.
type entryFacts struct {
	Effect   string                 `json:"effect"`
	DryRun   bool                   `json:"dry_run"`
	Question string                 `json:"question"`
	Rule     string                 `json:"rule"`
	By       string                 `json:"by"`
	Error    string                 `json:"error"`
	Personal map[string]json.Number `json:"personal"`
	Settings []string               `json:"settings"`
	Servers  []string               `json:"servers"`
	Version  json.RawMessage        `json:"version"`
	Skill    string                 `json:"skill"`
	Values   json.Number            `json:"values"`
	Sessions json.Number            `json:"sessions"`
	Subjects json.Number            `json:"subjects"`
	Recorded json.Number            `json:"recorded"`
	Archived int64                  `json:"archived"`
	Deleted  int64                  `json:"deleted"`
	Action   string                 `json:"action"`
	Severity string                 `json:"severity"`
	Host     string                 `json:"host"`
	Command  string                 `json:"command"`
	Approval string                 `json:"approval"`
}

// addCount adds n to the count of a name in a list. To bound the memory, it counts all new names after the first
// 1000 together.
func (t *entryTally) addCount(list *[]NamedCount, name string, n int64) {
	m := t.counts[list]
	if m == nil {
		m = map[string]int64{}
		t.counts[list] = m
	}
	if _, known := m[name]; !known && len(m) >= maxCountedNames {
		name = othersName
	}
	m[name] += n
}

// addEntry adds an entry to the totals of its kind.
func (t *entryTally) addEntry(e *audit.Entry) {
	t.Entries++
	at := e.At
	if t.First == nil {
		t.First = &at
	}
	t.Last = &at
	f := &t.facts
	*f = entryFacts{}
	if len(e.Facts) > 0 && e.Kind != core.EventStart {
		_ = json.Unmarshal(e.Facts, f) // what is not of its type is left out
	}
	f.Effect = core.EffectName(f.Effect)
	switch e.Kind {
	case core.EventStart:
		t.Engines++
	case core.EventRequest:
		t.Asked++
	case core.EventEnd:
		t.addEnd(e, f)
	case core.EventVerdict:
		if e.Status != "ok" {
			t.addCount(&t.Rejected, e.Status, 1)
		}
	case core.EventCall, core.EventAnswer:
		t.addCall(e, f)
	case core.EventRefusal:
		t.addCount(&t.Refused, toolOf(e)+": "+e.Status, 1)
	case core.EventQuestion, core.EventDecision:
		t.addApproval(e, f)
	case core.EventReveal:
		t.addCount(&t.Reveals, e.Status, 1)
		t.addPersonal(&t.Revealed, f, " to the "+e.Status)
	case core.EventTask: // what it did is in its execution
	case core.EventSearch:
		t.Searches++
	case core.EventFile:
		t.addCount(&t.Files, e.Status, 1)
	case core.EventNetwork:
		if e.Status == "refused" {
			t.addCount(&t.Refused, "network, "+f.Host+": "+f.Error, 1)
		}
	case core.EventCommand:
		if e.Status == "refused" {
			t.addCount(&t.Refused, "command, "+f.Command+": "+f.Error, 1)
		}
	case core.EventToken:
		t.addCount(&t.Logins, "access tokens: "+e.Status, 1)
	case core.EventLogin:
		t.addCount(&t.Logins, e.Server+": "+e.Status, 1)
	case core.EventGap:
		t.Gaps++
	case core.EventClock:
		t.Clocks++
	case core.EventKept:
		t.archived += f.Archived
		t.deleted += f.Deleted
	default:
		t.addChange(e, f)
	}
}

func (t *entryTally) addEnd(e *audit.Entry, f *entryFacts) {
	t.Ended++
	t.millis += e.Millis
	t.Returned += e.Returned
	t.Avoided += e.Avoided
	t.addCount(&t.ByStatus, e.Status, 1)
	t.addCount(&t.ByRisk, levelOf(e.Risk), 1)
	t.addCount(&t.Principals, cmp.Or(e.Principal, "(not named)"), 1)
	t.addPersonal(&t.Seen, f, "")
	if f.DryRun {
		t.DryRuns++
	}
	x := ExecutionSummary{e.Execution, e.At, e.Principal, e.Risk, e.Status, f.Error}
	if e.Risk != nil && *e.Risk >= HighRisk {
		t.HighRisk.addExecution(x)
	}
	if e.Status != "ok" {
		t.Failures.addExecution(x)
	}
}

func (x *ExecutionList) addExecution(e ExecutionSummary) {
	x.Total++
	x.List = append(makeRoom(x.List), e)
}

// addCall counts a call. A call that only reads has one entry. A call with effects has a call entry and, after its
// response, an answer entry. Only the call entry is counted as a call.
func (t *entryTally) addCall(e *audit.Entry, f *entryFacts) {
	if e.Kind == core.EventCall {
		t.addCount(&t.Effects, cmp.Or(f.Effect, "not known"), 1)
		t.addCount(&t.Tools, toolOf(e), 1)
		if f.Effect == core.EffectIrreversible.String() {
			t.Actions.Total++
			t.Actions.List = append(makeRoom(t.Actions.List), HighRiskAction{
				e.At, e.Execution, e.Principal, toolOf(e), cmp.Or(f.Approval, "not known"),
			})
		}
	}
	if e.Status != "ok" && e.Status != "" {
		t.addCount(&t.CallErrors, toolOf(e)+": "+e.Status, 1)
	}
}

func (t *entryTally) addApproval(e *audit.Entry, f *entryFacts) {
	a := &t.Approvals
	if e.Kind == core.EventQuestion {
		a.Asked++
		if f.Rule != "" {
			t.addCount(&a.Rules, f.Rule, 1)
		}
		if f.Question != "" && len(t.asked) < maxPendingQuestions {
			t.asked[f.Question] = e.At
		}
		return
	}
	if e.Status == "automatic" { // nobody was asked
		a.Automatic++
		return
	}
	t.addCount(&a.Outcomes, e.Status, 1)
	if f.By != "" {
		t.addCount(&a.By, f.By, 1)
	}
	began, known := t.asked[f.Question]
	if !known {
		return
	}
	delete(t.asked, f.Question)
	if a.Waits++; len(t.waits) < maxPendingQuestions {
		t.waits = append(t.waits, max(0, e.At.Sub(began).Seconds()))
	}
}

func (t *entryTally) addPersonal(list *[]NamedCount, f *entryFacts, to string) {
	for category, n := range f.Personal {
		if n, err := n.Int64(); err == nil {
			t.addCount(list, category+to, n)
		}
	}
}

// addChange adds a rare event, such as a changed setting, to the list of its kind.
func (t *entryTally) addChange(e *audit.Entry, f *entryFacts) {
	if e.Kind == core.EventErasure && e.Status == audit.StatusKeys {
		return // it announces the erasure that follows
	}
	list, name := &t.Settings, "settings"
	c := SettingChange{At: e.At, How: e.Status}
	switch e.Kind {
	case core.EventSettings:
		c.What = settingsOf(f)
	case core.EventPin:
		list, name, c.What = &t.Pins, "definitions", toolOf(e)
	case core.EventSkill:
		list, name, c.What = &t.Skills, "skills", f.Skill
	case core.EventErasure:
		list, name, c.What = &t.Erasures, "erasures", erasureOf(e, f)
	case core.EventAnomaly:
		list, name, c.What, c.How = &t.Anomalies, "anomalies", anomalyOf(e, f), core.AnomalyName(e.Status)
	default:
		return
	}
	if len(*list) == maxListedLines {
		t.More[name]++
	}
	*list = append(makeRoom(*list), c)
}

// makeRoom removes the oldest element of a list if the list has reached its maximum length, so that one more can
// be appended.
func makeRoom[T any](list []T) []T {
	if len(list) < maxListedLines {
		return list
	}
	return slices.Delete(list, 0, 1)
}

// toActivity returns the totals. Each list begins with the newest event or the largest count.
func (t *entryTally) toActivity() ActivitySummary {
	a := t.ActivitySummary
	at := func(list *[]NamedCount) []NamedCount { return sortedCounts(t.counts[list]) }
	a.ByStatus, a.ByRisk, a.Effects, a.Tools, a.CallErrors = at(&t.ByStatus), at(&t.ByRisk), at(&t.Effects), at(&t.Tools), at(&t.CallErrors)
	a.Refused, a.Rejected, a.Reveals, a.Revealed, a.Seen = at(&t.Refused), at(&t.Rejected), at(&t.Reveals), at(&t.Revealed), at(&t.Seen)
	a.Logins, a.Files, a.Principals = at(&t.Logins), at(&t.Files), at(&t.Principals)
	a.Approvals.Outcomes, a.Approvals.By, a.Approvals.Rules = at(&t.Approvals.Outcomes), at(&t.Approvals.By), at(&t.Approvals.Rules)
	slices.Reverse(a.HighRisk.List)
	slices.Reverse(a.Actions.List)
	if a.Ended > 0 {
		average := t.millis / float64(a.Ended)
		a.Average = &average
	}
	slices.Reverse(a.Failures.List)
	for _, list := range [][]SettingChange{a.Erasures, a.Settings, a.Pins, a.Skills, a.Anomalies} {
		slices.Reverse(list)
	}
	a.Approvals.Open = int64(len(t.asked))
	if n := len(t.waits); n > 0 {
		slices.Sort(t.waits)
		median := (t.waits[(n-1)/2] + t.waits[n/2]) / 2
		a.Approvals.Median, a.Approvals.Longest = &median, &t.waits[n-1]
	}
	return a
}

// sortedCounts returns the counts, largest first.
func sortedCounts(m map[string]int64) []NamedCount {
	all := []NamedCount{}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		all = append(all, NamedCount{name, m[name]})
	}
	slices.SortStableFunc(all, func(a, b NamedCount) int { return cmp.Compare(b.Count, a.Count) })
	return all
}
