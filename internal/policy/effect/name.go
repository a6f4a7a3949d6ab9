package effect

import (
	"strings"

	"retort/internal/run"
)

// judgeName finds the furthest verb of a tool's name. Words that are verbs and nouns, such as
// "order", count by their position: order_pizza orders, get_order does not.
func judgeName(name string) judgement {
	words := splitWords(name)
	if mixed, ok := mixesScripts(words); ok {
		return judgement{kind: run.EffectDestructive, verb: "a word of several alphabets, " + mixed}
	}
	j := judgement{kind: run.EffectRead}
	words = withoutMethod(words, &j)
	end := tail(words)
	reading := "" // the reading verb that the name begins with, after nouns at most
	for i, text := range words {
		w := withObject(lookup(text), words[i+1:])
		p := position{
			last: i == end-1, joined: i > 0 && connective[words[i-1]], made: i == end-1 && isMade(words, i),
			reading: reading, alone: reading == "" && j.verb == "",
		}
		if kind, doubtful, counts := w.counts(p); counts {
			j.raise(kind, w.verb, doubtful)
		}
		if w.class == reads && reading == "" && j.kind == run.EffectRead {
			reading = w.verb
		}
	}
	return readsNoun(j, words[:end])
}

// withObject gives verbs the class that they have with their object: resolve_library_id reads,
// resolve_incident writes.
func withObject(w word, rest []string) word {
	next := ""
	if len(rest) > 0 {
		next = strings.TrimSuffix(rest[0], "s")
	}
	switch {
	case w.verb == "resolve" && !identifiers[next], w.verb == "convert" && records[next], w.verb == "check" && (next == "in" || next == "out"):
		w.class = mayWrite
	}
	return w
}

// position is where a word stands in a name.
type position struct {
	last    bool   // but for what tail finds
	joined  bool   // after "and" or "or"
	made    bool   // after a verb that makes what follows: create_refund
	alone   bool   // no verb is before it
	reading string // the reading verb before it
}

// counts reports whether a word counts as a verb at its position, and how far it goes.
// doubtful says that it may be a noun.
func (w word) counts(p position) (kind run.EffectKind, doubtful, ok bool) {
	switch w.class {
	case destroys:
		return run.EffectDestructive, false, w.bare || p.alone
	case mayDestroy:
		return run.EffectDestructive, p.reading != "", p.alone || p.made || w.bare && (p.joined || w.follows(p))
	case writes:
		return run.EffectWrite, false, p.alone || w.bare && (p.joined || !onlyVerb[p.reading])
	case mayWrite:
		return run.EffectWrite, p.reading != "", p.alone || w.bare && (p.joined || w.follows(p))
	case reads:
		return run.EffectRead, false, true
	}
	return 0, false, false
}

// follows reports whether w, a noun or a verb, counts as a verb after a read verb. It does after
// words that are usually nouns themselves (snapshot_transfer_disk), and as the last word after
// words such as list and view (view_share). It does not after words that are only verbs
// (get_order), or in the middle of a name (list_trigger_types).
func (w word) follows(p position) bool {
	switch {
	case p.reading == "" || onlyVerb[p.reading]:
		return false
	case mostlyNoun[p.reading]:
		return true
	}
	return p.last && !documents[w.verb]
}

// isMade reports whether the last word, at i, is what a making verb names: create_order.
func isMade(words []string, i int) bool {
	return i > 0 && goods[lookup(words[i]).verb] && (making[words[0]] || making[words[i-1]])
}

// readsNoun lets a name only read that has a noun first and a reading verb last: order_get.
func readsNoun(j judgement, words []string) judgement {
	if len(words) < 2 || j.kind == run.EffectRead {
		return j
	}
	var first word
	for _, text := range words {
		switch w := lookup(text); {
		case w.class == destroys || w.class == writes || connective[text]:
			return j
		case first.verb == "":
			first = w
		}
	}
	last := lookup(words[len(words)-1])
	if onlyVerb[last.verb] || documents[first.verb] && last.class == reads || goods[first.verb] && listing[last.text] {
		return judgement{kind: run.EffectRead, verb: last.text}
	}
	return j
}

// withoutMethod judges names of an HTTP method and a path, such as API-post-page, and returns
// the words behind the method. Other methods are judged as verbs.
func withoutMethod(words []string, j *judgement) []string {
	if len(words) < 3 || words[0] != "api" || words[1] != "post" {
		return words
	}
	j.raise(run.EffectWrite, "post", false)
	return words[2:]
}

// tail returns how many words a name has before what says nothing of what it does: "by id",
// "all", a version.
func tail(words []string) int {
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
