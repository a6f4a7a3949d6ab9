package rules

import (
	"fmt"
	"slices"
	"strings"

	"retort/internal/core"
)

// RiskLevel is a range of risk scores with a name, such as "low".
type RiskLevel string

// The levels of risk, with the scores that they cover.
const (
	RiskLow      RiskLevel = "low"      // below 25
	RiskMedium   RiskLevel = "medium"   // 25 to 49
	RiskHigh     RiskLevel = "high"     // 50 to 79
	RiskCritical RiskLevel = "critical" // 80 and more
)

// UsedTool describes a tool that a program can call, with its effect.
type UsedTool struct {
	Tool   string // as programs write it: github.listIssues
	Effect core.EffectInfo
	Loop   bool // it may be called more than once
}

// ProgramRisk describes the risk of a program: its score, its level and the reasons for them.
type ProgramRisk struct {
	Score   int // 0 to 100
	Level   RiskLevel
	Reasons []string   // in words, what weighs most first
	Uses    []UsedTool // the tools it can call, what goes furthest first
	Unknown bool       // it computes which tools it calls, so that Uses are all
	Impact  ProgramImpact

	report RuleReport
}

// WithoutUses returns the risk that the program would have without some of its tools. It leaves out the tools for
// which the function told returns true.
func (r ProgramRisk) WithoutUses(told func(UsedTool) bool) ProgramRisk {
	rest := slices.DeleteFunc(slices.Clone(r.Uses), told)
	return WeighRisk(r.report, rest, r.Unknown && len(rest) > 0)
}

// UsesNetwork reports whether a program, or a skill that it uses, contains a name that gives access to the network.
func (r ProgramRisk) UsesNetwork() bool {
	return slices.ContainsFunc(r.report.Findings, func(f RuleFinding) bool { return strings.HasPrefix(f.Rule, "network.") })
}

// UsesCommands reports whether a program, or a skill that it uses, contains a name with which it could run commands.
func (r ProgramRisk) UsesCommands() bool {
	return slices.ContainsFunc(r.report.Findings, func(f RuleFinding) bool { return f.Rule == "process.command" })
}

// The points that make up a risk score.
const (
	weightRead         = 5
	weightWrite        = 25
	weightIrreversible = 50
	weightLoop         = 10 // of a write; twice for what cannot be taken back
	weightMore         = 2  // for each further tool that does more than read
	maxMore            = 10
	weightUnknown      = 10
	weightAcross       = 5 // what one server gives can go to another
	weightWrites       = 3
	weightDeletes      = 10
	weightDomain       = 3
	maxDomains         = 9
	weightComplex      = 3
)

// weightOf maps the severity of a program's most severe finding to the points that this finding adds to the risk
// score.
var weightOf = [...]int{0, 0, 3, 15, 40, 70}

// WeighRisk computes the risk of a program that can call these tools. If the program computes the names of tools,
// unknown is true.
func WeighRisk(r RuleReport, uses []UsedTool, unknown bool) ProgramRisk {
	slices.SortStableFunc(uses, func(a, b UsedTool) int { return int(b.Effect.Kind) - int(a.Effect.Kind) })
	w := &riskWeighing{risk: ProgramRisk{Uses: uses, Unknown: unknown, Impact: r.Impact, report: r}}
	w.weighTools(uses, unknown)
	w.weighFiles(r.Impact)
	w.weighFindings(r)
	w.risk.Score = min(w.risk.Score, 100)
	w.risk.Level = levelOf(w.risk.Score)
	slices.SortStableFunc(w.parts, func(a, b riskPart) int { return b.points - a.points })
	for _, p := range w.parts {
		w.risk.Reasons = append(w.risk.Reasons, p.reason)
	}
	return w.risk
}

func levelOf(score int) RiskLevel {
	switch {
	case score >= 80:
		return RiskCritical
	case score >= 50:
		return RiskHigh
	case score >= 25:
		return RiskMedium
	}
	return RiskLow
}

type riskPart struct {
	points int
	reason string
}

type riskWeighing struct {
	risk  ProgramRisk
	parts []riskPart
}

func (w *riskWeighing) addPart(points int, format string, args ...any) {
	if points <= 0 {
		return
	}
	w.risk.Score += points
	w.parts = append(w.parts, riskPart{points, fmt.Sprintf(format, args...)})
}

// weighTools adds points for tools: the full points for the tool with the most dangerous effect, and a few for each
// further tool with effects.
func (w *riskWeighing) weighTools(uses []UsedTool, unknown bool) {
	if len(uses) == 0 {
		return
	}
	names := map[core.EffectKind][]string{}
	for _, u := range uses {
		names[u.Effect.Kind] = append(names[u.Effect.Kind], u.Tool)
	}
	most, subject := uses[0], "it can call "
	if unknown {
		subject = fmt.Sprintf("it computes which of %d tools it calls, such as ", len(uses))
	}
	points := [...]int{weightRead, weightWrite, weightIrreversible}[most.Effect.Kind]
	w.addPart(points, "%s%s, %s: %s", subject, listNames(names[most.Effect.Kind]), effectMeanings[most.Effect.Kind], most.Effect.Reason)
	beyond := len(names[core.EffectWrite]) + len(names[core.EffectIrreversible])
	w.addPart(min(maxMore, weightMore*(beyond-1)), "%d tools do more than read", beyond)
	if unknown {
		w.addPart(weightUnknown, "which tools it calls is unknown before it runs")
	}
	w.weighLoops(uses)
	w.weighFlow(uses)
}

var effectMeanings = [...]string{"which only reads", "which changes something", "which is irreversible"}

func (w *riskWeighing) weighLoops(uses []UsedTool) {
	for _, u := range uses { // what goes furthest is first
		if u.Loop && u.Effect.Kind > core.EffectRead {
			w.addPart(weightLoop*int(u.Effect.Kind), "it may call %s many times", u.Tool)
			return
		}
	}
}

// weighFlow adds points if the program can read from one server and write to another.
func (w *riskWeighing) weighFlow(uses []UsedTool) {
	from, to := map[string]bool{}, ""
	for _, u := range uses {
		server, _, _ := strings.Cut(u.Tool, ".")
		if u.Effect.Kind == core.EffectRead {
			from[server] = true
		} else if to == "" {
			to = server
		}
	}
	delete(from, to)
	if to != "" && len(from) > 0 {
		w.addPart(weightAcross, "data that it reads elsewhere can be sent to %s", to)
	}
}

func (w *riskWeighing) weighFiles(m ProgramImpact) {
	if len(m.Writes) > 0 {
		w.addPart(weightWrites, "it writes %s", listNames(m.Writes))
	}
	if len(m.Deletes) > 0 {
		w.addPart(weightDeletes, "it deletes %s", listNames(m.Deletes))
	}
	w.addPart(min(maxDomains, weightDomain*len(m.Domains)), "it names %s", listNames(m.Domains))
}

// weighFindings adds points for the findings: the full points for the most severe finding, and a few for each further
// finding. It also adds points if a function has many branches.
func (w *riskWeighing) weighFindings(r RuleReport) {
	worst := -1
	for k, f := range r.Findings {
		if worst < 0 || f.Severity > r.Findings[worst].Severity {
			worst = k
		}
	}
	if worst >= 0 {
		f := r.Findings[worst]
		w.addPart(weightOf[min(f.Severity, Critical)], "%s", f.messageText())
		w.addPart(min(maxMore, weightMore*(len(r.Findings)-1)), "%d places are reported by rules", len(r.Findings))
	}
	if r.Complexity > complexFunction {
		w.addPart(weightComplex, "it has %d branches in one function", r.Complexity)
	}
}

// listNames returns a list as text for a message: the first three names, and how many others there are.
func listNames(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
