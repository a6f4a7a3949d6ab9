package redact

import (
	"encoding/json"
	"path"
	"strings"
	"unicode/utf8"

	"retort/internal/core"
)

// fileFormats lists the extensions of files in which tokens may be replaced by values. Only formats are listed whose
// programs load no remote content and execute nothing in the file, apart from spreadsheet formulas.
var fileFormats = map[string]fileFormat{
	".txt": textFormat, ".log": textFormat, ".csv": tableFormat, ".tsv": tableFormat,
	".json": jsonFormat, ".jsonl": jsonFormat, ".ndjson": jsonFormat,
}

type fileFormat byte

const (
	textFormat fileFormat = iota + 1
	tableFormat
	jsonFormat
)

// ShowFile returns a file's content for a person to read, with its tokens replaced by values, and reports whether
// there were any tokens. The file was written by a program, so opening it could send the values elsewhere: through an
// image in a web page, or a spreadsheet formula. Therefore ShowFile returns an error for a file with tokens if its
// format is not plain data, if it contains formulas, or if the result would exceed the given number of bytes.
func (s *Session) ShowFile(name string, content []byte, most int) (out []byte, restored bool, err *core.Error) {
	if err := s.tokens.RefreshTokens(); err != nil {
		return nil, false, core.Errorf(core.KindInternal, "pii.files", "the tokens of this session cannot be read: %w", err)
	}
	if !utf8.Valid(content) || !s.HasTokens(content) {
		return content, false, nil
	}
	format := fileFormats[strings.ToLower(path.Ext(name))]
	if format == 0 {
		return nil, false, core.Errorf(
			core.KindPolicy, "pii.files", "its format is not plain data: an application that opens the file could send the values elsewhere",
		).
			WithHint("write .csv, .tsv, .json, .jsonl, .txt or .log instead, or use retort workspace export")
	}
	spell := func(value string) string { return value }
	if format == jsonFormat {
		spell = inJSON
	}
	text, fits := s.replaceTokens(string(content), spell, most)
	if !fits {
		return nil, false, core.Errorf(
			core.KindLimit, "pii.files", "it would exceed %d bytes with the values", most,
		).WithHint("write smaller files")
	}
	if format == tableFormat && hasFormulas(text) {
		return nil, false, core.Errorf(
			core.KindPolicy, "pii.files",
			"it contains text that a spreadsheet treats as a formula, which could send the values elsewhere",
		).
			WithHint("write cells that do not begin with =, @, + or -, or use retort workspace export")
	}
	return []byte(text), true, nil
}

// inJSON returns a value escaped for use inside a JSON string, without quotes.
func inJSON(value string) string {
	quoted, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(quoted[1 : len(quoted)-1])
}

// hasFormulas reports whether a spreadsheet could evaluate a cell of the text as a formula, whichever of the usual
// column separators it uses. Signed numbers do not count as formulas.
func hasFormulas(text string) bool {
	text = strings.TrimPrefix(text, "\ufeff")
	first := strings.ToLower(strings.TrimLeft(text[:min(len(text), 1024)], " \t\r\n\"'"))
	for _, other := range []string{"id;", "sep=", "<"} { // another format, or another separator
		if strings.HasPrefix(first, other) {
			return true
		}
	}
	begins := true
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case strings.IndexByte("\n\r,;\t|", c) >= 0:
			begins = true
		case c == '"' || c == '\'' || c <= ' ' || c >= 0x7f: // quotes, blanks and other letters in front of the first sign
			begins = begins && !isLetter(text[i:])
		case begins && (c == '=' || c == '@'), begins && (c == '+' || c == '-') && !isNumber(text[i+1:]):
			return true
		default:
			begins = false
		}
	}
	return false
}

// isLetter reports whether a text begins with a visible non-ASCII character. hasFormulas treats every such character
// as a letter.
func isLetter(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return r >= 0x7f && !strings.ContainsRune("\u007f\u00a0\u00ad\u200b\u200c\u200d\u2060\u3000\ufeff\uff02", r) &&
		!(0x2000 <= r && r <= 0x200f)
}

// isNumber reports whether the rest of a cell, after a leading + or -, has only characters that occur in numbers and
// phone numbers. In that case the cell is a signed number and not a formula.
func isNumber(rest string) bool {
	if end := strings.IndexAny(rest, "\n\r,;\t|"); end >= 0 {
		rest = rest[:end]
	}
	return strings.Trim(rest, "0123456789 .:/()-\"%eE") == ""
}
