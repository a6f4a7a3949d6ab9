package rules

// Severity is how grave a finding is.
type Severity uint8

// The severities, mildest first.
const (
	Info     Severity = iota + 1 // worth a note
	Low                          // has ordinary uses
	Medium                       // has none in most programs, and can do little harm in a sandbox
	High                         // aims at more than a program is given, or destroys
	Critical                     // has no purpose but harm
)

var severityNames = []string{"", "info", "low", "medium", "high", "critical"}

func (s Severity) String() string { return severityNames[min(int(s), len(severityNames)-1)] }

// Level says how strictly programs are judged.
type Level uint8

// The levels, weakest first. The zero Level is Standard.
const (
	Standard Level = iota
	Permissive
	Strict // high
	Maximum
)

// Networked is added to a level where programs have a network, so that to use it is ordinary.
const Networked Level = 1 << 7

// Commanding is added where programs may start commands, so that to do it is ordinary.
const Commanding Level = 1 << 6

// strictness is a level without what was added to it.
func (l Level) strictness() int { return int(l &^ (Networked | Commanding)) }

// LevelOf is the level that the settings call by a name; Standard if there is none.
func LevelOf(name string) Level {
	for l, n := range levelNames {
		if n == name {
			return Level(l)
		}
	}
	return Standard
}

var levelNames = []string{"standard", "permissive", "high", "maximum"}

func (l Level) String() string { return levelNames[min(l.strictness(), len(levelNames)-1)] }

// Action is what becomes of a program because of a finding.
type Action uint8

// The actions.
const (
	Ignore Action = iota
	Warn
	Deny
)

var actionNames = []string{"ignore", "warn", "deny"}

func (a Action) String() string { return actionNames[min(int(a), len(actionNames)-1)] }

// actions is the whole table of what each level makes of each severity.
var actions = [...][6]Action{
	//          -       info    low     medium  high   critical
	Permissive: {Ignore, Ignore, Ignore, Warn, Warn, Warn},
	Standard:   {Ignore, Ignore, Ignore, Warn, Deny, Deny},
	Strict:     {Ignore, Ignore, Warn, Deny, Deny, Deny},
	Maximum:    {Ignore, Warn, Deny, Deny, Deny, Deny},
}

// On is what the level makes of a severity.
func (l Level) On(s Severity) Action {
	return actions[min(l.strictness(), len(actions)-1)][min(s, Critical)]
}

// of is what the level makes of a finding.
func (l Level) of(f Finding) Action {
	if l&Networked != 0 && f.Rule == "network.fetch" {
		return l.On(min(f.Severity, Low))
	}
	if l&Commanding != 0 && f.Rule == "process.command" {
		return l.On(min(f.Severity, Low))
	}
	return l.On(f.Severity)
}
