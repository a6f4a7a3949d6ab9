package report

import (
	_ "embed"
	"html"
)

// The beginning of an HTML page and its style are embedded. This package avoids html/template, because it would add
// 20 MB to the program: with it, the linker must keep all methods of all types.
var (
	//go:embed head.html
	head string
	//go:embed style.html
	style string
)

// escapeHTML escapes a text for HTML and makes it one line.
func escapeHTML(s string) string { return html.EscapeString(oneLine(s)) }

func (p *pageWriter) writeHTML(format string, says ...string) {
	p.writeFormat(escapeHTML, format, says...)
}

func (p *pageWriter) renderHTML() {
	p.writeFormat(plainText, "%s", head)
	p.writeHTML("<title>%s</title>\n", p.title)
	p.writeFormat(plainText, "%s", style)
	p.writeHTML("<body>\n<h1>%s</h1>\n<p>Period: %s. Made %s UTC by %s.</p>\n", p.title, p.Period(), formatTime(p.Made), p.Product)
	for _, remark := range p.Remarks {
		p.writeHTML("<p class=\"remark\">%s</p>\n", remark)
	}
	if len(p.Controls) > 0 {
		p.writeHTML("<h2>Controls</h2>\n")
	}
	for _, c := range p.Controls {
		p.htmlControl(c)
	}
	for _, s := range p.sections {
		p.htmlSection(s)
	}
	p.writeHTML("<h2>Not covered</h2>\n<ul>\n")
	p.writeItems(p.NotCovered)
	p.writeHTML("</ul>\n</body>\n</html>\n")
}

func (p *pageWriter) writeItems(items []string) {
	for _, item := range items {
		p.writeHTML("<li>%s</li>\n", item)
	}
}

func (p *pageWriter) htmlControl(c ControlResult) {
	p.writeHTML("<h3>%s %s</h3>\n<p>%s</p>\n<ul>\n", c.ID, c.Name, c.Does)
	for _, e := range c.Evidence {
		p.writeHTML("<li>Evidence: %s", e.Says)
		if e.Query != "" {
			p.writeHTML(" <code>%s</code>", e.Query)
		}
		p.writeHTML("</li>\n")
	}
	p.writeHTML("<li>Remains your task: %s</li>\n</ul>\n", c.Operator)
}

func (p *pageWriter) htmlSection(s reportSection) {
	p.writeHTML("<h2>%s</h2>\n", s.Title)
	for _, text := range s.Text {
		p.writeHTML("<p>%s</p>\n", text)
	}
	if len(s.Rows) > 0 {
		p.htmlTable(s)
	} else {
		p.writeHTML("<p>No such event in this period.</p>\n")
	}
	if len(s.List) > 0 {
		p.writeHTML("<ul>\n")
		p.writeItems(s.List)
		p.writeHTML("</ul>\n")
	}
	if s.Query != "" {
		p.writeHTML("<p><code>%s</code></p>\n", s.Query)
	}
}

func (p *pageWriter) htmlTable(s reportSection) {
	p.writeHTML("<table>\n<thead>")
	p.htmlRow(s.Head, "<th>%s</th>")
	p.writeHTML("</thead>\n<tbody>\n")
	for _, row := range s.Rows {
		p.htmlRow(row, "<td>%s</td>")
		p.writeHTML("\n")
	}
	p.writeHTML("</tbody>\n</table>\n")
}

func (p *pageWriter) htmlRow(row []string, cell string) {
	p.writeHTML("<tr>")
	for _, c := range row {
		p.writeHTML(cell, c)
	}
	p.writeHTML("</tr>")
}
