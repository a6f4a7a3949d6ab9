package redact

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"retort/internal/privacy/pii"
)

// FindCrossings looks in a call's arguments for known values in clear text that a server would receive from other
// servers. A crossing is such a value that this server has not sent itself, and that no rule lets this server receive.
// Values written in percent-encoding, HTML escapes or Base64 are found too. FindCrossings does not report values of
// types that programs see only as tokens, values that the model wrote itself (see isSpoken), and single common words.
func (s *Session) FindCrossings(
	server string, arguments json.RawMessage, isSpoken func(value string) bool,
) (crossings []BorderCrossing) {
	if !s.origins.hasOthers(server) {
		return nil
	}
	type foundValue struct {
		typ  pii.Type
		text string
	}
	seen := map[foundValue]bool{}
	for _, text := range argumentTexts(arguments) {
		for _, f := range s.screen.scanner.FindKnown(nil, s.known, []byte(text)) {
			v := foundValue{f.Type, text[f.Start:f.End]}
			if seen[v] || s.screen.modes[f.Type] != Border || s.screen.isRevealed(server, f.Type) {
				continue
			}
			seen[v] = true
			if from := s.originsOf(f.Type, v.text, server); len(from) > 0 && !isSpoken(v.text) && !isCommonWord(v.text) {
				crossings = addCrossing(crossings, BorderCrossing{Type: f.Type, From: from})
			}
		}
	}
	return crossings
}

// addCrossing appends a crossing to a list, unless the list already has an equal one.
func addCrossing(list []BorderCrossing, c BorderCrossing) []BorderCrossing {
	for _, old := range list {
		if old.Type == c.Type && old.Inside == c.Inside && slices.Equal(old.From, c.From) {
			return list
		}
	}
	return append(list, c)
}

// originsOf returns the servers, apart from the given one, that have sent a value. It returns nil if the given server
// has sent the value too. If the sender is unknown, each other server that has sent a value of this type may be the
// origin, so originsOf returns all of them.
func (s *Session) originsOf(t pii.Type, value, server string) []string {
	from := s.origins.of(t, value)
	if e, ok := s.tokens.FindValue(string(t), value); ok {
		for _, name := range e.From {
			if name != programSource && name != modelSource && !slices.Contains(from, name) {
				from = append(from, name)
			}
		}
	}
	if slices.Contains(from, server) {
		return nil
	}
	if len(from) == 0 {
		from = slices.DeleteFunc(s.origins.ofType(t), func(name string) bool { return name == server })
	}
	slices.Sort(from)
	return from
}

// isCommonWord reports whether a value is a single word of ASCII letters that is a common word of a language or has
// fewer than four letters. Such a word is too common to identify a person.
func isCommonWord(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool { return r >= utf8.RuneSelf || !unicode.IsLetter(r) }) &&
		pii.IsCommonWord(value)
}

// argumentTexts returns the strings, the numbers and the keys of objects in a JSON document. The decoded forms of each
// string and key follow it (see appendDecoded).
func argumentTexts(document json.RawMessage) (texts []string) {
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	for {
		token, err := d.Token()
		if err != nil {
			return texts
		}
		switch t := token.(type) {
		case string:
			texts = appendDecoded(texts, t, maxDecodings)
		case json.Number:
			texts = append(texts, t.String())
		}
	}
}

// maxDecodings bounds how many nested encodings of a text are decoded, for example Base64 inside percent-encoding.
const maxDecodings = 4

// appendDecoded appends a text to texts, and then the decoded forms of the text. If the text is JSON, the decoded forms
// are the strings in it. For any other text, they are the text with percent-encoding and HTML escapes undone, and the
// content of any Base64 in it. The parameter most limits how many levels of nested encodings are decoded.
func appendDecoded(texts []string, text string, most int) []string {
	texts = append(texts, text)
	if most == 0 {
		return texts
	}
	inner := strings.TrimSpace(text)
	if len(inner) > 1 && strings.IndexByte(`{["`, inner[0]) >= 0 && json.Valid([]byte(inner)) {
		d := json.NewDecoder(strings.NewReader(inner))
		d.UseNumber()
		for token, err := d.Token(); err == nil; token, err = d.Token() {
			if t, ok := token.(string); ok {
				texts = appendDecoded(texts, t, most-1)
			}
		}
		return texts
	}
	if plain := unescapeText(text); plain != text {
		texts = appendDecoded(texts, plain, most-1)
	}
	if decoded := decodedRuns(text); decoded != "" {
		texts = appendDecoded(texts, decoded, most-1)
	}
	if joined, ok := joinBase64(text); ok {
		if decoded := decodedRuns(joined); decoded != "" {
			texts = appendDecoded(texts, decoded, most-1)
		}
	}
	return texts
}

// decodedRuns returns the decoded content of each run of Base64 in a text. A line break follows each content.
func decodedRuns(text string) string {
	var decoded []byte
	eachBase64([]byte(text), func(_, _ int, plain []byte) bool {
		decoded = append(append(decoded, plain...), '\n')
		return false
	})
	return string(decoded)
}

// joinBase64 joins lines of Base64 that have the same length, because long Base64 is often broken into such lines. The
// last line may be shorter. Blanks around all lines are removed. joined is false if there is nothing to join.
func joinBase64(text string) (one string, joined bool) {
	if strings.IndexByte(text, '\n') < 0 {
		return text, false
	}
	var out strings.Builder
	length := 0 // length of the lines of Base64 to which this line may belong, or 0
	for line := range strings.Lines(text) {
		run := strings.TrimSpace(line)
		isRun := (len(run) >= 4 || run != "" && length > 0) && base64End([]byte(run), 0) == len(run)
		if isRun && len(run) <= length {
			joined = true
		} else {
			out.WriteByte('\n')
		}
		out.WriteString(run)
		if !isRun || len(run) < length {
			length = 0
		} else {
			length = len(run)
		}
	}
	return out.String(), joined
}
