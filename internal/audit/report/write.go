package report

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"retort/internal/core"
)

// pageWriter writes a report as a Markdown or HTML page.
type pageWriter struct {
	*PeriodReport
	title    string
	sections []reportSection
	out      *bufio.Writer
}

// Write writes the report in a format. If the format is unknown, the error is of kind invalid_arguments.
func (r *PeriodReport) Write(w io.Writer, f ReportFormat) error {
	p := pageWriter{PeriodReport: r, title: "Retort: " + standards[r.Standard].title, sections: r.allSections(), out: bufio.NewWriter(w)}
	switch f {
	case JSON:
		out := json.NewEncoder(w)
		out.SetIndent("", "  ")
		return out.Encode(r)
	case HTML:
		p.renderHTML()
		return p.out.Flush()
	case Markdown:
		p.renderMarkdown()
		return p.out.Flush()
	}
	return core.Errorf(
		core.KindInvalidArguments, "audit.report", "there is no report format %.40q", f,
	).WithHint("the formats are markdown, html and json")
}

// writeFormat writes a format string, in which each %s stands for one of the given texts. Its first argument is the
// function that escapes these texts. Write errors are ignored here, because the buffered writer's Flush returns them.
func (p *pageWriter) writeFormat(as func(string) string, format string, says ...string) {
	args := make([]any, len(says))
	for i, s := range says {
		args[i] = as(s)
	}
	fmt.Fprintf(p.out, format, args...)
}

// oneLine replaces characters that could break a line or disturb the display of a text. These are line breaks,
// control characters and invisible ones, including those that reverse the direction of text.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029' {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// escapeMarkdown escapes a text for Markdown, so that it cannot become a link, HTML, a table cell, emphasis or a
// list.
func escapeMarkdown(s string) string {
	if s == "-" { // nothing, in a cell
		return s
	}
	var b strings.Builder
	rs := []rune(oneLine(s))
	word := func(i int) bool { return i >= 0 && i < len(rs) && (unicode.IsLetter(rs[i]) || unicode.IsDigit(rs[i])) }
	for i, r := range rs {
		switch {
		case r == '&':
			b.WriteString("&amp;")
			continue
		case r == '<':
			b.WriteString("&lt;")
			continue
		case strings.ContainsRune("\\`*{}[]#|>~@!$^", r),
			r == '_' && !(word(i-1) && word(i+1)),
			i == 0 && strings.ContainsRune("-+=", r), // lists and rules
			(r == '.' || r == ')') && allDigits(rs[:i]) && (i+1 == len(rs) || rs[i+1] == ' '),
			r == ':' && i+1 < len(rs) && rs[i+1] == '/', // addresses
			r == '.' && i >= 3 && strings.EqualFold(string(rs[i-3:i]), "www"):
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

func allDigits(rs []rune) bool {
	for _, r := range rs {
		if r < '0' || r > '9' {
			return false
		}
	}
	return true
}

// tableRow returns the cells as one row of a Markdown table.
func tableRow(row []string) string {
	var b strings.Builder
	for _, c := range row {
		b.WriteString("| " + escapeMarkdown(c) + " ")
	}
	return b.String() + "|"
}

func dividerRow(row []string) string { return strings.Repeat("|---", len(row)) + "|" }

// Period returns the beginning and end of the report's period in words.
func (r *PeriodReport) Period() string {
	return r.From.Format(time.RFC3339) + " up to " + r.To.Format(time.RFC3339) + " (exclusive)"
}
