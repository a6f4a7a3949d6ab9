package bindings

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"retort/internal/core"
)

// plainText removes ANSI sequences, control characters, and characters that hide or reorder text. The lines of the
// result end in "\n".
func plainText(s string) string {
	if isPlain(s) {
		return s
	}
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n")
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\x1b':
			size = ansiLength(s[i:])
		case r == '\r', r == '\u0085', r == '\u2028', r == '\u2029', r == '\v', r == '\f':
			b.WriteByte('\n')
		case r == '\t':
			b.WriteByte(' ')
		case r == '\n' || !isHidden(r):
			b.WriteRune(r)
		}
		i += size
	}
	return b.String()
}

func isPlain(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; (c < ' ' && c != '\n') || c >= 0x7f {
			return false
		}
	}
	return true
}

// isHidden reports whether a character is invisible or changes how other characters are shown.
func isHidden(r rune) bool {
	switch {
	case r == '\u200c', r == '\u200d': // joiners: parts of words and emoji
		return false
	case r == '\ufe0f': // in emoji
		return false
	}
	return core.IsInvisible(r) || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp)
}

// ansiLength returns the length of the escape sequence at the start of s.
func ansiLength(s string) int {
	if len(s) < 2 {
		return 1
	}
	switch s[1] {
	case '[': // control sequence: ends with a byte of @ to ~
		for i := 2; i < len(s); i++ {
			if s[i] >= '@' && s[i] <= '~' {
				return i + 1
			}
			if s[i] < ' ' || s[i] > '~' {
				return i
			}
		}
		return len(s)
	case ']', 'P', 'X', '^', '_': // a string: ends with BEL or ESC \, or the line
		for i := 2; i < len(s); i++ {
			switch {
			case s[i] == '\a':
				return i + 1
			case s[i] == '\x1b' && i+1 < len(s) && s[i+1] == '\\':
				return i + 2
			case s[i] == '\n':
				return i
			}
		}
		return len(s)
	}
	if s[1] < ' ' || s[1] > '~' {
		return 1
	}
	return 2
}

// oneLine returns plain text with each run of white space replaced by one blank.
func oneLine(s string) string { return strings.Join(strings.Fields(plainText(s)), " ") }

// plainLines splits plain text into lines without trailing blanks. Empty lines at the start and end are removed, and
// several empty lines in succession become one.
func plainLines(s string) []string {
	var out []string
	empty := false
	for line := range strings.SplitSeq(plainText(s), "\n") {
		line = strings.TrimRightFunc(line, unicode.IsSpace)
		if line == "" {
			empty = len(out) > 0
			continue
		}
		if empty {
			out = append(out, "")
		}
		empty = false
		out = append(out, line)
	}
	return out
}

// inComment escapes plain text for a block comment, so that it can neither end the comment nor act as a compiler
// directive.
func inComment(s string) string {
	s = strings.ReplaceAll(s, "*/", `*\/`)
	if trimmed := strings.TrimLeft(s, " */"); strings.HasPrefix(trimmed, "@") && isDirective(trimmed) {
		at := len(s) - len(trimmed)
		s = s[:at] + `\` + trimmed
	}
	return s
}

// isDirective reports whether a compiler would treat a comment that begins with s as a directive.
func isDirective(s string) bool {
	return strings.HasPrefix(s, "@ts-") || strings.HasPrefix(s, "@jsx")
}

// noteComment returns s as a block comment on one line.
func noteComment(s string) string { return "/* " + inComment(oneLine(s)) + " */" }

const maxSentence = 200

// SummaryLine returns the first sentence of a tool's description, or else its title: at most 200 characters on one line.
func SummaryLine(t *core.Tool) string {
	if s := firstSentence(t.Description); s != "" {
		return s
	}
	return firstSentence(t.Title)
}

// firstSentence returns the first sentence of a text. It ends at a full stop that does not belong to an abbreviation, or
// at the end of a paragraph or heading.
func firstSentence(s string) string {
	const lookAt = 2000
	if len(s) > lookAt {
		s = strings.ToValidUTF8(s[:lookAt], "")
	}
	text := firstParagraph(s)
	for i, r := range text {
		switch r {
		case '。', '！', '？':
			return shortenText(text[:i+utf8.RuneLen(r)], maxSentence)
		case '.', '!', '?':
			if i+1 < len(text) && text[i+1] == ' ' && !isAbbreviation(text[:i+1]) && startsSentence(text[i+2:]) {
				return shortenText(text[:i+1], maxSentence)
			}
		}
	}
	return shortenText(text, maxSentence)
}

// firstParagraph returns the first paragraph as one line, without Markdown's marks for headings, emphasis and quotation at
// its start.
func firstParagraph(s string) string {
	var words []string
	for _, line := range plainLines(s) {
		trimmed := strings.TrimSpace(line)
		heading := strings.HasPrefix(trimmed, "#")
		bare := strings.TrimSpace(strings.TrimLeft(trimmed, "#>*-=_"))
		switch {
		case bare == "" && len(words) == 0:
			continue
		case bare == "", len(words) > 0 && (heading || isItem(trimmed) || strings.HasSuffix(trimmed, ":")):
			return strings.Join(words, " ")
		case len(words) == 0:
			words = strings.Fields(bare)
		default:
			words = append(words, strings.Fields(trimmed)...)
		}
		if heading {
			break
		}
	}
	return strings.Join(words, " ")
}

func isItem(line string) bool {
	return strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "* ") || strings.HasPrefix(line, "• ")
}

func isAbbreviation(s string) bool {
	for _, a := range []string{"e.g.", "i.e.", "etc.", "vs.", "approx.", "incl.", "resp.", "cf.", "No."} {
		if strings.HasSuffix(s, a) && (len(s) == len(a) || !unicode.IsLetter(rune(s[len(s)-len(a)-1]))) {
			return true
		}
	}
	return false
}

func startsSentence(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return !unicode.IsLower(r)
}

// shortenText cuts s to at most n characters, preferably at a word boundary.
func shortenText(s string, n int) string {
	if len(s) <= n || utf8.RuneCountInString(s) <= n {
		return s
	}
	cut := string([]rune(s)[:n-1])
	if at := strings.LastIndexByte(cut, ' '); at > len(cut)*2/3 {
		cut = cut[:at]
	}
	return strings.TrimRight(cut, " ,;:.(") + "…"
}

// quoteString returns a string literal that TypeScript, JavaScript and JSON read alike. Invisible characters are escaped.
func quoteString(s string) string {
	return quoteWith(s, func(b *strings.Builder, r rune) {
		if r > 0xffff {
			r -= 0x10000
			fmt.Fprintf(b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
			return
		}
		fmt.Fprintf(b, `\u%04x`, r)
	})
}

// pyQuote returns the Python string literal for a text.
func pyQuote(s string) string {
	return quoteWith(s, func(b *strings.Builder, r rune) {
		if r > 0xffff {
			fmt.Fprintf(b, `\U%08x`, r)
			return
		}
		fmt.Fprintf(b, `\u%04x`, r)
	})
}

func quoteWith(s string, escape func(*strings.Builder, rune)) string {
	var b strings.Builder
	b.Grow(len(s) + 2)
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"', r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x7f && r >= ' ':
			b.WriteRune(r)
		case isHidden(r), core.IsInvisible(r):
			escape(&b, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
