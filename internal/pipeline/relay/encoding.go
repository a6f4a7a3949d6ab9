package relay

import (
	"bytes"
	"encoding/base64"
	"mime"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/simplifiedchinese"
	xunicode "golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"

	"retort/internal/core"
)

// textReading represents one way to read bytes as text.
type textReading struct {
	text     []byte            // the text in UTF-8
	encoding encoding.Encoding // encoding of the bytes; nil for UTF-8
}

// hideBytes applies hide to bytes if they are text. If this changes the text, it returns the new text in UTF-8, and the
// original encoding, which is nil for UTF-8. Otherwise it returns the bytes unchanged. It returns an error if the
// server says that the bytes are text but they cannot be read.
func hideBytes(mimeType string, data []byte, hide func([]byte) ([]byte, error)) ([]byte, encoding.Encoding, error) {
	readings, readable := readText(mimeType, data)
	if !readable {
		return nil, nil, errUnreadable(mimeType)
	}
	for _, r := range readings {
		hidden, err := hide(r.text)
		if err != nil {
			return nil, nil, unhiddenError("the file was withheld", err)
		}
		if !bytes.Equal(hidden, r.text) {
			return hidden, r.encoding, nil
		}
	}
	return data, nil, nil
}

// errUnreadable returns the error for a file that is said to be text but has an unknown encoding.
func errUnreadable(mimeType string) *core.Error {
	return core.Errorf(
		core.KindToolError, "relay.private",
		"the file was withheld: it is said to be text (%s), but its encoding is not known, so personal data in it "+
			"cannot be found", mimeType,
	).WithHint("request it in UTF-8, or with a charset in its MIME type")
}

// readText returns the ways to read bytes as text, the most likely one first. It returns none if the bytes are not
// text. A declared encoding comes first. A byte order mark, the MIME type, XML or HTML can declare one. Bytes in an
// encoding of seven bits, such as ISO-2022-JP, are also valid UTF-8. They are read in both ways, because a server can
// declare a wrong encoding. readable is false if the bytes are said to be text but cannot be read.
func readText(mimeType string, data []byte) (readings []textReading, readable bool) {
	claimed, charset := declaredText(mimeType, data)
	add := func(e encoding.Encoding) bool {
		text, ok := decodeWith(e, data, true)
		if ok {
			readings = append(readings, textReading{text, e})
		}
		return ok
	}
	isUTF8 := utf8.Valid(data)
	if isUTF8 && !isASCII(data) {
		return []textReading{{data, nil}}, true
	}
	declared := markedEncoding(data)
	if declared == nil {
		declared = findEncoding(charset, data)
	}
	switch {
	case declared != nil:
		add(declared)
	case isUTF7Name(charset):
		readings = append(readings, textReading{decodeUTF7(data), nil})
	}
	if e := guessUTF16(data); e != nil && len(readings) == 0 {
		add(e)
	}
	switch {
	case isUTF8:
		if bytes.Contains(data, []byte("\x1b$")) {
			add(japanese.ISO2022JP)
		}
		return append(readings, textReading{data, nil}), true
	case len(readings) > 0:
		return readings, true
	case isMostlyUTF8(data) || isUTF8Name(charset) && isPrintable(data):
		return []textReading{{bytes.ToValidUTF8(data, []byte("\uFFFD")), nil}}, true
	case charset != "" && !isUTF8Name(charset):
		return nil, false
	}
	if e := guessEncoding(mimeType, data); e != nil && add(e) {
		return readings, true
	}
	return nil, !claimed
}

// declaredText reports whether a MIME type, or a declaration in the first 1,024 bytes, says that the bytes are text. It
// also returns the declared charset in lower case, or "".
func declaredText(mimeType string, data []byte) (isText bool, charset string) {
	kind, parameters, err := mime.ParseMediaType(mimeType)
	if err != nil {
		kind, _, _ = strings.Cut(strings.ToLower(mimeType), ";")
		if found := charsetParameter.FindStringSubmatch(mimeType); found != nil {
			parameters = map[string]string{"charset": found[1]}
		}
	}
	charset = strings.ToLower(parameters["charset"])
	for _, declaration := range []*regexp.Regexp{xmlDeclaration, htmlDeclaration} {
		if found := declaration.FindSubmatch(data[:min(len(data), 1024)]); found != nil && charset == "" {
			charset = strings.ToLower(string(found[1]))
		}
	}
	kind = strings.TrimSpace(kind)
	isText = strings.HasPrefix(kind, "text/") || charset != "" || strings.HasSuffix(kind, "json") ||
		strings.HasSuffix(kind, "xml") || strings.HasSuffix(kind, "csv") || strings.HasSuffix(kind, "yaml") ||
		strings.HasSuffix(kind, "javascript") || strings.HasSuffix(kind, "sql")
	return isText, charset
}

var (
	charsetParameter = regexp.MustCompile(`(?i)charset\s*=\s*["']?([\w.:-]+)`)
	xmlDeclaration   = regexp.MustCompile(`(?i)^\s*<\?xml[^>]*\sencoding\s*=\s*["']([\w.:-]+)`)
	htmlDeclaration  = regexp.MustCompile(`(?i)<meta\s[^>]*\bcharset\s*=\s*["']?([\w.:-]+)`)
)

// findEncoding returns the encoding for the name of a charset. It returns nil if the name is empty or unknown, or if it
// means UTF-8 or ASCII. data helps to find the byte order of UTF-16.
func findEncoding(charset string, data []byte) encoding.Encoding {
	switch charset {
	case "", "utf-8", "utf8", "us-ascii", "ascii", "binary", "none", "unknown":
		return nil
	case "hz", "hz-gb-2312":
		return simplifiedchinese.HZGB2312
	case "utf-16", "utf16", "ucs-2", "unicode":
		if e := guessUTF16(data); e != nil {
			return e
		}
		return xunicode.UTF16(xunicode.BigEndian, xunicode.IgnoreBOM)
	case "utf-32", "utf-32be":
		return utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM)
	case "utf-32le":
		return utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM)
	}
	if e, err := htmlindex.Get(charset); err == nil && e != encoding.Replacement {
		return e
	}
	if e, err := ianaindex.IANA.Encoding(charset); err == nil {
		return e
	}
	return nil
}

func isUTF7Name(charset string) bool {
	return charset == "utf-7" || charset == "utf7" || charset == "unicode-1-1-utf-7"
}

func isUTF8Name(charset string) bool { return charset == "utf-8" || charset == "utf8" }

// markedEncoding returns the encoding for the byte order mark at the beginning of the data. It returns nil if there is
// no mark, or if it is the mark of UTF-8.
func markedEncoding(data []byte) encoding.Encoding {
	switch {
	case bytes.HasPrefix(data, []byte{0xFF, 0xFE, 0, 0}):
		return utf32.UTF32(utf32.LittleEndian, utf32.ExpectBOM)
	case bytes.HasPrefix(data, []byte{0, 0, 0xFE, 0xFF}):
		return utf32.UTF32(utf32.BigEndian, utf32.ExpectBOM)
	case bytes.HasPrefix(data, []byte{0xFF, 0xFE}), bytes.HasPrefix(data, []byte{0xFE, 0xFF}):
		return xunicode.UTF16(xunicode.LittleEndian, xunicode.ExpectBOM)
	}
	return nil
}

// decodeWith decodes data into UTF-8. U+FFFD replaces bytes that do not fit the encoding. It returns false if there are
// such bytes. If tolerant is true, it accepts one of them, and one more for each hundred characters.
func decodeWith(e encoding.Encoding, data []byte, tolerant bool) ([]byte, bool) {
	text, err := e.NewDecoder().Bytes(data)
	if err != nil {
		return nil, false
	}
	wrong := bytes.Count(text, []byte("\uFFFD"))
	return text, wrong == 0 || tolerant && wrong <= 1+utf8.RuneCount(text)/100
}

// guessUTF16 returns UTF-16 in the byte order that the zero bytes suggest. In UTF-16, most zero bytes are at even
// offsets or most are at odd offsets. It returns nil if the data is not UTF-16.
func guessUTF16(data []byte) encoding.Encoding {
	sample := data[:min(len(data), 64<<10)&^1]
	even, odd := 0, 0
	for i, b := range sample {
		switch {
		case b == 0 && i%2 == 0:
			even++
		case b == 0:
			odd++
		}
	}
	order := xunicode.LittleEndian
	switch {
	case even+odd == 0 || even > odd/4 && odd > even/4:
		return nil
	case even > odd:
		order = xunicode.BigEndian
	}
	e := xunicode.UTF16(order, xunicode.IgnoreBOM)
	if text, ok := decodeWith(e, sample, true); !ok || !isPrintable(text) {
		return nil
	}
	return e
}

// guessEncoding returns the encoding of text in an undeclared encoding of eight bits. It returns nil for bytes that do
// not look like text, and for images, sound and video.
func guessEncoding(mimeType string, data []byte) encoding.Encoding {
	kind, _, _ := strings.Cut(mimeType, "/")
	if kind == "image" || kind == "audio" || kind == "video" || !isPrintable(data) {
		return nil
	}
	text, ok := decodeWith(japanese.ShiftJIS, data, false)
	if ok && isMostlyDense(text) && hasCommonLeads(data, 0x81, 0x9F) {
		return japanese.ShiftJIS
	}
	text, ok = decodeWith(simplifiedchinese.GB18030, data, false)
	if ok && isMostlyDense(text) && hasCommonLeads(data, 0xA1, 0xD7) {
		return simplifiedchinese.GB18030
	}
	for _, e := range []encoding.Encoding{charmap.Windows1251, charmap.Windows1252} {
		if _, ok := decodeWith(e, data, false); ok && (e != charmap.Windows1251 || hasLongRuns(data)) {
			return e
		}
	}
	return charmap.ISO8859_1
}

func isASCII(data []byte) bool {
	for _, b := range data {
		if b >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// isMostlyUTF8 reports whether data is UTF-8 with a few damaged characters. It has more valid characters beyond ASCII
// than invalid bytes.
func isMostlyUTF8(data []byte) bool {
	good, bad := 0, 0
	for i := 0; i < len(data); {
		if data[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRune(data[i:])
		if i += n; r == utf8.RuneError && n == 1 {
			bad++
		} else {
			good++
		}
	}
	return good > bad && isPrintable(data)
}

// decodeUTF7 decodes UTF-7. In this encoding, characters beyond ASCII are Base64 of UTF-16, between a plus sign and a
// minus sign.
func decodeUTF7(data []byte) []byte {
	out := make([]byte, 0, len(data))
	for i := 0; i < len(data); i++ {
		if data[i] != '+' {
			out = append(out, data[i])
			continue
		}
		end := i + 1
		for end < len(data) && (isAlphanumeric(data[end]) || data[end] == '+' || data[end] == '/') {
			end++
		}
		units, err := base64.RawStdEncoding.DecodeString(string(data[i+1 : end]))
		if err != nil { // the last bits of the Base64 are not zero
			units, _ = base64.RawStdEncoding.DecodeString(string(data[i+1:end]) + "A")
		}
		if end == i+1 {
			out = append(out, '+')
		}
		for j := 0; j+1 < len(units); j += 2 {
			r := rune(units[j])<<8 | rune(units[j+1])
			if utf16.IsSurrogate(r) && j+3 < len(units) {
				r = utf16.DecodeRune(r, rune(units[j+2])<<8|rune(units[j+3]))
				j += 2
			}
			out = utf8.AppendRune(out, r)
		}
		if i = end - 1; end < len(data) && data[end] == '-' {
			i = end
		}
	}
	return out
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// isPrintable reports whether data has no control characters except tab, line feed, carriage return, form feed and
// escape.
func isPrintable(data []byte) bool {
	for _, b := range data {
		if b < ' ' && b != '\t' && b != '\n' && b != '\r' && b != '\f' && b != 0x1B {
			return false
		}
	}
	return true
}

// isMostlyDense reports whether at least nine in ten characters beyond ASCII are common Chinese or Japanese ones.
func isMostlyDense(text []byte) bool {
	dense, all := 0, 0
	for _, r := range string(text) {
		if r < utf8.RuneSelf {
			continue
		}
		all++
		isCommon := unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) && (r < 0xFF66 || r > 0xFF9F)
		if isCommon || r >= 0x3000 && r <= 0x303F {
			dense++
		}
	}
	return all >= 2 && dense*10 >= all*9
}

// hasCommonLeads reports whether, of the characters beyond ASCII, at least seven in ten begin with a byte from low to
// high. It assumes that each of these characters has two bytes. The common characters of an encoding are in one such
// range. Text in other encodings mostly has bytes outside the range.
func hasCommonLeads(data []byte, low, high byte) bool {
	common, all := 0, 0
	for i := 0; i < len(data); i++ {
		if data[i] < utf8.RuneSelf {
			continue
		}
		all++
		if data[i] >= low && data[i] <= high {
			common++
		}
		i++
	}
	return common*10 >= all*7
}

// hasLongRuns reports whether at least seven in ten letters beyond ASCII stand in runs of three or more, as in Cyrillic
// words.
func hasLongRuns(data []byte) bool {
	inRuns, all := 0, 0
	for i := 0; i < len(data); {
		j := i
		for j < len(data) && data[j] >= 0xC0 {
			j++
		}
		if n := j - i; n >= 3 {
			inRuns += n
		}
		all += j - i
		i = max(j, i+1)
	}
	return all > 0 && inRuns*10 >= all*7
}
