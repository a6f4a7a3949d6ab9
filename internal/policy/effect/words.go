package effect

import (
	"strings"
	"unicode"
)

// splitWords splits a name or a text into lower-case words. It handles listIssues, list_issues, API-post-search and
// HTTPDelete. Full-width letters become ordinary ones.
func splitWords(s string) []string {
	var b strings.Builder
	runes := []rune(s)
	for i, r := range runes {
		if r >= 0xFF01 && r <= 0xFF5E {
			r -= 0xFEE0
			runes[i] = r
		}
		switch {
		case unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Cf, r):
			continue // an accent or something invisible does not end a word
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			b.WriteByte(' ')
			continue
		case i > 0 && unicode.IsUpper(r) && startsWord(runes, i):
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.Fields(b.String())
}

// startsWord reports whether the capital at i starts a word, like the D of listDrafts and of HTTPDelete, but unlike
// the D of IDs.
func startsWord(runes []rune, i int) bool {
	if !unicode.IsUpper(runes[i-1]) {
		return true
	}
	lower := i+1 < len(runes) && unicode.IsLower(runes[i+1])
	plural := lower && runes[i+1] == 's' && (i+2 == len(runes) || !unicode.IsLower(runes[i+2]))
	return lower && !plural
}

// mixesScripts returns the first word that mixes Latin letters with letters of another alphabet. The second result is
// false if there is no such word. The word probably imitates another one, like "dеlete" with a Cyrillic letter.
func mixesScripts(words []string) (string, bool) {
	for _, w := range words {
		latin, other := false, false
		for _, r := range w {
			latin = latin || r < unicode.MaxASCII && unicode.IsLetter(r)
			other = other || unicode.In(r, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee)
		}
		if latin && other {
			return w, true
		}
	}
	return "", false
}

// knownWord holds a word of a name or text and what the lexicon says about it.
type knownWord struct {
	text  string
	verb  string // the verb that it is a form of, or ""
	class wordClass
	bare  bool // it is the verb itself: delete, not deletes or deleting
}

// withoutBlanks reports whether a letter belongs to a script that puts no spaces between words.
func withoutBlanks(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// lookupWord returns the verb that a word contains and its class. For example, it finds delete in "deletes",
// "deleting" and "deleteuser".
func lookupWord(text string) knownWord {
	for _, f := range wordForms(text) {
		if c, ok := lexicon()[f]; ok {
			return knownWord{text, f, c, f == text}
		}
	}
	if verb := gluedVerb(text); verb != "" {
		return knownWord{text, verb, destroys, true}
	}
	return knownWord{text: text}
}

// wordForms returns a word and the base forms from which it may be derived, such as delete for deletes.
func wordForms(w string) []string {
	list := []string{w}
	for _, ending := range []struct{ cut, put string }{{"ies", "y"}, {"es", "e"}, {"s", ""}, {"es", ""}, {"ing", ""}, {"ing", "e"}} {
		if stem, ok := strings.CutSuffix(w, ending.cut); ok && len(stem) > 1 {
			list = append(list, stem+ending.put)
		}
	}
	return list
}

// gluedVerb returns the irreversible verb with which a word begins or ends, as in deleteuser or tabledrop. Inflected
// forms such as "deleted" do not count. In scripts without spaces between words, the verb may be anywhere.
func gluedVerb(text string) string {
	if strings.ContainsFunc(text, withoutBlanks) {
		for _, verb := range ideographicVerbs {
			if strings.Contains(text, verb) {
				return verb
			}
		}
	}
	for _, verb := range gluedVerbs {
		rest, begins := strings.CutPrefix(text, verb)
		if !begins {
			if rest, begins = strings.CutSuffix(text, verb); begins && (rest == "un" || rest == "non") {
				begins = false
			}
		}
		if begins && len(rest) > 2 && !inflected[rest] {
			return verb
		}
	}
	return ""
}
