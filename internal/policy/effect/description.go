package effect

import (
	"slices"
	"strings"

	"retort/internal/core"
)

// maxDescription bounds how much of a description is judged, in bytes. The important statements come first, and some
// descriptions are whole manuals.
const maxDescription = 16 << 10

// finalPhrases contains phrases in descriptions that say that an action cannot be undone.
var finalPhrases = []string{
	"irreversibl", "irrevocabl", "irrecoverabl", "unrecoverabl", "cannot be undone", "can't be undone",
	"can not be undone", "cannot be reversed", "cannot be recovered",
	"no undo", "not reversible", "permanently delet", "permanently remov", "permanently eras", "permanently destroy",
	"permanent deletion", "destructive operation", "destructive action",
	"is destructive", "causes data loss", "lead to data loss", "will be lost", "without warning", "be overwritten",
	"is overwritten", "are overwritten",
	"will be gone", "is gone afterwards", "are gone afterwards", "is gone for good", "are gone for good", "for good", "beyond recovery",
	"completely overwrit", "overwrites the", "overwrites any", "overwrites all", "overwrites existing",
}

// wholePhrases contains phrases in descriptions which say that a call replaces something as a whole. They do not
// count if the description also says that something is kept.
var wholePhrases = []string{
	"replaces the entire", "replaces the whole", "replaces everything", "full replacement", "fully replace",
	"completely replace", "entirely replace",
}

// keeps contains phrases in descriptions which say that an update keeps whatever the caller omits.
var keeps = []string{
	"stays as it is", "stay as they are", "unchanged", "are kept", "is kept", "preserve", "left as is", "left alone",
	"not a full",
}

// omissions contains phrases in descriptions that refer to values which the caller omits.
var omissions = []string{"omitted", "not provided", "not specified", "not included", "left out", "missing"}

// defaults contains phrases in descriptions that say that omitted values are cleared or reset.
var defaults = []string{"default", "revert", "reset", "null", "clear", "remov", "delet", "empty"}

// judgeDescription returns the effect that a tool's description states. It considers the verb with which the
// description begins, further verbs that name actions of the tool, and phrases such as "irreversible".
func judgeDescription(text string) textJudgement {
	text = text[:min(len(text), maxDescription)]
	var j textJudgement
	for i, sentence := range splitSentences(text) {
		if i == 0 {
			j = leadingVerb(splitWords(sentence))
			for _, w := range listedVerbs(sentence) {
				j.addListedVerb(w)
			}
			for _, verb := range managedVerbs(splitWords(sentence)) {
				j.addFurtherVerb(verb)
			}
		}
		words := splitWords(sentence)
		for _, verb := range furtherVerbs(words, i == 0) {
			j.addFurtherVerb(verb)
		}
		j.grade = max(j.grade, gradeFurther(words))
		for _, verb := range sufferedVerbs(splitWords(sentence)) {
			j.addFurtherVerb(verb)
		}
	}
	low := strings.ToLower(text)
	if (strings.HasPrefix(j.verb, "replace") && j.leads && losesOmitted(low)) || containsAny(low, wholePhrases) && !containsAny(low, keeps) {
		j.addFurtherVerb("that it replaces what it is not given")
	}
	for _, phrase := range finalPhrases {
		if at := strings.Index(low, phrase); at >= 0 && !isNegated(splitWords(low[:at])) && !isPast(low[at+len(phrase):], phrase) {
			j.addFurtherVerb(phrase)
			break
		}
	}
	return j
}

// losesOmitted reports whether any sentence says that values which the caller omits are lost.
func losesOmitted(text string) bool {
	for _, sentence := range splitSentences(text) {
		if containsAny(sentence, omissions) && containsAny(sentence, defaults) {
			return true
		}
	}
	return false
}

func containsAny(text string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

// addListedVerb raises the judgement to the effect of a verb, if that is more severe. The verb comes from the list
// with which a description begins.
func (j *textJudgement) addListedVerb(w knownWord) {
	kind, grade := core.EffectWrite, j.grade
	if w.class >= mayDestroy {
		kind, grade = core.EffectIrreversible, max(grade, gradeDescribed([]string{w.verb}))
	}
	if j.grade = grade; w.class > reads && kind > j.kind {
		*j = textJudgement{kind: kind, grade: grade, verb: w.verb, raises: true}
	}
}

// listedVerbs returns the verbs of a sentence that begins with a list of them, such as "List,
// create or delete records".
func listedVerbs(sentence string) (verbs []knownWord) {
	parts := strings.Split(sentence, ",")
	if len(parts) == 1 || len(verbsOf(parts[0])) != 1 || len(splitWords(parts[0])) > 6 {
		return nil
	}
	for _, part := range parts {
		found := verbsOf(part)
		if len(found) == 0 {
			break
		}
		verbs = append(verbs, found...)
	}
	return verbs
}

// verbsOf returns the verbs with which one item of a list begins, such as both verbs of "close or select a tab". It
// returns none if the item begins with another word.
func verbsOf(part string) (verbs []knownWord) {
	for _, text := range splitWords(part) {
		w := lookupWord(text)
		switch {
		case connective[text] || len(verbs) == 0 && filler[text]:
		case w.class != unknown:
			verbs = append(verbs, w)
		default:
			return verbs
		}
	}
	return verbs
}

// addFurtherVerb makes the judgement irreversible, unless it already is. The argument verb is the reason: a
// irreversible verb with which the description names a further action of the tool.
func (j *textJudgement) addFurtherVerb(verb string) {
	j.grade = max(j.grade, gradeDescribed([]string{verb}))
	if !j.raises || j.kind < core.EffectIrreversible {
		j.kind, j.verb, j.raises, j.leads = core.EffectIrreversible, verb, true, false
	}
}

// isPast reports whether a phrase that was found in a description, such as "permanently delet", is part of an
// adjective, as in "permanently deleted rows". The argument rest is the text after the phrase.
func isPast(rest, phrase string) bool {
	return strings.HasPrefix(phrase, "permanently ") && (strings.HasPrefix(rest, "ed ") || strings.HasPrefix(rest, "ed."))
}

// gradeObject returns the grade that the verb with which words begin shows together with its object.
func gradeObject(words []string) core.EffectGrade {
	return gradeDescribed(append([]string{words[0]}, objectWords(words[1:])...))
}

// gradeFurther returns the grade of further actions that a sentence names in the third person, as in "posts a note and
// refunds the customer". They need not be certain enough to make the effect of a tool irreversible.
func gradeFurther(words []string) (grade core.EffectGrade) {
	for i, text := range words {
		w := lookupWord(text)
		if i > 0 && w.class >= mayDestroy && !w.bare && strings.HasSuffix(text, "s") && joining[words[i-1]] && !isNegated(words[:i]) {
			grade = max(grade, gradeWord(w))
		}
	}
	return grade
}

// splitSentences splits a text at the ends of sentences, lines and list items.
func splitSentences(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(".!?\n;:|()", r) })
}

// leadingVerb judges the first sentence of a description by the verb with which it begins. It skips introductions
// such as "Use this tool to".
func leadingVerb(words []string) textJudgement {
	for i, text := range words[:min(12, len(words))] {
		if filler[text] || strings.HasSuffix(text, "ly") {
			continue
		}
		w := withObject(lookupWord(text), nil, objectWords(words[i+1:]))
		switch {
		case making[w.verb] && goods[nounOf(lastOf(objectWords(words[i+1:])))]:
			return textJudgement{kind: core.EffectIrreversible, grade: gradeObject(words[i:]), verb: w.verb, leads: true, raises: true}
		case w.class == reads && (!mostlyNoun[w.verb] || text == "returns" || hasDeterminer(words, i)):
			return textJudgement{kind: core.EffectRead, verb: w.verb, leads: true}
		case w.class == writes || w.class == mayWrite && hasDeterminer(words, i):
			return textJudgement{kind: core.EffectWrite, verb: w.verb, leads: true, raises: true}
		case w.class == destroys || w.class == mayDestroy && hasDeterminer(words, i):
			return textJudgement{
				kind: core.EffectIrreversible, grade: gradeObject(words[i:]), verb: w.verb, leads: true, raises: !runsQuery(words[i:]),
			}
		}
		return textJudgement{}
	}
	return textJudgement{}
}

// objectWords returns the words of a verb's object without articles: hotel and room for "a hotel room given the
// dates".
func objectWords(words []string) (object []string) {
	for _, text := range words[:min(8, len(words))] {
		switch {
		case preposition[text] || connective[text] || clause[text]:
			return object
		case !determiner[text]:
			object = append(object, text)
		}
	}
	return object
}

func lastOf(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return words[len(words)-1]
}

// managedVerbs returns the irreversible verbs in a sentence that says what a tool manages, such as "Manages a list,
// including adding and deleting items".
func managedVerbs(words []string) (found []string) {
	if len(words) == 0 || !managing[lookupWord(words[0]).verb] {
		return nil
	}
	for i, text := range words {
		if w := lookupWord(text); w.class == destroys && !isNegated(words[:i]) && !strings.HasSuffix(text, "s") {
			found = append(found, w.verb)
		}
	}
	return found
}

// runsQuery reports whether the words begin with a verb whose object is a query, as in "Executes a SELECT query". The
// effect of such a call depends on the query.
func runsQuery(words []string) bool {
	if len(words) == 0 {
		return false
	}
	if verb := lookupWord(words[0]).verb; verb != "execute" && verb != "run" && verb != "evaluate" && verb != "send" {
		return false
	}
	for _, w := range words[1:min(8, len(words))] {
		if lookupWord(w).verb == "query" || w == "select" || w == "cypher" || w == "sql" || w == "search" || w == "statement" ||
			w == "statements" {
			return true
		}
	}
	return false
}

// hasDeterminer reports whether a determiner, such as an article, follows the word at i. If so, the word is a verb,
// as in "Posts a message", and not a noun, as in "Posts of a user".
func hasDeterminer(words []string, i int) bool {
	return i+1 < len(words) && determiner[words[i+1]]
}

// furtherVerbs returns the irreversible verbs that name further actions of the tool, as in "and deletes" or "will
// send". Verbs that are negated or have another subject do not count. At the beginning of a later sentence, a verb
// counts only in the third person, because an imperative may be an instruction to the model.
func furtherVerbs(words []string, first bool) []string {
	var found []string
	for i, text := range words {
		w := lookupWord(text)
		if w.class != destroys || isNegated(words[:i]) || runsQuery(words[i:]) {
			continue
		}
		third := !w.bare && strings.HasSuffix(text, "s")
		switch {
		case i == 0 && third, i > 0 && third && (joining[words[i-1]] || strings.HasSuffix(words[i-1], "ly")),
			i > 0 && third && loses[w.verb] && hasDeterminer(words, i),
			first && i > 0 && w.bare &&
				(connective[words[i-1]] || words[i-1] == "will" || strings.HasSuffix(words[i-1], "ly") && i > 1 && connective[words[i-2]]):
			found = append(found, w.verb)
		}
	}
	return found
}

// sufferedVerbs returns the irreversible verbs that say what something will suffer, as in "the file will be deleted".
func sufferedVerbs(words []string) (found []string) {
	for i, text := range words {
		stem, past := strings.CutSuffix(text, "ed")
		before := slices.DeleteFunc(slices.Clone(words[max(0, i-8):i]), func(w string) bool { return strings.HasSuffix(w, "ly") })
		if end := len(before); !past || end < 2 || before[end-1] != "be" || before[end-2] != "will" || isNegated(before) {
			continue
		}
		for _, verb := range []string{stem, stem + "e", stem[:max(0, len(stem)-1)]} { // unlinked, deleted, dropped
			if loses[verb] || verb == "unlink" || verb == "kill" {
				found = append(found, verb)
				break
			}
		}
	}
	return found
}

// isNegated reports whether one of the last five words before a verb negates it or gives it a subject other than the
// tool.
func isNegated(words []string) bool {
	for _, w := range words[max(0, len(words)-5):] {
		if negation[w] {
			return true
		}
	}
	return false
}

var (
	filler = wordSet(
		"this tool it use used to allows allow you can will lets a an the for api endpoint function method that which please performs perform provides provide enables ability tries attempts and or",
	)
	determiner = wordSet("a an the any your all this these those one some money each every multiple new specific given its it")
	joining    = wordSet("and or then also it that which will tool automatically")
	// clause contains words, such as "which" and "after", that begin a new clause or phrase and so end the object of
	// the verb before them.
	clause = wordSet("given based that which who whose when if where between about according through after before against within without over")
	// managing contains verbs, such as manage, that state the purpose of a tool instead of an action.
	managing = wordSet("manage handle work interact operate administer control maintain")
	// loses contains irreversible verbs that count anywhere in a sentence, if they are in the third person and have an
	// object: "the server revokes the old token".
	loses    = wordSet("delete remove revoke overwrite erase purge wipe destroy terminate drop invalidate discard truncate")
	negation = wordSet("not never no without cannot t non nor before until who whose when if unless instead avoid than rather")
)
