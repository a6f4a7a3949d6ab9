package sanitize

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// wordToken is one word of a sentence. It has two numbers, by which the patterns of the rules refer to the word and
// to its stem.
type wordToken struct {
	start, end int
	word       int // number of the word; 0 if no pattern uses it
	stem       int // number of the stem with which it begins; 0 if no pattern uses such a stem
}

// Placeholders with which a pattern refers to a URL or an e-mail address instead of a word.
const (
	wordURL   = "<url>"
	wordEmail = "<email>"
)

// wordReader splits a sentence into words as a person would read them. It replaces lookalike letters by the
// letters that they resemble, ignores case, and drops marks between letters.
type wordReader struct {
	*TextScanner
	text   string
	at     int
	tokens []wordToken
	buffer []byte
}

// readWords returns the words of a sentence. They are valid until the next call.
func (r *wordReader) readWords(text string) []wordToken {
	r.text, r.at, r.tokens = text, 0, r.tokens[:0]
	for r.at < len(r.text) {
		c := r.text[r.at]
		if wordByte(c) || c >= utf8.RuneSelf || isSign(c) && r.at+1 < len(r.text) && wordByte(r.text[r.at+1]) {
			r.readWord()
		} else {
			r.at++
		}
	}
	return r.tokens
}

func wordByte(c byte) bool { return isLetter(c) || '0' <= c && c <= '9' }

// readWord reads one word. A URL or e-mail address counts as one word.
func (r *wordReader) readWord() {
	start := r.at
	r.buffer = r.buffer[:0]
	digits := false
	for r.at < len(r.text) {
		c := r.text[r.at]
		if c >= utf8.RuneSelf {
			if !r.readWide(start) {
				break
			}
			continue
		}
		if n := lineBreak(r.text[r.at:]); n > 0 && r.at > start {
			r.at += n
			continue
		}
		if !wordByte(c) && c != '\'' && (!isSign(c) || !r.isInsideWord()) {
			break
		}
		digits = digits || !isLetter(c) && c != '\''
		if c != '\'' {
			r.buffer = append(r.buffer, lowerASCII(c))
		}
		r.at++
	}
	if r.at == start {
		r.at++ // nothing of a word
		return
	}
	r.emitWord(start, digits)
}

// lineBreak returns the length of a hyphen and line break that divide a word, or 0 if text does not begin with them.
func lineBreak(text string) int {
	for _, hyphen := range []string{"-\n", "-\r\n"} {
		if rest, ok := strings.CutPrefix(text, hyphen); ok && rest != "" && (isLetter(rest[0]) || rest[0] >= utf8.RuneSelf) {
			return len(hyphen)
		}
	}
	return 0
}

// readWide reads one non-ASCII character. It returns false if the word ends before it.
func (r *wordReader) readWide(start int) bool {
	c, size := utf8.DecodeRuneInString(r.text[r.at:])
	switch f := foldLetter(c); {
	case f != 0:
		r.buffer = append(r.buffer, f)
	case c == '’' || isInvisible(c) || unicode.Is(unicode.Mn, c) && len(r.buffer) > 0 && isLetter(
		r.buffer[len(r.buffer)-1],
	): // an accent of its own on a Latin letter
	case unicode.IsLetter(c) || unicode.IsMark(c):
		r.buffer = utf8.AppendRune(r.buffer, unicode.ToLower(c))
	default:
		if r.at == start {
			r.at += size
			r.buffer = r.buffer[:0]
		}
		return false
	}
	r.at += size
	return true
}

// isSign reports whether a symbol stands for a letter in disguised words (p@s$word).
func isSign(c byte) bool { return c == '@' || c == '$' || c == '!' }

// isInsideWord reports whether a symbol has letters on both sides and so probably stands for a letter, as in
// p@ssword.
func (r *wordReader) isInsideWord() bool {
	if r.at+1 == len(r.text) || !wordByte(r.text[r.at+1]) && !isSign(r.text[r.at+1]) {
		return r.text[r.at] == '$'
	}
	return !r.isAddress()
}

// isAddress reports whether the @ at the current position belongs to an e-mail address.
func (r *wordReader) isAddress() bool {
	if r.text[r.at] != '@' || r.at == 0 || !wordByte(r.text[r.at-1]) {
		return false
	}
	end := r.at + 1
	for end < len(r.text) && (wordByte(r.text[end]) || r.text[end] == '-') {
		end++
	}
	return end+1 < len(r.text) && r.text[end] == '.' && isLetter(r.text[end+1])
}

func lowerASCII(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c | 0x20
	}
	return c
}

func (r *wordReader) emitWord(start int, digits bool) {
	if len(r.buffer) == 0 {
		return
	}
	t := wordToken{start: start, end: r.at}
	switch rest := r.text[r.at:]; {
	case strings.HasPrefix(rest, "://"):
		r.skipAddress()
		t.word, t.end = r.words[wordURL], r.at
	case strings.HasPrefix(rest, "@") && r.isAddress():
		r.skipAddress()
		t.word, t.end = r.words[wordEmail], r.at
	default:
		t.word, t.stem = r.wordNumber(r.buffer)
		if t.word == 0 && t.stem == 0 && digits {
			for _, letters := range leetAlphabets {
				if t.word == 0 && t.stem == 0 {
					t.word, t.stem = r.wordNumber(decodeLeet(r.buffer, letters))
				}
			}
		}
	}
	if t.word == 0 && t.stem == 0 && r.splitWord(start, t.end) {
		return
	}
	r.tokens = append(r.tokens, t)
}

// splitWord adds the parts of a word like ignorePreviousRules to the words of the sentence, in place of the whole
// word. It returns false and adds nothing if the word has only one part.
func (r *wordReader) splitWord(start, end int) bool {
	return splitHumps(r.text[start:end], func(from, to int) {
		t := wordToken{start: start + from, end: start + to}
		r.buffer = append(r.buffer[:0], strings.ToLower(r.text[t.start:t.end])...)
		t.word, t.stem = r.wordNumber(r.buffer)
		r.tokens = append(r.tokens, t)
	})
}

// skipAddress skips the rest of a URL or address.
func (r *wordReader) skipAddress() {
	for r.at < len(r.text) && r.text[r.at] > ' ' && !strings.ContainsRune("\"'<>()`,;", rune(r.text[r.at])) {
		r.at++
	}
	for r.text[r.at-1] == '.' {
		r.at--
	}
}

// wordNumber returns the numbers by which the patterns of the rules refer to a word: one for exactly this word, and
// one for the stem with which it begins. A number is 0 if no pattern uses the word or the stem.
func (s *TextScanner) wordNumber(word []byte) (exact, begins int) {
	if first := word[0] - 'a'; first < 26 {
		for _, st := range s.begins[first] {
			if len(word) >= len(st.text) && string(word[:len(st.text)]) == st.text {
				begins = st.number
				break
			}
		}
	}
	return s.words[string(word)], begins
}

// leetSigns lists digits and signs that may stand for letters. Each text in leetAlphabets gives one possible letter
// for each of them.
const leetSigns = "0123456789@$!"

var leetAlphabets = []string{"oizeasgtbgasi", "olzeasbtbgasl", "oizeasbtbgasi", "olzeasgtbgasi"}

// decodeLeet replaces digits and signs in a word by the letters that they resemble.
func decodeLeet(word []byte, letters string) []byte {
	return bytes.Map(func(r rune) rune {
		if at := strings.IndexRune(leetSigns, r); at >= 0 {
			return rune(letters[at])
		}
		return r
	}, word)
}
