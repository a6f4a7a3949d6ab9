package core

import "slices"

// EffectKind says what a tool or a call may do: only read, write, or do something that cannot be taken back.
type EffectKind uint8

// Values of EffectKind, mildest first.
const (
	EffectRead         EffectKind = iota // nothing changes
	EffectWrite                          // something is made or changed
	EffectIrreversible                   // something is lost, sent, paid, published or run, which cannot be undone
)

func (k EffectKind) String() string {
	return [...]string{"read", "write", "irreversible"}[min(k, EffectIrreversible)]
}

// ParseEffect parses the name of an effect. It accepts "destructive" as another name of "irreversible", because files
// that were written by earlier versions contain it.
func ParseEffect(name string) (EffectKind, bool) {
	switch name {
	case "read":
		return EffectRead, true
	case "write":
		return EffectWrite, true
	case "irreversible", "destructive":
		return EffectIrreversible, true
	}
	return EffectIrreversible, false
}

// EffectName returns the present name of an effect that an earlier version may have written. It returns an unknown
// name unchanged.
func EffectName(name string) string {
	if k, ok := ParseEffect(name); ok {
		return k.String()
	}
	return name
}

// AnomalyIrreversible names the anomaly of many irreversible calls. Earlier versions called it "destructive_burst".
const AnomalyIrreversible = "irreversible_burst"

// AnomalyName returns the present name of a kind of anomaly that an earlier version may have written.
func AnomalyName(kind string) string {
	if kind == "destructive_burst" {
		return AnomalyIrreversible
	}
	return kind
}

// AnomalyAliases returns kinds of anomalies, or other names, with both names of a kind that was renamed if one of them
// is among them.
func AnomalyAliases(kinds []string) []string {
	for i, k := range kinds {
		if AnomalyName(k) == AnomalyIrreversible {
			return append(slices.Delete(slices.Clone(kinds), i, i+1), AnomalyIrreversible, "destructive_burst")
		}
	}
	return kinds
}

// EffectGrade says how grave an irreversible effect is. It is GradeNone for other effects.
type EffectGrade uint8

// Values of EffectGrade, mildest first.
const (
	GradeNone        EffectGrade = iota
	GradeSendInside              // a message or comment is posted in one's own workspace
	GradeSendOutside             // something is sent or published outside
	GradeOther                   // something is run, or it is not known what happens
	GradeDeletion                // something is deleted, revoked or overwritten
	GradeMoney                   // something is paid, ordered, sold or transferred
)

var gradeNames = []string{"", "send_inside", "send_outside", "other", "deletion", "money"}

func (g EffectGrade) String() string { return gradeNames[min(int(g), len(gradeNames)-1)] }

// EffectGrades lists the grades of irreversible effects, the gravest first.
func EffectGrades() []EffectGrade {
	return []EffectGrade{GradeMoney, GradeDeletion, GradeOther, GradeSendOutside, GradeSendInside}
}

// ParseGrade parses the name of a grade of irreversible effects.
func ParseGrade(name string) (EffectGrade, bool) {
	i := slices.Index(gradeNames, name)
	if i <= 0 {
		return GradeOther, false
	}
	return EffectGrade(i), true
}

// ParseEffectRule parses what a person says about the effect of a tool: the name of an effect, or the name of a grade,
// which means an irreversible effect of this grade.
func ParseEffectRule(name string) (EffectInfo, bool) {
	if g, ok := ParseGrade(name); ok {
		return EffectInfo{Kind: EffectIrreversible, Grade: g}, true
	}
	k, ok := ParseEffect(name)
	if !ok {
		return EffectInfo{}, false
	}
	e := EffectInfo{Kind: k}
	if k == EffectIrreversible {
		e.Grade = GradeOther
	}
	return e, true
}

// EffectInfo holds the effect of a tool or a call, and the reason for that classification.
type EffectInfo struct {
	Kind   EffectKind
	Grade  EffectGrade // of an irreversible effect
	Reason string      // a sentence without a subject's name: "its name says delete"
	Advice string      // a sentence that says how a person can change the classification; may be empty
}

// IsGraver reports whether e is more severe than o, by its kind and then by its grade.
func (e EffectInfo) IsGraver(o EffectInfo) bool {
	return e.Kind > o.Kind || e.Kind == o.Kind && e.Grade > o.Grade
}

// Explain returns one or two sentences that say what the subject, a tool or a call, does and why Retort thinks so. Its
// text can contain words of a server, so callers have to make it legible before they show it.
func (e EffectInfo) Explain(subject string) string {
	text := subject + " " + e.meaning() + " ("
	if e.Grade != GradeNone {
		text += e.Grade.String() + ": "
	}
	text += e.Reason + ")."
	if e.Advice != "" {
		text += " " + e.Advice
	}
	return text
}

func (e EffectInfo) meaning() string {
	switch {
	case e.Kind == EffectRead:
		return "only reads"
	case e.Kind == EffectWrite:
		return "changes something"
	}
	switch e.Grade {
	case GradeMoney:
		return "may move money or order something, which cannot be taken back"
	case GradeDeletion:
		return "deletes or replaces something that cannot be restored"
	case GradeSendOutside, GradeSendInside:
		return "sends something that cannot be taken back"
	}
	return "does something that cannot be undone"
}
