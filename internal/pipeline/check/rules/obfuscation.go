package rules

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Thresholds above which a text counts as obfuscated.
const (
	minEscapes    = 12     // escapes of plain letters in one string
	minRandom     = 120    // bytes of a string that looks like noise
	noiseEntropy  = 5.2    // bits of entropy of each of its bytes
	hugeString    = 32_000 // bytes of one string
	minCodes      = 10     // numbers that spell a text
	minSymbols    = 150    // nodes of a program of signs
	symbolShare   = 0.8    // of them that are neither names nor numbers
	maxIdentifier = 400    // bytes of a name that is looked at
)

// judgeLiteral finds string literals that are written in an obfuscated way.
func (j *treeJudge) judgeLiteral(i int32) {
	s, raw := j.Nodes[i].Text, j.sourceOf(i)
	if n := countEscapes(raw); n >= minEscapes && 4*n*2 > len(raw) {
		j.addFinding("obfuscation.escapes", i, "")
	}
	switch {
	case len(s) > hugeString:
		j.addFinding("obfuscation.huge", i, "")
	case len(s) >= minRandom && isNoise(s):
		j.addFinding("obfuscation.entropy", i, "")
	}
	if j.Language == Python && strings.Contains(s, ".__") && j.isFormat(i) {
		j.judgeFormat(i, s)
	}
}

// isFormat reports whether the program may use a Python string literal as a format, as in '…'.format.
func (j *treeJudge) isFormat(i int32) bool {
	parent := j.parents[i]
	return j.hasKind(parent, Assign) || j.hasKind(parent, Member) && strings.HasPrefix(j.Nodes[parent].Text, "format")
}

// countEscapes counts the escapes in a literal that stand for ordinary letters and digits.
func countEscapes(raw string) (n int) {
	for k := 0; k+3 < len(raw); k++ {
		if raw[k] != '\\' {
			continue
		}
		var digits string
		switch c := raw[k+1]; {
		case c == 'x':
			digits = raw[k+2 : min(k+4, len(raw))]
		case c == 'u' && raw[k+2] == '{':
			digits, _, _ = strings.Cut(raw[k+3:min(k+10, len(raw))], "}")
		case c == 'u' && k+6 <= len(raw):
			digits = raw[k+2 : k+6]
		case c >= '0' && c <= '1':
			digits = "4" + raw[k+2:k+3]
		}
		if isPlain(digits) {
			n++
		}
		k++
	}
	return n
}

// isPlain reports whether the hexadecimal digits of an escape are the code of a printable ASCII character, which
// needs no escape.
func isPlain(digits string) bool {
	digits = strings.TrimLeft(digits, "0")
	return len(digits) == 2 && digits[0] >= '2' && digits[0] <= '7' && strings.ContainsRune("0123456789abcdefABCDEF", rune(digits[1]))
}

// isNoise reports whether a text looks like encoded data: it has hardly any white space and a high entropy.
func isNoise(s string) bool {
	var counts [256]int
	for k := range len(s) {
		counts[s[k]]++
	}
	if blank := counts[' '] + counts['\n'] + counts['\t']; blank*50 > len(s) {
		return false
	}
	bits := 0.0
	for _, c := range counts {
		if c > 0 {
			f := float64(c) / float64(len(s))
			bits -= f * math.Log2(f)
		}
	}
	return bits > noiseEntropy
}

// findNumberText finds lists of numbers that encode text.
func (j *treeJudge) findNumberText(i int32) {
	if j.spellsText(i) {
		j.addFinding("obfuscation.charcodes", i, "")
	}
}

// characterCodes finds calls that convert character codes to a long string or to a dangerous name.
func (j *treeJudge) characterCodes(i int32, args []int32) {
	if s, ok := j.charactersText(args); ok && len(s) >= minCodes {
		j.addFinding("obfuscation.charcodes", i, s)
	}
	if s, ok := j.charactersText(args); ok && slices.Contains(hideableNames, s) {
		j.addFinding("code.hidden", i, s)
	}
}

// spellsText reports whether a list of numbers consists of the character codes of a text.
func (j *treeJudge) spellsText(i int32) bool {
	total, letters, signs := 0, 0, 0
	for c := range j.childNodes(i) {
		v, ok := j.literalNumber(c)
		if !ok || v < 9 || v > 126 {
			return false
		}
		total++
		switch {
		case v >= 'a' && v <= 'z', v >= 'A' && v <= 'Z':
			letters++
		case strings.ContainsRune(" ().,;:'\"_/=", rune(v)):
			signs++
		}
	}
	// Figures of a business are often between 65 and 122, and seldom commas too.
	return total >= minCodes && signs > 0 && letters > signs && (letters+signs)*10 >= total*9
}

// judgeIdentifier finds suspicious letters in a name.
func (j *treeJudge) judgeIdentifier(i int32, name string) {
	if name == "" || len(name) > maxIdentifier {
		return
	}
	raw := name
	if j.hasKind(i, Name) {
		raw = j.sourceOf(i) // Python has made plain letters of others already
	}
	var latin, lookalike, invisible bool
	for k := 0; k < len(raw) && len(raw) <= maxIdentifier; {
		r, size := utf8.DecodeRuneInString(raw[k:])
		k += size
		switch {
		case r < utf8.RuneSelf:
			latin = latin || unicode.IsLetter(r)
		case isInvisible(r):
			invisible = true
		case isStyled(r):
			latin, lookalike = true, true
		case strings.ContainsRune(lookalikeLetters, r):
			lookalike = true
		}
	}
	switch {
	case invisible:
		j.addFinding("obfuscation.invisible", i, "")
	case latin && lookalike:
		j.addFinding("obfuscation.homoglyph", i, name)
	}
}

// lookalikeLetters lists letters of other scripts that look like Latin letters.
const lookalikeLetters = "аеорсухіјѕһԁԛԝАВЕКМНОРСТХІЈЅαοριυνκΑΒΕΖΗΙΚΜΝΟΡΤΥΧɡɩ"

// isStyled reports whether a character is a styled form of a Latin letter. In names, Python treats such a character
// as the plain letter.
func isStyled(r rune) bool { return r >= 0x1d400 && r <= 0x1d7ff || r >= 0xff21 && r <= 0xff5a }

// isInvisible reports whether a character is invisible. Zero-width joiners do not count, because some scripts and
// emoji need them.
func isInvisible(r rune) bool {
	switch r {
	case 0x200b, 0x2060, 0x2061, 0x2062, 0x2063, 0x2064, 0x180e, 0x3164, 0x115f, 0x1160, 0xffa0, 0xfeff:
		return true
	}
	return r >= 0xe0000 && r <= 0xe007f
}

// judgeLetters finds invisible and direction-changing characters, which make source code look different from the code
// that runs.
func (j *treeJudge) judgeLetters() {
	var before rune
	tagged := 0
	for k, r := range j.Source {
		switch {
		case r < utf8.RuneSelf:
		case r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069:
			j.findAt("obfuscation.bidi", severityOf("obfuscation.bidi"), k, k+utf8.RuneLen(r), "")
		case r >= 0xe0000 && r <= 0xe007f:
			// The flags of England, Scotland and Wales are a black flag with six of these.
			if tagged++; before != 0x1f3f4 && (before < 0xe0000 || tagged > 6) {
				j.findAt("obfuscation.invisible", severityOf("obfuscation.invisible"), k, k+utf8.RuneLen(r), "")
			}
		case isInvisible(r) && k > 0:
			j.findAt("obfuscation.invisible", Low, k, k+utf8.RuneLen(r), "")
		}
		if r < 0xe0000 || r > 0xe007f {
			tagged = 0
		}
		before = r
	}
}

// judgeSymbols finds programs that consist almost only of symbols such as brackets and operators, with hardly a name
// or a number. Some obfuscators produce such programs.
func (j *treeJudge) judgeSymbols() {
	if len(j.Nodes) < minSymbols {
		return
	}
	signs := 0
	for i := range j.Nodes {
		switch n := &j.Nodes[i]; n.Kind {
		case Array, Unary, Binary, Index, Object, Call:
			signs++
		case String:
			if n.Text == "" {
				signs++
			}
		}
	}
	if float64(signs) > symbolShare*float64(len(j.Nodes)) {
		j.addFinding("obfuscation.symbols", 0, "")
	}
}
