package rules

// RuleSeverity says how grave a finding is.
type RuleSeverity uint8

// The severities, mildest first.
const (
	Info     RuleSeverity = iota + 1 // worth a note
	Low                              // has ordinary uses
	Medium                           // has none in most programs, and can do little harm in a sandbox
	High                             // aims at more than a program is given, or destroys
	Critical                         // has no purpose but harm
)

var severityNames = []string{"", "info", "low", "medium", "high", "critical"}

func (s RuleSeverity) String() string { return severityNames[min(int(s), len(severityNames)-1)] }

// StrictnessLevel says how strictly programs are judged.
type StrictnessLevel uint8

// The levels of strictness. The zero value is Standard.
const (
	Standard StrictnessLevel = iota
	// Permissive refuses no program. It only warns of findings of medium and higher severity.
	Permissive
	Strict // high
	Maximum
)

// Networked is a flag that is added to a level if programs have network access. Using the network then counts as a
// finding of low severity.
const Networked StrictnessLevel = 1 << 7

// Commanding is a flag that is added to a level if programs may start commands. Starting commands then counts as a
// finding of low severity.
const Commanding StrictnessLevel = 1 << 6

// baseLevel returns the level without Networked and Commanding.
func (l StrictnessLevel) baseLevel() int { return int(l &^ (Networked | Commanding)) }

// LevelOf returns the level with this name in the settings. For an unknown name it returns Standard.
func LevelOf(name string) StrictnessLevel {
	for l, n := range levelNames {
		if n == name {
			return StrictnessLevel(l)
		}
	}
	return Standard
}

var levelNames = []string{"standard", "permissive", "high", "maximum"}

func (l StrictnessLevel) String() string { return levelNames[min(l.baseLevel(), len(levelNames)-1)] }

// FindingAction says what happens to a program because of a finding: nothing, a warning or a refusal.
type FindingAction uint8

// The actions, mildest first.
const (
	Ignore FindingAction = iota
	Warn
	Deny
)

var actionNames = []string{"ignore", "warn", "deny"}

func (a FindingAction) String() string { return actionNames[min(int(a), len(actionNames)-1)] }

// actionTable maps each level and severity to an action.
var actionTable = [...][6]FindingAction{
	//          -       info    low     medium  high   critical
	Permissive: {Ignore, Ignore, Ignore, Warn, Warn, Warn},
	Standard:   {Ignore, Ignore, Ignore, Warn, Deny, Deny},
	Strict:     {Ignore, Ignore, Warn, Deny, Deny, Deny},
	Maximum:    {Ignore, Warn, Deny, Deny, Deny, Deny},
}

// ActionFor returns what happens to programs with findings of severity s at this level.
func (l StrictnessLevel) ActionFor(s RuleSeverity) FindingAction {
	return actionTable[min(l.baseLevel(), len(actionTable)-1)][min(s, Critical)]
}

// findingAction returns the level's action for a finding. In contrast to ActionFor, it takes the flags Networked and
// Commanding into account.
func (l StrictnessLevel) findingAction(f RuleFinding) FindingAction {
	if l&Networked != 0 && f.Rule == "network.fetch" {
		return l.ActionFor(min(f.Severity, Low))
	}
	if l&Commanding != 0 && f.Rule == "process.command" {
		return l.ActionFor(min(f.Severity, Low))
	}
	return l.ActionFor(f.Severity)
}
