package relay

import (
	"bytes"
	"mime"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/simplifiedchinese"
	xunicode "golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// decodeText returns bytes from a server as UTF-8, so that personal data in them is found. Their encoding is that of
// a byte order mark, or that of the MIME type, or one that is guessed. isText is false if the bytes are not text.
// undecided is set if the MIME type says that they are text, and no encoding fits.
func decodeText(mimeType string, data []byte) (text []byte, isText, undecided bool) {
	if marked := markedEncoding(data); marked != nil {
		if text, ok := decodeWith(marked, data); ok {
			return text, true, false
		}
		return nil, false, true
	}
	if utf8.Valid(data) {
		return data, true, false
	}
	claimed, charset := textType(mimeType)
	if e, err := htmlindex.Get(charset); charset != "" && err == nil {
		if text, ok := decodeWith(e, data); ok {
			return text, true, false
		}
		return nil, false, claimed
	}
	if text, ok := guessText(data); ok {
		return text, true, false
	}
	return nil, false, claimed
}

// textType reports whether a MIME type says that the bytes are text, and returns the charset that it names.
func textType(mimeType string) (isText bool, charset string) {
	kind, parameters, err := mime.ParseMediaType(mimeType)
	if err != nil {
		kind, _, _ = strings.Cut(strings.ToLower(mimeType), ";")
	}
	charset = parameters["charset"]
	isText = strings.HasPrefix(kind, "text/") || charset != "" || strings.HasSuffix(kind, "json") ||
		strings.HasSuffix(kind, "xml") || strings.HasSuffix(kind, "csv") || strings.HasSuffix(kind, "yaml")
	return isText, charset
}

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

func decodeWith(e encoding.Encoding, data []byte) ([]byte, bool) {
	text, err := e.NewDecoder().Bytes(data)
	if err != nil || bytes.ContainsRune(text, utf8.RuneError) {
		return nil, false
	}
	return text, true
}

// guessText decodes text without a byte order mark whose encoding is not known. It returns false for bytes that look
// like no text.
func guessText(data []byte) ([]byte, bool) {
	if even, odd := countZeros(data); even+odd > 0 {
		for _, try := range []struct {
			zeros int
			order xunicode.Endianness
		}{{odd, xunicode.LittleEndian}, {even, xunicode.BigEndian}} {
			if text, ok := decodeWith(xunicode.UTF16(try.order, xunicode.IgnoreBOM), data); ok && try.zeros*4 > len(data)/2 && isPrintable(text) {
				return text, true
			}
		}
		return nil, false
	}
	if !isPrintable(data) {
		return nil, false
	}
	if text, ok := decodeWith(japanese.ShiftJIS, data); ok && isMostlyDense(text) && hasCommonLeads(data, 0x81, 0x9F) {
		return text, true
	}
	if text, ok := decodeWith(simplifiedchinese.GB18030, data); ok && isMostlyDense(text) && hasCommonLeads(data, 0xA1, 0xD7) {
		return text, true
	}
	for _, e := range []encoding.Encoding{charmap.Windows1251, charmap.Windows1252, charmap.ISO8859_1} {
		if text, ok := decodeWith(e, data); ok && (e != charmap.Windows1251 || hasLongRuns(data)) {
			return text, true
		}
	}
	return nil, false
}

// countZeros returns how many bytes at even and at odd offsets are zero.
func countZeros(data []byte) (even, odd int) {
	for i, b := range data {
		switch {
		case b == 0 && i%2 == 0:
			even++
		case b == 0:
			odd++
		}
	}
	return even, odd
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
		if unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) && (r < 0xFF66 || r > 0xFF9F) || r >= 0x3000 && r <= 0x303F {
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
