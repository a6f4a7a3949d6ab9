package catalog

import (
	"slices"
	"strings"

	"retort/internal/catalog/sanitize"
	"retort/internal/core"
)

const (
	maxPart   = 400     // bytes of one text; of a longer text only the beginning and the end are used
	maxJoined = 4 << 10 // bytes of the joined texts
)

// checkTogether withholds a tool's definition if its fields are harmless one by one, but give instructions to the
// model when they are read one after the other. Examples are a title that continues in the description, and the names
// of several properties.
func (c *definitionCleaner) checkTogether(t *core.Tool) {
	if c.withheld != "" {
		return
	}
	for _, row := range [][]string{{t.Title, t.Description}, {t.Name, t.Description}, c.prose, c.names, c.all} {
		if f, text, ok := c.scanTogether(row); ok {
			c.where = [][]byte{[]byte("several fields combined")}
			c.addFlags(text, []sanitize.TextFinding{f})
			c.withholdDefinition()
			c.where = nil
			return
		}
	}
}

// scanTogether joins neighbouring texts of the list row and searches the joined text for suspicious parts. It returns
// the first suspicious part that extends over several of the texts, and the joined text that contains it.
func (c *definitionCleaner) scanTogether(row []string) (found sanitize.TextFinding, text string, ok bool) {
	row = slices.DeleteFunc(slices.Clone(row), func(part string) bool { return strings.TrimSpace(part) == "" })
	for len(row) > 1 {
		var b strings.Builder
		var ends []int // of all parts but the last
		n := 0
		for ; n < len(row) && b.Len() < maxJoined; n++ {
			if n > 0 {
				ends = append(ends, b.Len())
				b.WriteByte(' ')
			}
			b.WriteString(shortenPart(row[n]))
		}
		for _, f := range c.scanner.Scan(b.String()) {
			if slices.ContainsFunc(ends, func(end int) bool { return f.Start < end && end+1 < f.End }) {
				return f, b.String(), true
			}
		}
		row = row[max(1, n-1):] // the last one is also the first of the next
	}
	return sanitize.TextFinding{}, "", false
}

// shortenPart returns the beginning and the end of a long text, as two paragraphs, and leaves out the middle. It does
// not shorten a short text.
func shortenPart(text string) string {
	text = strings.TrimSpace(text)
	if len(text) <= 2*maxPart {
		return text
	}
	return strings.ToValidUTF8(text[:maxPart], "") + "\n\n" + strings.ToValidUTF8(text[len(text)-maxPart:], "")
}
