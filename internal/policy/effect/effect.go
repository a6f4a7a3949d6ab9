// Package effect determines how severe the effect of a tool call is: it only reads, it writes, or it is irreversible
// (it cannot be undone), which has grades. The judgement uses only the tool's definition and the arguments. It reads no files and no
// clock. In cases of doubt it chooses the more severe effect.
package effect

import (
	"retort/internal/core"
)

// OfTool returns the effect of a tool according to its name, description and annotations. If the name contains
// several verbs, the verb with the most severe effect decides. The description can make the effect more severe, and
// it decides alone if the name has no verb. A tool without any verb counts as writing. Annotations can make the
// effect more severe, too. They can make it milder only if the server is trusted, because they are unverified claims
// of the server.
func OfTool(t *core.Tool, trusted bool) core.EffectInfo {
	stated := statedEffect(t)
	e := stated
	hinted, reason, ok := annotatedEffect(t.Annotations)
	switch {
	case !ok || hinted == e.Kind:
		return e
	case hinted > e.Kind, trusted:
		e = core.EffectInfo{Kind: hinted, Reason: reason}
		if hinted == core.EffectIrreversible {
			e.Grade = max(stated.Grade, gradeUnsaid(t))
		}
		return e
	}
	e.Advice = adviseTrust(t.Server, hinted)
	return e
}

// adviseTrust returns the sentence that says why a milder annotation of a server does not count, and what to do.
func adviseTrust(server string, claimed core.EffectKind) string {
	claim := "The server marks it as safe"
	if claimed == core.EffectRead {
		claim = "The server says that it only reads"
	}
	return claim + ", but you have not marked this server as trusted: set `servers." + server + ".trusted: true`."
}

// annotatedEffect returns the effect that the MCP annotations claim. ok is false if they make no claim.
func annotatedEffect(a core.ToolAnnotations) (kind core.EffectKind, reason string, ok bool) {
	is := func(b *bool, v bool) bool { return b != nil && *b == v }
	switch {
	case is(a.ReadOnly, true): // the other hints mean nothing then
		return core.EffectRead, "the server says that it only reads", true
	case is(a.Destructive, true):
		return core.EffectIrreversible, "the server says that it may destroy", true
	case is(a.Destructive, false):
		return core.EffectWrite, "the server says that it destroys nothing", true
	case is(a.ReadOnly, false):
		return core.EffectWrite, "the server says that it does not only read", true
	}
	return core.EffectWrite, "", false
}

// statedEffect returns the effect according to a tool's name and description, with the word that decides as the
// reason. The grade of an irreversible effect follows from the name and from the names of the arguments. The
// description can only make it graver, because a server may describe a payment as an internal note.
func statedEffect(t *core.Tool) core.EffectInfo {
	name := judgeName(t.Name)
	about := judgeDescription(t.Description)
	e := mostSevere(name, about)
	if e.Kind == core.EffectIrreversible {
		e.Grade = gradeTool(t, name, about)
	}
	return e
}

// mostSevere returns the effect that follows from the judgements of a tool's name and description.
func mostSevere(name, about textJudgement) core.EffectInfo {
	switch {
	case name.verb == "" && about.verb == "":
		return core.EffectInfo{Kind: max(core.EffectWrite, about.kind), Reason: "nothing says what it does"}
	case name.verb == "":
		return core.EffectInfo{Kind: about.kind, Reason: "its description says " + about.verb}
	case name.kind > core.EffectRead && name.doubtful && about.leads && about.kind == core.EffectRead:
		return core.EffectInfo{Kind: core.EffectRead, Reason: "its description says " + about.verb}
	case name.kind == core.EffectRead && name.guessed && !(about.leads && about.kind == core.EffectRead):
		return core.EffectInfo{Kind: max(core.EffectWrite, about.kind), Reason: "its name may have a verb that is not known before " + name.verb}
	case about.kind > name.kind && about.raises:
		return core.EffectInfo{Kind: about.kind, Reason: "its name says " + name.verb + ", and its description says " + about.verb}
	}
	return core.EffectInfo{Kind: name.kind, Reason: "its name says " + name.verb}
}

// textJudgement holds the effect that a name, a description or an argument suggests.
type textJudgement struct {
	kind  core.EffectKind
	grade core.EffectGrade // the gravest that any irreversible part has
	verb  string           // the word or phrase that decides, "" if none does

	doubtful bool // of a name: the verb may be a noun: list_order
	guessed  bool // of a name that reads: a verb that is not known may be before it
	leads    bool // of a description: it begins with the verb
	raises   bool // of a description: the verb counts even if the name says less
	strange  bool // of a query: it has a statement that is not known
}

// raiseEffect replaces the judgement if the given effect is more severe, or if there is no judgement yet.
func (j *textJudgement) raiseEffect(kind core.EffectKind, verb string, doubtful bool) {
	if kind == core.EffectIrreversible {
		j.grade = max(j.grade, gradeText(verb))
	}
	if j.verb == "" || kind > j.kind {
		j.kind, j.verb, j.doubtful = kind, verb, doubtful
	}
}

// raiseJudgement works like raiseEffect, with the effect of another judgement.
func (j *textJudgement) raiseJudgement(o textJudgement) {
	j.grade, j.strange = max(j.grade, o.grade), j.strange || o.strange
	if j.verb == "" || o.kind > j.kind {
		j.kind, j.verb, j.doubtful = o.kind, o.verb, false
	}
}
