package effect

import (
	"strings"
	"sync"
	"unicode"
)

// maxDisguised bounds the length of words that are checked for misspelled verbs, in bytes.
const maxDisguised = 24

// lookupInName works like lookupWord and also recognises verbs in disguised spelling. Examples are digits (d3l3te,
// delete2), one mistake (delte, delet), repeated letters (deleeete), no vowels (dlt), accents (délète) and letters of
// another alphabet.
func lookupInName(text string) knownWord {
	w := lookupWord(text)
	if w.class != unknown || len(text) > maxDisguised || harmless[text] {
		return w
	}
	for _, plain := range undisguiseText(text) {
		if found := lookupWord(plain); found.class >= writes {
			return knownWord{text, found.verb, found.class, true}
		}
		if verb := findMisspelled(plain); verb != "" {
			return knownWord{text, verb, destroys, true}
		}
	}
	return w
}

// undisguiseText returns the words that a disguised word may stand for. It replaces digits, accented letters and
// letters of other alphabets by the Latin letters that they resemble.
func undisguiseText(text string) []string {
	plain := text
	if strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII }) {
		plain = lookalikes.Replace(text)
	}
	if !strings.ContainsAny(plain, "0123456789") {
		return []string{plain}
	}
	list := make([]string, 0, 3)
	if trimmed := strings.Trim(plain, "0123456789"); len(trimmed) > 1 {
		list = append(list, trimmed)
	}
	if letters := digits.Replace(plain); len(letters) > 2 {
		list = append(list, strings.ReplaceAll(letters, "1", "l"), strings.ReplaceAll(letters, "1", "i"))
	}
	return list
}

// findMisspelled returns the irreversible verb that a word or its base form misspells, or "". A word that has a
// meaning of its own is not a misspelling.
func findMisspelled(text string) string {
	forms := wordForms(text)
	for _, form := range forms {
		if _, known := lexicon()[form]; known || harmless[form] || len(form) < 3 {
			return ""
		}
	}
	for _, form := range forms {
		if verb := findMisspelling(form); verb != "" {
			return verb
		}
	}
	return ""
}

// findMisspelling returns the irreversible verb that a word misspells, or "". Unlike findMisspelled, it does not look
// for base forms.
func findMisspelling(text string) string {
	vowels, squeezed := strings.ContainsAny(text, "aeiou"), squeezeRepeats(text)
	for _, v := range verbSpellings() {
		if !vowels && text == v.consonants || squeezed == v.squeezed || oneMistake(text, v.verb) && !isForm(text, v.verb) {
			return v.verb
		}
	}
	return ""
}

// isForm reports whether a word is a verb with an ordinary ending, such as removed, expiry or delivery.
func isForm(text, verb string) bool {
	ending, ok := strings.CutPrefix(text, verb)
	return ok && strings.ContainsAny(ending, "drsny") || strings.HasSuffix(verb, "e") && text == verb[:len(verb)-1]+"y"
}

// verbSpelling holds a verb and its shortened forms, with which misspellings are compared.
type verbSpelling struct{ verb, squeezed, consonants string }

// verbSpellings returns the irreversible English verbs that are long enough to be recognised despite a mistake.
var verbSpellings = sync.OnceValue(func() (list []verbSpelling) {
	for _, verb := range append(strings.Fields(englishFinal), "refund") {
		if len(verb) < 5 {
			continue
		}
		s := verbSpelling{verb: verb, squeezed: squeezeRepeats(verb), consonants: "\x00"}
		if c := withoutVowels(verb); len(c) > 3 && c != verb {
			s.consonants = c
		}
		list = append(list, s)
	}
	return list
})

// squeezeRepeats replaces each run of a repeated letter with one letter. For example, both delete and deleeete become
// delete.
func squeezeRepeats(text string) string {
	var b strings.Builder
	last := rune(-1)
	for _, r := range text {
		if r != last {
			b.WriteRune(r)
		}
		last = r
	}
	return b.String()
}

func withoutVowels(text string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("aeiou", r) {
			return -1
		}
		return r
	}, text)
}

// oneMistake reports whether two words differ by exactly one wrong, missing, extra or transposed letter.
func oneMistake(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 || a == b {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) < len(b) {
		return a[i:] == b[i+1:]
	}
	exchanged := i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i]
	return a[i+1:] == b[i+1:] || exchanged && a[i+2:] == b[i+2:]
}

// isOdd reports whether a name contains characters that imitate letters, such as small capitals, mathematical letters
// or circled letters. They belong to no language, so such a name cannot be judged.
func isOdd(name string) bool {
	return strings.ContainsFunc(name, func(r rune) bool { return r > unicode.MaxLatin1 && unicode.Is(oddLetters, r) })
}

var oddLetters = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x0250, Hi: 0x02AF, Stride: 1}, {Lo: 0x1D00, Hi: 0x1DBF, Stride: 1}, {Lo: 0x2071, Hi: 0x209C, Stride: 1},
		{Lo: 0x2102, Hi: 0x2149, Stride: 1}, {Lo: 0x249C, Hi: 0x24E9, Stride: 1}, {Lo: 0xA4D0, Hi: 0xA4F7, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x10400, Hi: 0x1044F, Stride: 1}, {Lo: 0x1D400, Hi: 0x1D7FF, Stride: 1},
		{Lo: 0x1F130, Hi: 0x1F189, Stride: 1},
	},
}

// verbPhrases contains groups of words that name an irreversible action only in combination.
var verbPhrases = [][]string{
	{"get", "rid"}, {"throw", "away"}, {"tear", "down"}, {"take", "down"}, {"bring", "down"}, {"knock", "down"}, {"burn", "down"},
	{"blow", "away"}, {"phase", "out"}, {"write", "off"}, {"cash", "out"}, {"pay", "out"}, {"kick", "out"},
	{"lock", "out"}, {"sign", "over"}, {"hand", "over"},
	{"give", "away"}, {"let", "go"}, {"lay", "off"}, {"factory", "reset"}, {"go", "live"}, {"fail", "over"},
	{"cut", "over"}, {"wind", "down"}, {"close", "down"},
	{"filter", "branch"}, {"power", "off"}, {"power", "cycle"}, {"roll", "back"},
}

// findPhrase returns the phrase from verbPhrases that a name contains, with at most one other word in between, or "".
func findPhrase(words []string) string {
	for _, p := range verbPhrases {
		for i, text := range words {
			if text == p[0] && (i+1 < len(words) && words[i+1] == p[1] || i+2 < len(words) && words[i+2] == p[1] && p[0] != "go") {
				return p[0] + " " + p[1]
			}
		}
	}
	return ""
}

var (
	// digits maps digits to the letters they imitate. "1" imitates two letters.
	digits = strings.NewReplacer("0", "o", "3", "e", "4", "a", "5", "s", "7", "t", "8", "b", "9", "g")

	// lookalikes maps accented letters and letters of other alphabets to the Latin letters they resemble.
	lookalikes = strings.NewReplacer(splitPairs(`àa áa âa ãa äa åa āa ăa ąa çc ćc ĉc ċc čc ďd đd ðd èe ée êe ëe ēe ĕe ėe ęe ěe ĝg ğg ġg ģg ĥh ħh ìi íi îi ïi ĩi īi ĭi įi ıi ĵj ķk
		ĺl ļl ľl ŀl łl ñn ńn ņn ňn òo óo ôo õo öo øo ōo ŏo őo ŕr ŗr řr śs ŝs şs šs ţt ťt ŧt ùu úu ûu üu ũu ūu ŭu ůu űu ųu ŵw ýy ÿy ŷy źz żz žz ſs ƒf
		аa вb еe ёe кk мm нh оo рp сc тt уy хx іi їi јj ѕs ԁd ӏl ԛq ԝw һh гr пn иu νv αa εe ιi κk οo ρp τt υu χx`)...)

	// harmless contains words that differ from an irreversible verb by one letter but have another meaning.
	harmless = wordSet(`delivery expiry about amble amount annal annual annuli aport bank barrow black blanc bland blink blush bort brain budge burrow cager cancer chancel clabber clank
		clubber cobber cuttle darin debase defend deist delate delict delint delis deluder delver demist demit deplete derain desist detract devaluate discord
		distributee drawn drin duelist eager ease edict emigrate emit empire eradiate eras erose erse evacuate evoke excel excide excite excuse fettle
		finalism finalist flank flesh forgat forge forged forger forges forgot fudge gabble gable garble germinate gimble gorget grain gurge infect inotify
		insect judge kettle lager lank lobber lush mettle morrow muser nettle nlink nude nullif nullity overwrote pager pawn pill plank plush pop3 prase
		prelaunch prepay prescind prone prude pune pure puree purse quash rain ramble rase reactivate realloc reallocate rebate rebind rebook recommission
		refit refound refract regroup reit relay relist relit remand remix remote repast report repos repose reposit reran reseed resent resit retrace
		retroact revaluate rewind rewove rouser rune sager sawn scrum seattle settee shared shawn shed sherd shied shoed shored shrek shrew shrewd shrub
		shuttle sired skill slobber slush sorrow spahn spain span spawnv spurge squish surge train transit uplink urge valorize valuate vaporish wader wafer
		wage waged wages wagner waler wamble water waver whimper whipper whisker wipers wipes withdrew zonate`)
)

// splitPairs splits a list of letter pairs: "ab cd" becomes a, b, c, d.
func splitPairs(text string) (list []string) {
	for _, p := range strings.Fields(text) {
		r := []rune(p)
		list = append(list, string(r[0]), string(r[1:]))
	}
	return list
}
