package effect

import (
	"slices"
	"strings"

	"retort/internal/core"
)

// judgeName returns the most severe effect of the verbs in a tool's name. A word that is both a verb and a noun, such
// as "order", is judged by its position: it is a verb in order_pizza and a noun in get_order.
func judgeName(name string) textJudgement {
	words := splitWords(name)
	if isOdd(name) {
		return textJudgement{
			kind: core.EffectIrreversible, grade: core.GradeMoney, verb: "something in letters that look like others",
		}
	}
	if mixed, ok := mixesScripts(words); ok {
		return textJudgement{kind: core.EffectIrreversible, grade: core.GradeMoney, verb: "a word of several alphabets, " + mixed}
	}
	j := judgeWords(words)
	if j.kind == core.EffectIrreversible {
		j.grade = gradeName(words, j.verb)
	}
	return j
}

// judgeWords judges the words of a name that has no odd letters, without its grade.
func judgeWords(words []string) textJudgement {
	j := textJudgement{kind: core.EffectRead}
	words = withoutMethod(words, &j)
	if slices.Contains(words, "force") && slices.Contains(words, "push") {
		j.raiseEffect(core.EffectIrreversible, "force push", false)
	}
	if verb := findPhrase(words); verb != "" {
		j.raiseEffect(core.EffectIrreversible, verb, false)
	}
	if verb := scatteredVerb(words); verb != "" {
		j.raiseEffect(core.EffectIrreversible, verb, false)
	}
	end := significantLength(words)
	reading := "" // the reading verb that the name begins with, after nouns at most
	for i, text := range words {
		w := withObject(lookupInName(text), words[:i], words[i+1:])
		p := wordPosition{
			last: i == end-1, joined: i > 0 && connective[words[i-1]], made: i == end-1 && isMade(words, i),
			reading: reading, alone: reading == "" && j.verb == "",
		}
		if p.made && w.class < mayDestroy {
			w.class, w.verb = mayDestroy, text
		}
		if kind, doubtful, counts := w.effectAt(p); counts {
			j.raiseEffect(kind, w.verb, doubtful)
		}
		if w.class == reads && reading == "" && j.kind == core.EffectRead {
			reading, j.guessed = w.verb, isGuess(words, i)
		}
	}
	return readsNoun(j, words, end)
}

// scatteredVerb returns the irreversible verb that an unknown word forms together with the words after it, as in
// de-lete or d_e_l_e_t_e.
func scatteredVerb(words []string) string {
	for i := range words {
		if lookupWord(words[i]).class != unknown {
			continue
		}
		whole := ""
		for _, text := range words[i:min(len(words), i+10)] {
			if len(whole)+len(text) > len("decommission") {
				break
			}
			whole += text
			if whole != text && slices.Contains(gluedVerbs, whole) {
				return whole
			}
		}
	}
	return ""
}

// isGuess reports whether it is only a guess that the word at i is a reading verb, as in frobnicate_search_index.
// That is so if the word can also be a noun and the first word of the name is unknown. If a verb such as get directly
// follows, it is no guess.
func isGuess(words []string, i int) bool {
	verb := lookupWord(words[i]).verb
	noun := mostlyNoun[verb] || alsoNoun[verb]
	return noun && i > 0 && i < len(words)-1 && lookupWord(words[0]).class == unknown && !asks[words[i+1]]
}

// maxObject bounds how many words after a verb are searched for its object.
const maxObject = 8

// withObject returns the verb w with the class that it has together with its object. For example, resolve_library_id
// reads, resolve_incident writes, and rotate_secret destroys the old secret. The object consists of the words after
// the verb. If no word follows, it is the word before the verb, as in secret_rotate.
func withObject(w knownWord, before, rest []string) knownWord {
	rest = rest[:min(len(rest), maxObject)]
	next, object := "", objectOf(rest)
	if len(rest) > 0 {
		next = singularOf(rest[0])
	}
	objects := rest[:objectEnd(rest)]
	if object == "" && len(before) > 0 {
		object, objects = singularOf(before[len(before)-1]), before[len(before)-1:]
	}
	switch {
	case w.verb == "resolve" && !identifiers[next], w.verb == "convert" &&
		(records[next] || media[object]), w.verb == "sign" && particles[next],
		w.verb == "respond" && hasAny(rest, invitations), w.verb == "check" && (next == "in" || next == "out"):
		w.class = mayWrite
	case w.verb == "track" && shipments[object]:
		w.class = reads
	case renewing[w.verb] && hasAny(objects, credentials), w.verb == "restore" && hasAny(objects, stores), starting[w.verb] && works[object],
		w.verb == "apply" && (next == "" || plans[next]), w.verb == "push" && next == "force", isIrreversible(w.verb, object), goesLive(w, rest):
		w.class = destroys
	}
	return w
}

// finals lists verbs that are irreversible only together with certain nouns, such as "merge" with "contact".
var finals = []struct{ verbs, objects map[string]bool }{
	{wordSet("disable suspend"), accounts},
	{wordSet("merge"), merged},
	{wordSet("submit file cast apply lodge"), submissions},
	{wordSet("book reserve"), bookings},
	{wordSet("process"), wordSet("transaction payment order refund claim")},
	{wordSet("renew"), renewals},
	{wordSet("open unlock"), doors},
	{wordSet("format initialize initialise init"), devices},
	{wordSet("detach disconnect"), attached},
	{wordSet("flash burn"), firmware},
	{wordSet("rewrite amend alter edit replace"), histories},
	{wordSet("fire"), accounts},
	{wordSet("sunset"), wordSet("api service feature version product model site app")},
	{wordSet("close exit"), wordSet("position trade account")},
}

// isIrreversible reports whether a verb is irreversible with the given object.
func isIrreversible(verb, object string) bool {
	for _, f := range finals {
		if f.verbs[verb] && f.objects[object] {
			return true
		}
	}
	return false
}

// goesLive reports whether a writing verb makes something available to its users, as in promote_to_production.
func goesLive(w knownWord, rest []string) bool {
	for i, text := range rest {
		if (text == "production" || text == "prod" || text == "live") && (w.class == mayWrite || w.class == writes) && i == len(rest)-1 {
			return i == 0 && text == "live" || i > 0 && preposition[rest[i-1]]
		}
	}
	return false
}

// hasAny reports whether any of the words, in the singular, is in the set nouns.
func hasAny(words []string, nouns map[string]bool) bool {
	return slices.ContainsFunc(words, func(text string) bool { return nouns[singularOf(text)] })
}

// objectOf returns the last word of a verb's object in the singular, such as job for start_nightly_job_by_id. The
// argument rest holds the words that follow the verb.
func objectOf(rest []string) string {
	if end := objectEnd(rest); end > 0 {
		return singularOf(rest[end-1])
	}
	return ""
}

// objectEnd returns how many of the words after a verb belong to its object.
func objectEnd(rest []string) int {
	if len(rest) == 0 || preposition[rest[0]] {
		return 0
	}
	return significantLength(rest)
}

func singularOf(text string) string { return strings.TrimSuffix(text, "s") }

// wordPosition describes the position of a word in a name and the words before it.
type wordPosition struct {
	last    bool   // but for what tail finds
	joined  bool   // after "and" or "or"
	made    bool   // after a verb that makes what follows: create_refund
	alone   bool   // no verb is before it
	reading string // the reading verb before it
}

// effectAt reports whether a word counts as a verb at its position in a name, and returns its effect. doubtful is
// true if the word may be a noun.
func (w knownWord) effectAt(p wordPosition) (kind core.EffectKind, doubtful, ok bool) {
	switch w.class {
	case destroys:
		return core.EffectIrreversible, false, w.bare || p.alone
	case mayDestroy:
		return core.EffectIrreversible, p.reading != "" || w.isPlural(), p.alone || p.made || w.bare && (p.joined || w.countsAfterVerb(p))
	case writes:
		return core.EffectWrite, false, p.alone || w.bare && (p.joined || !onlyVerb[p.reading])
	case mayWrite:
		return core.EffectWrite, p.reading != "" || w.isPlural(), p.alone || w.bare && (p.joined || w.countsAfterVerb(p))
	case reads:
		return core.EffectRead, false, true
	}
	return 0, false, false
}

// countsAfterVerb reports whether w, which can be a noun or a verb, counts as a verb after a reading word. That
// depends on the reading word. If it is usually a noun, w is a verb, as in snapshot_transfer_disk. If it can only be
// a verb, w is a noun, as in get_order. Otherwise, w is a verb only at the end of a name (view_share) and not in the
// middle of it (list_trigger_types).
func (w knownWord) countsAfterVerb(p wordPosition) bool {
	switch {
	case p.reading == "" || onlyVerb[p.reading]:
		return false
	case mostlyNoun[p.reading]:
		return true
	}
	return p.last && !documents[w.verb]
}

// isPlural reports whether w, which can be a noun or a verb, looks like the plural of the noun, as in orders.
func (w knownWord) isPlural() bool { return !w.bare && strings.HasSuffix(w.text, "s") }

// isMade reports whether a name says that the thing named by the word at i is created or changed, as in create_order
// and modify_order. The verb may also follow its object, as in payments_create; then the word at i is the verb.
func isMade(words []string, i int) bool {
	if i == 0 {
		return false
	}
	noun, verb := nounOf(words[i]), words[i-1]
	if making[words[i]] || changing[words[i]] {
		noun, verb = nounOf(words[i-1]), words[i]
	}
	return goods[noun] && (making[words[0]] || making[verb]) || commitments[noun] && (changing[words[0]] || changing[verb])
}

// nounOf returns the singular of a word that is used as a noun.
func nounOf(text string) string {
	if w := lookupWord(text); w.verb != "" {
		return w.verb
	}
	return singularOf(text)
}

// readsNoun changes the judgement to reading if the name begins with a noun that a reading verb follows. This verb is
// at the end of the name (order_get) or directly after the noun (order_get_status). The argument end is the number of
// words in the name without an insignificant tail such as "by id".
func readsNoun(j textJudgement, words []string, end int) textJudgement {
	if end < 2 || j.kind == core.EffectRead {
		return j
	}
	var first knownWord
	reading := "" // the reading verb behind a noun
	for i, text := range words {
		w := withObject(lookupInName(text), words[:i], words[i+1:])
		noun := documents[w.verb] || goods[w.verb] || nominal[w.verb]
		switch {
		case w.class == destroys || w.class == writes || connective[text]:
			return j
		case noun && i+1 < len(words) && asks[words[i+1]]:
			reading = words[i+1]
		case (w.class == mayWrite || w.class == mayDestroy) && !noun && i+1 < len(words):
			return j
		}
		if first.verb == "" {
			first = w
		}
	}
	last := lookupWord(words[end-1])
	switch noun := documents[first.verb] || goods[first.verb] || nominal[first.verb]; {
	case noun && onlyVerb[last.verb] || documents[first.verb] && last.class == reads || goods[first.verb] && listing[last.text]:
		return textJudgement{kind: core.EffectRead, verb: last.text}
	case reading != "":
		return textJudgement{kind: core.EffectRead, verb: reading}
	}
	return j
}

// withoutMethod removes the beginning "API-post" of a name such as API-post-page, which consists of an HTTP method
// and a path, and records a write. Other methods, such as DELETE, stay in the name and are judged like verbs.
func withoutMethod(words []string, j *textJudgement) []string {
	if len(words) < 3 || words[0] != "api" || words[1] != "post" {
		return words
	}
	j.raiseEffect(core.EffectWrite, "post", false)
	return words[2:]
}

// significantLength returns the number of words in a name before an insignificant tail such as "by id", "all" or a
// version.
func significantLength(words []string) int {
	end := len(words)
	for i, w := range words {
		if i > 0 && preposition[w] {
			end = i
			break
		}
	}
	for end > 1 && (trailing[words[end-1]] || strings.Trim(strings.TrimPrefix(words[end-1], "v"), "0123456789") == "") {
		end--
	}
	return end
}
