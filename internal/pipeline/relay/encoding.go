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

// textReading is one way to read bytes as text.
type textReading struct {
	text     []byte            // in UTF-8
	encoding encoding.Encoding // of the bytes; nil for UTF-8
}

// hideBytes hides personal data in bytes from a server, if they are text. Text in which something was hidden is
// returned in UTF-8 with the encoding that it had, nil if that was UTF-8. Other bytes are returned as they are. It
// returns an error for bytes that are said to be text and cannot be read.
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

func errUnreadable(mimeType string) *core.Error {
	return core.Errorf(
		core.KindToolError, "relay.private",
		"the file was withheld: it is said to be text (%s), but its encoding is not known, so personal data in it "+
			"cannot be found", mimeType,
	).WithHint("request it in UTF-8, or with a charset in its MIME type")
}

// readText returns the ways to read bytes as text, the most likely one first. There is none if they are not text. A
// declared encoding comes first: that of a byte order mark, of the MIME type, or of XML or HTML. Bytes in an encoding
// of seven bits are UTF-8 as well, and are read in both ways, since a server can declare a wrong one. readable is false
// if the bytes are said to be text and cannot be read.
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

// declaredText reports whether a MIME type, or a declaration in the text itself, says that the bytes are text. It also
// returns the charset that is declared.
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

// findEncoding returns the encoding with a declared name, or nil if there is none, if the name is not known, or if it
// is that of UTF-8.
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

// markedEncoding returns the encoding that a byte order mark says, or nil.
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

// decodeWith decodes bytes. It returns false if some do not fit the encoding. With tolerant set, one in a hundred
// characters may not fit, and U+FFFD replaces it.
func decodeWith(e encoding.Encoding, data []byte, tolerant bool) ([]byte, bool) {
	text, err := e.NewDecoder().Bytes(data)
	if err != nil {
		return nil, false
	}
	wrong := bytes.Count(text, []byte("\uFFFD"))
	return text, wrong == 0 || tolerant && wrong <= 1+utf8.RuneCount(text)/100
}

// guessUTF16 returns UTF-16 in the byte order that the bytes of value 0 in a sample suggest, since most have them at
// even or at odd offsets. It returns nil if they are not UTF-16.
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

// guessEncoding returns the encoding of text in an undeclared encoding of eight bits, or nil for bytes that look like
// no text, or are said to be a picture, sound or film.
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

// isMostlyUTF8 reports whether bytes that are not valid UTF-8 have more characters beyond ASCII in UTF-8 than bytes
// that do not fit, as in a text with a damaged character.
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

// decodeUTF7 decodes UTF-7, in which Base64 of UTF-16 stands between a plus sign and a minus sign.
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
		if err != nil { // the last bits are not zero
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

// isPrintable reports whether bytes have no control characters other than those that texts have.
func isPrintable(data []byte) bool {
	for _, b := range data {
		if b < ' ' && b != '\t' && b != '\n' && b != '\r' && b != '\f' && b != 0x1B {
			return false
		}
	}
	return true
}

// isMostlyDense reports whether most letters beyond ASCII are Chinese, Japanese or Korean, and common ones.
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

// hasCommonLeads reports whether most characters beyond ASCII begin with a byte in a range, if each has two bytes. The
// common characters of an encoding are in one range, and letters of other encodings mostly in another.
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

// hasLongRuns reports whether most letters beyond ASCII stand next to each other, as in Cyrillic words.
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
