package core

// EffectKind says how far the effects of a tool or a call go.
type EffectKind uint8

// Kinds of effects, mildest first.
const (
	EffectRead        EffectKind = iota // nothing changes
	EffectWrite                         // something is made or changed
	EffectDestructive                   // something is lost, sent, paid, published or run, which cannot be undone
)

func (k EffectKind) String() string {
	return [...]string{"read", "write", "destructive"}[min(k, EffectDestructive)]
}

// EffectInfo is the effect of a tool or a call, and the source of that judgement.
type EffectInfo struct {
	Kind   EffectKind
	Reason string // a sentence without a subject's name: "its name says delete"
}
