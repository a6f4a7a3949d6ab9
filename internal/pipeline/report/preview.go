package report

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"retort/internal/tokens"
)

// maxKeys bounds how many keys of an object a preview shows.
const maxKeys = 40

// previewMaker creates previews of values. It hides personal data before it cuts a value, because a part of personal
// data might not be recognised.
type previewMaker struct {
	hide func(string) string
}

// previewValue describes a value in at most limit tokens: its type, its counts, and its first and last items.
func (v previewMaker) previewValue(value []byte, limit int) string {
	value = trimSpace(value)
	said := ""
	switch value[0] {
	case '[':
		said = v.previewArray(value, ", one per line", limit)
	case '{':
		said = v.previewObject(value, limit)
	case '"':
		s := stringText(value)
		said = fmt.Sprintf("text of %d characters, %d lines\n%s", utf8.RuneCountInString(s), strings.Count(s, "\n")+1, v.previewEnds(s, limit-20))
	default:
		said = string(value)
	}
	return tokens.PrefixWithin(said, limit)
}

func (v previewMaker) previewArray(value []byte, where string, limit int) string {
	var first, last []byte
	for item := range arrayItems(value) {
		if last = item; first == nil {
			first = item
		}
	}
	if first == nil {
		return "an empty array"
	}
	t := profileArray(value)
	lines := []string{fmt.Sprintf("array of %d %s%s", t.rows, strings.Join(pluralKinds(byCount(t.kinds)), " and "), where)}
	for _, c := range t.columns {
		lines = append(lines, c.describeColumn(t, v.hide))
	}
	if t.more > 0 {
		lines = append(lines, fmt.Sprintf("… %d more keys", t.more))
	}
	return fmt.Sprintf(
		"%s\nfirst: %s\nlast: %s", tokens.PrefixWithin(v.hide(strings.Join(lines, "\n")), limit*6/10),
		v.previewRow(first, limit/5), v.previewRow(last, limit/6),
	)
}

func pluralKinds(kinds []string) []string {
	for i := range kinds {
		if kinds[i] != "null" {
			kinds[i] += "s"
		}
	}
	return kinds
}

func (v previewMaker) previewObject(value []byte, limit int) string {
	var b strings.Builder
	var most []byte // the array that is most of it
	n, name := 0, ""
	for key, item := range objectMembers(value) {
		if kindOf(item) == "array" && len(item) > len(value)/2 {
			most, name = item, key
		}
		if n++; n <= maxKeys {
			b.WriteString(key + v.previewMember(key, item) + "\n")
		}
	}
	said := fmt.Sprintf("object with %d keys\n%s", n, tokens.PrefixWithin(v.hide(b.String()), limit/2-10))
	if most != nil {
		said += fmt.Sprintf("%s is an %s", v.hide(name), v.previewArray(most, "", limit/2-10))
	}
	return said
}

// previewMember returns the text that follows the key of an object's member in a preview. The text is the value if
// that is short, and otherwise a description of the value.
func (v previewMaker) previewMember(key string, value []byte) string {
	switch kind := kindOf(value); {
	case kind == "array":
		return " (" + summarizeTable(profileArray(value)) + ")"
	case (kind == "object" || kind == "string") && len(value) > 80:
		return fmt.Sprintf(" (%s of %d bytes)", kind, len(value))
	}
	return ": " + hideValue(key, string(value), v.hide)
}

// summarizeTable describes an array in a few words, such as "array of 20 objects {id, name}".
func summarizeTable(t *arrayTable) string {
	if t.rows == 0 {
		return "empty array"
	}
	var names []string
	for _, c := range t.columns {
		names = append(names, c.name)
	}
	return strings.TrimSuffix(
		fmt.Sprintf("array of %d %s {%s}", t.rows, strings.Join(pluralKinds(byCount(t.kinds)), " and "), strings.Join(names, ", ")),
		" {}",
	)
}

// previewEnds returns the beginning and the end of a text in about limit tokens, with personal data hidden.
func (v previewMaker) previewEnds(text string, limit int) string {
	if limit < 40 {
		return ""
	}
	head := tokens.PrefixWithin(v.hiddenHead(text, limit/2), limit/2)
	tail := v.hiddenTail(text, limit/2)
	tail = tail[max(0, len(tail)-min(len(head), max(0, len(text)-len(head)))):]
	return fmt.Sprintf("%s\n… of %d bytes …\n%s", head, len(text), strings.ToValidUTF8(tail, ""))
}

// hideMargin is a number of bytes, longer than any personal value that can be recognised. Where a text is cut, the
// bytes within this distance of the cut are not shown, because they may be part of a personal value.
const hideMargin = 1 << 10

// bytesForTokens returns how many bytes at the beginning or end of a text are searched for personal data, so that the
// given number of tokens can then be shown.
func bytesForTokens(tokens int) int { return tokens*16 + hideMargin }

// hiddenHead returns the beginning of a text with personal data hidden.
func (v previewMaker) hiddenHead(text string, tokens int) string {
	if len(text) <= bytesForTokens(tokens) {
		return v.hide(text)
	}
	shown := v.hide(strings.ToValidUTF8(text[:bytesForTokens(tokens)], ""))
	return strings.ToValidUTF8(shown[:max(0, len(shown)-hideMargin)], "")
}

// hiddenTail returns the end of a text with personal data hidden.
func (v previewMaker) hiddenTail(text string, tokens int) string {
	if len(text) <= bytesForTokens(tokens) {
		return v.hide(text)
	}
	shown := v.hide(strings.ToValidUTF8(text[len(text)-bytesForTokens(tokens):], ""))
	return strings.ToValidUTF8(shown[min(len(shown), hideMargin):], "")
}

// previewRow describes an array item in at most limit tokens.
func (v previewMaker) previewRow(item []byte, limit int) string {
	if len(item) > 64<<10 && item[0] == '{' {
		return v.previewObject(item, limit)
	}
	if len(item) > 64<<10 {
		return fmt.Sprintf("%s of %d bytes", kindOf(item), len(item))
	}
	return tokens.PrefixWithin(v.hide(string(item)), limit)
}
