// Package effect judges how far a call of a tool goes: it only reads, it writes, or it does
// something that cannot be undone. It judges by the tool's definition and by the arguments,
// reads no files and no clock, and errs on the strict side.
package effect

import (
	"retort/internal/core"
)

// OfTool returns the effect of a tool by its name, its description and its annotations.
//
// The furthest verb of the name decides. The description can raise the effect. It decides
// alone if the name has no verb, and a tool that says nothing is taken to write.
// Annotations can raise the effect too. They lower it only if the server is trusted, because
// they are as much the server's claim as everything else that it sends.
func OfTool(t *core.Tool, trusted bool) core.EffectInfo {
	e := statedEffect(t)
	hinted, reason, ok := annotatedEffect(t.Annotations)
	switch {
	case !ok || hinted == e.Kind:
		return e
	case hinted > e.Kind, trusted:
		return core.EffectInfo{Kind: hinted, Reason: reason}
	}
	e.Reason += "; the server says otherwise, and is not trusted"
	return e
}

// annotatedEffect returns what MCP's annotations claim. ok is false if they claim nothing.
func annotatedEffect(a core.ToolAnnotations) (kind core.EffectKind, reason string, ok bool) {
	is := func(b *bool, v bool) bool { return b != nil && *b == v }
	switch {
	case is(a.ReadOnly, true): // the other hints mean nothing then
		return core.EffectRead, "the server says that it only reads", true
	case is(a.Destructive, true):
		return core.EffectDestructive, "the server says that it may destroy", true
	case is(a.Destructive, false):
		return core.EffectWrite, "the server says that it destroys nothing", true
	case is(a.ReadOnly, false):
		return core.EffectWrite, "the server says that it does not only read", true
	}
	return core.EffectWrite, "", false
}

// statedEffect returns the effect that a tool's name and description state.
func statedEffect(t *core.Tool) core.EffectInfo {
	name := judgeName(t.Name)
	about := judgeDescription(t.Description)
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
		return core.EffectInfo{Kind: about.kind, Reason: "its name says " + name.verb + ", and its description " + about.verb}
	}
	return core.EffectInfo{Kind: name.kind, Reason: "its name says " + name.verb}
}

// textJudgement describes what a text says about an effect.
type textJudgement struct {
	kind core.EffectKind
	verb string // the word or phrase that decides, "" if none does

	doubtful bool // of a name: the verb may be a noun: list_order
	guessed  bool // of a name that reads: a verb that is not known may be before it
	leads    bool // of a description: it begins with the verb
	raises   bool // of a description: the verb counts even if the name says less
}

// raiseEffect keeps the further one of two judgements.
func (j *textJudgement) raiseEffect(kind core.EffectKind, verb string, doubtful bool) {
	if j.verb == "" || kind > j.kind {
		j.kind, j.verb, j.doubtful = kind, verb, doubtful
	}
}
