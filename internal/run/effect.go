package run

import (
	"fmt"
	"strings"
	"unicode"
)

// EffectKind is how far the effects of a tool go.
type EffectKind uint8

// The kinds of effects, mildest first.
const (
	EffectRead        EffectKind = iota // the world is as before
	EffectWrite                         // something is made or changed
	EffectDestructive                   // something is lost, sent, paid, published or run: it cannot be taken back
)

func (k EffectKind) String() string {
	return [...]string{"read", "write", "destructive"}[min(k, EffectDestructive)]
}

// Effect is what calls of a tool may do to the world, and how that is known.
type Effect struct {
	Kind   EffectKind
	Reason string // in words: "its name says delete"
}

// EffectOf finds the effect of a tool. The verbs of its name decide, else those
// that its description begins with; a tool that says nothing is taken to write.
// What the server hints can raise the effect, and lower it only if the server is
// trusted: the hint is as much the server's word as everything that it does.
func EffectOf(t *Tool, trusted bool) Effect {
	e := spoken(t)
	hinted, why, ok := hint(t.Annotations)
	switch {
	case !ok || hinted == e.Kind:
		return e
	case hinted > e.Kind, trusted:
		return Effect{hinted, why}
	}
	e.Reason += "; the server says otherwise, and is not trusted"
	return e
}

// hint is what MCP's annotations say, if they say anything.
func hint(a Annotations) (EffectKind, string, bool) {
	is := func(b *bool, v bool) bool { return b != nil && *b == v }
	switch {
	case is(a.ReadOnly, true):
		return EffectRead, "the server says that it only reads", true
	case is(a.Destructive, true):
		return EffectDestructive, "the server says that it may destroy", true
	case is(a.Destructive, false):
		return EffectWrite, "the server says that it destroys nothing", true
	case is(a.ReadOnly, false):
		return EffectWrite, "the server says that it does not only read", true
	}
	return EffectWrite, "", false
}

// spoken is the effect that the words of a tool tell of.
func spoken(t *Tool) Effect {
	name := words(t.Name)
	if kind, verb, ok := firstVerb(name); ok {
		for i, w := range name { // get_or_create, search_and_replace
			if k, known := verbs[w]; known && k > kind && i > 0 && (name[i-1] == "or" || name[i-1] == "and") {
				kind, verb = k, w
			}
		}
		if last := final(t.Description); kind == EffectWrite && last != "" {
			return Effect{EffectDestructive, fmt.Sprintf("its name says %s, and its description %s", verb, last)}
		}
		return Effect{kind, "its name says " + verb}
	}
	sentence, _, _ := strings.Cut(t.Description, ".")
	said := words(sentence)
	if kind, verb, ok := firstVerb(said[:min(12, len(said))]); ok {
		return Effect{kind, "its description says " + verb}
	}
	return Effect{EffectWrite, "nothing says what it does"}
}

// final is a word of a description that says that nothing can be taken back.
func final(description string) string {
	low := strings.ToLower(description)
	for _, w := range []string{"irreversibl", "permanently", "cannot be undone", "can't be undone"} {
		if strings.Contains(low, w) {
			return w
		}
	}
	return ""
}

func firstVerb(words []string) (EffectKind, string, bool) {
	for _, w := range words {
		for _, form := range forms(w) {
			if kind, ok := verbs[form]; ok {
				return kind, form, true
			}
		}
	}
	return EffectWrite, "", false
}

// forms are a word and what it may be a form of: deletes, deleting.
func forms(w string) []string {
	list := []string{w}
	for _, ending := range []struct{ cut, put string }{{"ies", "y"}, {"es", "e"}, {"s", ""}, {"es", ""}, {"ing", ""}, {"ing", "e"}} {
		if stem, ok := strings.CutSuffix(w, ending.cut); ok && len(stem) > 1 {
			list = append(list, stem+ending.put)
		}
	}
	return list
}

// words splits a name or text: listIssues, list_issues, API-post-search.
func words(s string) []string {
	var b strings.Builder
	var before rune
	for _, r := range s {
		if unicode.IsUpper(r) && unicode.IsLower(before) {
			b.WriteByte(' ')
		}
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			b.WriteRune(unicode.ToLower(r))
		} else {
			b.WriteByte(' ')
		}
		before = r
	}
	return strings.Fields(b.String())
}

// verbs says what tools do whose names have them.
var verbs = verbKinds(map[EffectKind]string{
	EffectRead: `list get search find read fetch query lookup describe show view count check compare download export inspect preview validate
		verify summarize summarise analyze analyse calculate compute convert parse resolve scrape crawl extract browse explore retrieve recall
		wait diff snapshot screenshot estimate glob grep whoami echo ping tree info stat return access help load monitor trace profile detect`,
	EffectWrite: `create update add set put write edit insert append upload save modify patch rename move copy assign unassign label tag comment
		mark star fork merge close reopen open start stop enable disable subscribe unsubscribe invite upsert import sync register link attach detach
		schedule reschedule book pin unpin follow approve complete archive restore configure click type fill press navigate hover drag resize log
		make store record change replace generate build submit duplicate install toggle emulate handle select connect manage join leave draft
		provision`,
	EffectDestructive: `delete remove drop destroy purge wipe erase truncate clear reset revoke terminate kill uninstall unpublish refund pay charge
		transfer send publish post notify broadcast tweet deploy execute run exec eval evaluate invoke cancel overwrite rollback withdraw
		deactivate ban forget expire prune unlink migrate trigger dispatch reply forward buy sell order purchase share`,
})

func verbKinds(lists map[EffectKind]string) map[string]EffectKind {
	m := map[string]EffectKind{}
	for _, kind := range []EffectKind{EffectDestructive, EffectWrite, EffectRead} { // what is in two lists is the milder
		for _, verb := range strings.Fields(lists[kind]) {
			m[verb] = kind
		}
	}
	return m
}
