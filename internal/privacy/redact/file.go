package redact

import (
	"encoding/json"
	"path"
	"strings"
	"unicode/utf8"

	"retort/internal/core"
)

// fileFormats are the formats, by the extension of a file, in which a token may become a value: no program that opens
// such a file displays remote content or runs anything that the file contains, apart from formulas of tables.
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

// ShowFile returns the content of a file with values in the place of its tokens, for a person, and whether there were
// any. A program wrote the file, so it could send the values elsewhere when a person opens it: by an image of a web
// page, or a formula of a table. The error says why a file with tokens cannot have values: its format is none of plain
// data, it contains formulas, or it would have more than most bytes.
func (s *Session) ShowFile(name string, content []byte, most int) (out []byte, restored bool, err *core.Error) {
	if err := s.tokens.Refresh(); err != nil {
		return nil, false, core.Errorf(core.KindInternal, "pii.files", "the tokens of this session cannot be read: %w", err)
	}
	if !utf8.Valid(content) || !s.HasTokens(content) {
		return content, false, nil
	}
	format := fileFormats[strings.ToLower(path.Ext(name))]
	if format == 0 {
		return nil, false, core.Errorf(
			core.KindPolicy, "pii.files", "it is no file of plain data: whatever opens it could send the values elsewhere",
		).
			WithHint("have the program write .csv, .tsv, .json, .jsonl, .txt or .log, or use retort workspace export")
	}
	spell := func(value string) string { return value }
	if format == jsonFormat {
		spell = inJSON
	}
	text, fits := s.replaceTokens(string(content), spell, most)
	if !fits {
		return nil, false, core.Errorf(
			core.KindLimit, "pii.files", "it would have more than %d bytes with the values", most,
		).WithHint("write smaller files")
	}
	if format == tableFormat && hasFormulas(text) {
		return nil, false, core.Errorf(
			core.KindPolicy, "pii.files",
			"it contains what a spreadsheet takes for a formula, which could send the values elsewhere",
		).
			WithHint("have the program write cells that do not begin with =, @, + or -, or use retort workspace export")
	}
	return []byte(text), true, nil
}

// inJSON returns a value as it is written between the quotes of a JSON string.
func inJSON(value string) string {
	quoted, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(quoted[1 : len(quoted)-1])
}

// hasFormulas reports whether a spreadsheet could compute something in a text of cells, whatever separates them. Numbers
// with a sign are no formulas.
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

// isLetter reports whether a text begins with a character outside of ASCII that is not a blank or a sign without width.
func isLetter(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return r >= 0x7f && !strings.ContainsRune("\u007f\u00a0\u00ad\u200b\u200c\u200d\u2060\u3000\ufeff\uff02", r) &&
		!(0x2000 <= r && r <= 0x200f)
}

// isNumber reports whether the rest of a cell has only what numbers and telephone numbers have.
func isNumber(rest string) bool {
	if end := strings.IndexAny(rest, "\n\r,;\t|"); end >= 0 {
		rest = rest[:end]
	}
	return strings.Trim(rest, "0123456789 .:/()-\"%eE") == ""
}
