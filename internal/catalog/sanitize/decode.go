package sanitize

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"html"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Bounds on decoding texts: how deep encodings may be nested, and how long a text must be to count as encoded.
const (
	maxLayers = 3  // nested encodings
	minCoded  = 16 // bytes of a run that may be encoded text
	// minHumps is the number of capitals after lower-case letters and of digits after letters, in a text that may
	// contain pieces of encoded words.
	minHumps    = 4
	minLetters  = 4  // consecutive ASCII letters that are written as escapes
	maxEscape   = 12 // bytes of one escape sequence
	minNumbers  = 8  // consecutive character codes
	minReadable = 8  // bytes of decoded text
)

// textView represents a text as some reader may see it, for example with its escapes decoded. places maps each
// byte of it to the offset of its source in the original text. The last element of places is the length of the
// original text.
type textView struct {
	text   string
	places []int
}

// mayBeCoded reports whether a text contains an escape or may contain encoded words. It reads the text once. Most
// texts contain neither.
func mayBeCoded(text string) bool {
	run, odd, humps, digits := 0, 0, 0, 0
	lone := 0 // letters in a row that have no letter beside them
	for i := range len(text) {
		c := text[i]
		if isLetter(c) {
			if lone++; i > 0 && isLetter(text[i-1]) {
				lone = 0
			}
		}
		if _, n := quotedPrintable(text[i:]); n > 0 || lone >= minLone {
			return true
		}
		switch kind := encodedKind(c); {
		case kind == 0 && c != '-' && c != '_':
			if c == '%' || c == '\\' || c == '&' {
				if _, n := decodeEscape(text[i:]); n > 0 {
					return true
				}
			}
			run, odd = 0, 0
			continue
		case kind == 4:
			digits++
			odd++
			if i > 0 && encodedKind(text[i-1])&3 != 0 {
				humps++
			}
		case kind == 2 && i > 0 && encodedKind(text[i-1]) == 1:
			humps++
			odd++
		case kind == 2 && i > 0 && encodedKind(text[i-1]) == 2:
			odd++
		}
		if run++; run >= minCoded && odd > 0 || humps >= minHumps || digits >= minCoded {
			return true
		}
	}
	return false
}

// findDecoded finds suspicious content that becomes visible when escapes and encodings are decoded. The undecoded
// text was scanned before.
func (s *TextScanner) findDecoded(text string) (found []TextFinding) {
	if isPlain(text) {
		return s.findEncoded(text, 1)
	}
	v := narrowText(text)
	add := func(v textView, list []TextFinding) {
		for _, f := range list {
			f.Start, f.End = v.places[f.Start], v.places[f.End]
			found = append(found, f)
		}
	}
	add(v, s.findEncoded(v.text, 1))
	for range maxLayers {
		next, spelled, changed := unescapeView(v)
		add(v, spelled)
		if !changed {
			break
		}
		v = next
		add(v, s.findSentences(v.text))
		add(v, findBlocks(v.text))
		add(v, s.findEncoded(v.text, 1))
	}
	return found
}

// isPlain reports whether a text is ASCII and has no escapes.
func isPlain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c >= utf8.RuneSelf || c == '%' || c == '\\' || c == '&' {
			return false
		}
		if _, n := quotedPrintable(text[i:]); n > 0 {
			return false
		}
	}
	return true
}

// narrowText returns the view of a text without invisible characters and with full-width forms replaced by ASCII.
func narrowText(text string) textView {
	var b strings.Builder
	v := textView{places: make([]int, 0, len(text)+1)}
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		part := text[i : i+size]
		switch {
		case isInvisible(r):
			part = ""
		case 0xff01 <= r && r <= 0xff5e:
			part = string(r - 0xfee0)
		}
		b.WriteString(part)
		for j := range len(part) {
			v.places = append(v.places, min(i+j, i+size-1))
		}
		i += size
	}
	v.text, v.places = b.String(), append(v.places, len(text))
	return v
}

// unescapeView returns the view of a text in which the escapes of v are decoded: HTML entities, percent escapes and
// escapes of string literals. spelled contains the runs of ASCII letters that were written as escapes, which is
// suspicious in itself.
func unescapeView(v textView) (next textView, spelled []TextFinding, changed bool) {
	var b strings.Builder
	start, letters := 0, 0
	end := func(at int) {
		if letters >= minLetters {
			spelled = append(spelled, newFinding(encodedRule, start, at))
		}
		letters = 0
	}
	for i := 0; i < len(v.text); {
		text, n := decodeEscape(v.text[i:])
		if n == 0 {
			end(i)
			next.places = append(next.places, v.places[i])
			b.WriteByte(v.text[i])
			i++
			continue
		}
		if len(text) != 1 || !isLetter(text[0]) {
			end(i)
		} else if letters++; letters == 1 {
			start = i
		}
		for range len(text) {
			next.places = append(next.places, v.places[i])
		}
		b.WriteString(text)
		changed = true
		i += n
	}
	end(len(v.text))
	next.text, next.places = b.String(), append(next.places, v.places[len(v.text)])
	return next, spelled, changed
}

// decodeEscape decodes the escape sequence at the start of text. It returns the decoded text and the length of the
// sequence in bytes, or 0.
func decodeEscape(text string) (decoded string, n int) {
	if len(text) < 3 {
		return "", 0
	}
	switch text[0] {
	case '=':
		return quotedPrintable(text)
	case '&':
		if text[1] == '#' {
			return decodeReference(text)
		}
		end := strings.IndexByte(text[:min(len(text), maxEscape)], ';')
		if end < 2 {
			return "", 0
		}
		if decoded = html.UnescapeString(text[:end+1]); decoded != text[:end+1] {
			return decoded, end + 1
		}
	case '%':
		if c, err := strconv.ParseUint(text[1:3], 16, 8); err == nil {
			return string([]byte{byte(c)}), 3
		}
	case '\\':
		return decodeBackslash(text)
	}
	return "", 0
}

// decodeReference decodes a numeric character reference such as &#65; or &#x41;. The semicolon may be missing.
func decodeReference(text string) (decoded string, n int) {
	end, digits := 2, "0123456789"
	if text[2]|0x20 == 'x' {
		end, digits = 3, digits+"abcdefABCDEF"
	}
	for end < min(len(text), maxEscape) && strings.IndexByte(digits, text[end]) >= 0 {
		end++
	}
	if decoded = html.UnescapeString(text[:end] + ";"); decoded == text[:end]+";" {
		return "", 0
	}
	if end < len(text) && text[end] == ';' {
		end++
	}
	return decoded, end
}

// quotedPrintable decodes an escape of the e-mail encoding quoted-printable, such as =41, if the result is a visible
// character or a blank.
func quotedPrintable(text string) (decoded string, n int) {
	if len(text) < 3 || text[0] != '=' || 'a' <= text[2] {
		return "", 0
	}
	c, err := strconv.ParseUint(text[1:3], 16, 8)
	if err != nil || c < ' ' || c > '~' {
		return "", 0
	}
	return string(rune(c)), 3
}

// minLone is the minimum number of consecutive single letters that are read as words, as in I g n o r e.
const minLone = 8

// lettersApart finds rows of single letters in a text, as in I g n o r e, and returns them with the words that they
// spell. Letters of a row belong to one word if the distance between them is the smallest distance in the row.
func lettersApart(text string) (lists []numberList) {
	alone := func(i int) bool {
		return isLetter(text[i]) && (i == 0 || !wordByte(text[i-1])) && (i+1 == len(text) || !wordByte(text[i+1]))
	}
	for i := 0; i < len(text); i++ {
		if !alone(i) {
			continue
		}
		row := []int{i}
		for j := i + 1; j < len(text) && j-row[len(row)-1] <= 6; j++ {
			if wordByte(text[j]) && !alone(j) {
				break
			}
			if alone(j) {
				row = append(row, j)
			}
		}
		if i = row[len(row)-1]; len(row) >= minLone {
			lists = append(lists, numberList{row[0], i + 1, joinColumn(text, row)})
		}
	}
	return lists
}

// joinColumn joins the letters at the positions in row to words. Letters with the smallest distance between them
// belong to one word; a larger distance separates words.
func joinColumn(text string, row []int) string {
	nearest := len(text)
	for k := 1; k < len(row); k++ {
		nearest = min(nearest, row[k]-row[k-1])
	}
	var b strings.Builder
	for k, at := range row {
		if k > 0 && at-row[k-1] > nearest {
			b.WriteByte(' ')
		}
		b.WriteByte(text[at])
	}
	return b.String()
}

// decodeBackslash decodes an escape of a string literal. Any number of backslashes may precede it.
func decodeBackslash(text string) (string, int) {
	i := 1
	for i < len(text) && i < maxEscape && text[i] == '\\' {
		i++
	}
	number := func(from, digits, base int) (string, int) {
		if from+digits > len(text) {
			return "", 0
		}
		c, err := strconv.ParseUint(text[from:from+digits], base, 32)
		if err != nil || c > unicode.MaxRune {
			return "", 0
		}
		return string(rune(c)), from + digits
	}
	switch rest := text[i:]; {
	case hasPrefixFold(rest, "u{"):
		end := strings.IndexByte(rest[:min(len(rest), maxEscape)], '}')
		if end < 3 {
			return "", 0
		}
		decoded, n := number(i+2, end-2, 16)
		if n > 0 {
			n++
		}
		return decoded, n
	case hasPrefixFold(rest, "u"):
		if decoded, n := number(i+1, 8, 16); rest[0] == 'U' && n > 0 {
			return decoded, n
		}
		return decodeSurrogates(text, i, number)
	case hasPrefixFold(rest, "x"):
		return number(i+1, 2, 16)
	case rest != "" && (rest[0] == '0' || rest[0] == '1'):
		return number(i, 3, 8)
	}
	return "", 0
}

// decodeSurrogates decodes the sequence \uXXXX at i. If it is the first half of a UTF-16 surrogate pair, it
// decodes the second half with it.
func decodeSurrogates(text string, i int, number func(from, digits, base int) (string, int)) (string, int) {
	decoded, n := number(i+1, 4, 16)
	high, _ := strconv.ParseUint(text[min(len(text), i+1):min(len(text), i+5)], 16, 32)
	if n == 0 || !utf16.IsSurrogate(rune(high)) || n+6 > len(text) || text[n:n+2] != `\u` {
		return decoded, n
	}
	low, err := strconv.ParseUint(text[n+2:n+6], 16, 32)
	if err != nil {
		return decoded, n
	}
	return string(utf16.DecodeRune(rune(high), rune(low))), n + 6
}

// findEncoded finds words that are encoded in Base64, Base32, hexadecimal or character codes.
func (s *TextScanner) findEncoded(text string, layer int) (found []TextFinding) {
	for _, span := range codedSpans(text) {
		run := strings.Join(strings.Fields(text[span[0]:span[1]]), "")
		for _, decoded := range decodeRun(run) {
			if s.isSpeech(decoded, layer) {
				found = append(found, newFinding(encodedRule, span[0], span[1]))
				break
			}
		}
	}
	for _, row := range lettersApart(text) {
		if len(s.findSentences(row.text)) > 0 {
			found = append(found, newFinding(encodedRule, row.start, row.end))
		}
	}
	if digitsIn(text) < minCoded {
		return found
	}
	for _, list := range numberLists(text) {
		if s.isSpeech(list.text, layer) {
			found = append(found, newFinding(encodedRule, list.start, list.end))
		}
	}
	return found
}

func digitsIn(text string) (n int) {
	for i := range len(text) {
		if encodedKind(text[i]) == 4 {
			n++
		}
	}
	return n
}

// codedSpans returns the runs of Base64 characters in a text, and sequences of such runs separated by blanks.
func codedSpans(text string) (spans [][2]int) {
	row, from, coded, size := 0, 0, 0, 0
	flush := func(end int) {
		if row > 1 && size >= minCoded && 2*coded >= row {
			spans = append(spans, [2]int{from, end})
		}
		row, coded, size = 0, 0, 0
	}
	for i := 0; i < len(text); {
		if !codedByte(text[i]) {
			if text[i] > ' ' {
				flush(i)
			}
			i++
			continue
		}
		start := i
		for i < len(text) && codedByte(text[i]) {
			i++
		}
		if i-start >= minCoded && mayBeCoded(text[start:i]) {
			spans = append(spans, [2]int{start, i})
		}
		if row == 0 {
			from = start
		}
		row, size = row+1, size+i-start
		if isHumped(text[start:i]) {
			coded++
		}
		if (i-start)%4 != 0 {
			flush(i)
		}
	}
	flush(len(text))
	return spans
}

func codedByte(c byte) bool { return encodedKind(c) != 0 || c == '-' || c == '_' }

// isHumped reports whether a word has a capital or digit after a lower-case letter, or letters after a digit.
func isHumped(word string) bool {
	for i := 1; i < len(word); i++ {
		before, now := encodedKind(word[i-1]), encodedKind(word[i])
		if before == 1 && now != 1 || before == 4 && now&3 != 0 || now == 8 {
			return true
		}
	}
	return false
}

// decodeRun returns the texts that a run of letters and digits may encode: in Base64, Base32, hexadecimal and similar
// encodings.
func decodeRun(run string) (all []string) {
	add := func(raw []byte, err error) {
		if err == nil {
			all = append(all, string(narrowUTF16(raw)))
		}
	}
	runs := []string{run}
	if strings.ContainsAny(run, "/+-_=") {
		runs = append(runs, strings.FieldsFunc(run, func(r rune) bool { return strings.ContainsRune("/+-_=", r) })...)
	}
	for _, r := range runs {
		if len(r) < minCoded {
			continue
		}
		add(hex.DecodeString(r))
		plain := strings.TrimRight(r, "=")
		add(base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.ToUpper(plain)))
		plain = standardBase64.Replace(plain)
		for shift := range min(4, len(plain)) {
			part := plain[shift:]
			if len(part)%4 == 1 {
				part = part[:len(part)-1]
			}
			add(base64.RawStdEncoding.DecodeString(part))
		}
	}
	return all
}

// standardBase64 converts URL-safe Base64 to the standard alphabet.
var standardBase64 = strings.NewReplacer("-", "+", "_", "/", "=", "")

// narrowUTF16 converts UTF-16 text to UTF-8. It returns other text unchanged.
func narrowUTF16(raw []byte) []byte {
	for _, odd := range []int{0, 1} {
		narrow := make([]byte, 0, len(raw)/2)
		for i := 0; i+1 < len(raw) && raw[i+1-odd] == 0; i += 2 {
			narrow = append(narrow, raw[i+odd])
		}
		if len(raw) >= 2*minReadable && len(narrow) == len(raw)/2 {
			return narrow
		}
	}
	return raw
}

// isSpeech reports whether decoded text could address a reader: it contains several words, or something suspicious.
func (s *TextScanner) isSpeech(text string, layer int) bool {
	if len(text) < minReadable || !isReadable(text) {
		return false
	}
	if hasWords(text) || len(s.findSentences(text)) > 0 || len(findBlocks(text)) > 0 {
		return true
	}
	if layer >= maxLayers {
		return false
	}
	places := make([]int, len(text)+1)
	next, _, changed := unescapeView(textView{text, places})
	return changed && s.isSpeech(next.text, layer+1) || len(s.findEncoded(text, layer+1)) > 0
}

// isReadable reports whether a text consists only of characters that people write.
func isReadable(text string) bool {
	if !utf8.ValidString(text) {
		return false
	}
	for _, r := range text {
		if r != '\n' && r != '\t' && r != '\r' && !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// hasWords reports whether a text has at least three words and is mostly letters.
func hasWords(text string) bool {
	letters, all := 0, 0
	for _, r := range text {
		if all++; unicode.IsLetter(r) {
			letters++
		}
	}
	return len(strings.Fields(text)) >= 3 && 3*all <= 4*(letters+len(strings.Fields(text)))
}

// numberList represents a sequence of numbers and the text that they encode as character codes.
type numberList struct {
	start, end int
	text       string
}

// numberLists returns the sequences of numbers in a text that may be character codes: decimal, hexadecimal or binary.
func numberLists(text string) (lists []numberList) {
	for _, base := range []int{10, 16, 2} {
		var l numberList
		count := 0
		flush := func() {
			if count >= minNumbers {
				lists = append(lists, l)
			}
			l, count = numberList{}, 0
		}
		for i := 0; i < len(text); {
			if !wordByte(text[i]) {
				if !strings.ContainsRune(" ,;:-\n\\[]()", rune(text[i])) {
					flush()
				}
				i++
				continue
			}
			start := i
			for i < len(text) && wordByte(text[i]) {
				i++
			}
			c, ok := charCode(text[start:i], base)
			if !ok {
				flush()
				continue
			}
			if count == 0 {
				l.start = start
			}
			l.text, l.end = l.text+string(rune(c)), i
			count++
		}
		flush()
	}
	return lists
}

func charCode(digits string, base int) (byte, bool) {
	switch {
	case base == 16:
		digits = strings.TrimPrefix(strings.TrimPrefix(digits, "0x"), "x")
		if len(digits) != 2 {
			return 0, false
		}
	case base == 10 && (len(digits) < 2 || len(digits) > 3), base == 2 && (len(digits) < 7 || len(digits) > 8):
		return 0, false
	}
	c, err := strconv.ParseUint(digits, base, 8)
	return byte(c), err == nil && ' ' <= c && c < 0x7f
}
