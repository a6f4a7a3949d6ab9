package core

// EffectKind says what a tool or a call may do: only read, write, or destroy.
type EffectKind uint8

// Values of EffectKind, mildest first.
const (
	EffectRead        EffectKind = iota // nothing changes
	EffectWrite                         // something is made or changed
	EffectDestructive                   // something is lost, sent, paid, published or run, which cannot be undone
)

func (k EffectKind) String() string {
	return [...]string{"read", "write", "destructive"}[min(k, EffectDestructive)]
}

// EffectInfo holds the effect of a tool or a call, and the reason for that classification.
type EffectInfo struct {
	Kind   EffectKind
	Reason string // a sentence without a subject's name: "its name says delete"
}
