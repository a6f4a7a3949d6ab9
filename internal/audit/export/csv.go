package export

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"retort/internal/audit"
)

// csvTable formats entries as CSV according to RFC 4180. Text is in quotes and numbers are not. Each entry is one
// line, which ends with CR LF.
type csvTable struct {
	bodies bool
	buf    []byte
}

func (t *csvTable) headerLine() []byte {
	names := "chain,seq,at,kind,execution,session,principal,client,server,tool,effect,status,risk,duration_ms,bytes,tokens_returned,tokens_avoided,facts,hash"
	if t.bodies {
		names += ",body,erased"
	}
	return []byte(names + "\r\n")
}

func (t *csvTable) encodeRow(e *audit.Entry) []byte {
	f := factsOf(e)
	t.buf = t.buf[:0]
	t.appendText(e.Chain)
	t.appendNumber(float64(e.Seq))
	t.appendText(e.At.UTC().Format(time.RFC3339Nano))
	for _, s := range []string{string(e.Kind), e.Execution, e.Session, e.Principal, f.Client, e.Server, e.Tool, f.Effect, e.Status} {
		t.appendText(s)
	}
	if e.Risk != nil {
		t.appendNumber(float64(*e.Risk))
	} else {
		t.buf = append(t.buf, ',')
	}
	for _, n := range []float64{e.Millis, float64(e.Bytes), float64(e.Returned), float64(e.Avoided)} {
		t.appendNumber(n)
	}
	t.appendText(string(e.Facts))
	t.appendText(e.Hash)
	if t.bodies {
		t.appendText(string(e.Body))
		t.appendText(strconv.FormatBool(e.Erased))
	}
	t.buf[len(t.buf)-1] = '\r'
	t.buf = append(t.buf, '\n')
	return t.buf
}

func (t *csvTable) appendNumber(n float64) {
	t.buf = append(strconv.AppendFloat(t.buf, n, 'f', -1, 64), ',')
}

func (t *csvTable) appendText(s string) {
	t.buf = append(t.buf, '"')
	t.buf = append(t.buf, strings.ReplaceAll(neutralizeFormula(s), `"`, `""`)...)
	t.buf = append(t.buf, `",`...)
}

// neutralizeFormula changes a text so that no spreadsheet interprets a part of it as a formula. It inserts an
// apostrophe wherever a formula could begin: at the beginning of the text or after a character that may separate
// cells. It also escapes unprintable characters, so that the text stays in one line.
func neutralizeFormula(s string) string {
	if isPlain(s) {
		return s
	}
	b := make([]byte, 0, len(s)+8)
	begins := true // of a cell
	for _, r := range s {
		if begins {
			if strings.ContainsRune(formulaStarters, r) {
				b = append(b, '\'')
			}
			begins = isSkipped(r)
		}
		begins = begins || isSeparator(r)
		b = appendVisible(b, r)
	}
	return string(b)
}

// formulaStarters lists the characters that can begin a formula, including full-width, small and mathematical forms.
const formulaStarters = "=+-@＝＋－＠﹢﹣﹦﹫−"

// isSeparator reports whether a spreadsheet may interpret a character as the end of a cell.
func isSeparator(r rune) bool { return r == ',' || r == ';' || r == '|' || r >= '\t' && r <= '\r' }

// isSkipped reports whether a spreadsheet may ignore a character in front of a formula.
func isSkipped(r rune) bool {
	return r == '"' || r == '\'' || r == '`' || unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) ||
		unicode.Is(unicode.Zs, r)
}

// isPlain reports whether a text has only characters that need no escaping, which is true of most texts.
func isPlain(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.' || c == ':') && (i == 0 || c != '-') {
			return false
		}
	}
	return true
}

// appendVisible appends a character. It escapes the character if it is invisible or would end the line.
func appendVisible(b []byte, r rune) []byte {
	switch {
	case r >= ' ' && r < utf8.RuneSelf-1:
		return append(b, byte(r))
	case r == '\n':
		return append(b, `\n`...)
	case r == '\r':
		return append(b, `\r`...)
	case r == '\t':
		return append(b, `\t`...)
	case unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029':
		return fmt.Appendf(b, `\u%04x`, r)
	}
	return utf8.AppendRune(b, r)
}
