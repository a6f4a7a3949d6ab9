package report

import (
	_ "embed"
	"html"
)

// The beginning of a page, before its title and after it. There is no html/template here: whatever
// uses it makes the linker keep every method of every type, 20 MB in this program.
var (
	//go:embed head.html
	head string
	//go:embed style.html
	style string
)

// escaped returns a text that HTML takes for nothing else.
func escaped(s string) string { return html.EscapeString(oneLine(s)) }

func (p *page) say(format string, says ...string) { p.put(escaped, format, says...) }

func (p *page) html() {
	p.put(plain, "%s", head)
	p.say("<title>%s</title>\n", p.title)
	p.put(plain, "%s", style)
	p.say("<body>\n<h1>%s</h1>\n<p>Period: %s. Made %s UTC by %s.</p>\n", p.title, p.Period(), stamp(p.Made), p.Product)
	for _, remark := range p.Remarks {
		p.say("<p class=\"remark\">%s</p>\n", remark)
	}
	if len(p.Controls) > 0 {
		p.say("<h2>Controls</h2>\n")
	}
	for _, c := range p.Controls {
		p.htmlControl(c)
	}
	for _, s := range p.sections {
		p.htmlSection(s)
	}
	p.say("<h2>Not covered</h2>\n<ul>\n")
	p.items(p.NotCovered)
	p.say("</ul>\n</body>\n</html>\n")
}

func (p *page) items(items []string) {
	for _, item := range items {
		p.say("<li>%s</li>\n", item)
	}
}

func (p *page) htmlControl(c Control) {
	p.say("<h3>%s %s</h3>\n<p>%s</p>\n<ul>\n", c.ID, c.Name, c.Does)
	for _, e := range c.Evidence {
		p.say("<li>Evidence: %s", e.Says)
		if e.Query != "" {
			p.say(" <code>%s</code>", e.Query)
		}
		p.say("</li>\n")
	}
	p.say("<li>Left to the operator: %s</li>\n</ul>\n", c.Operator)
}

func (p *page) htmlSection(s section) {
	p.say("<h2>%s</h2>\n", s.Title)
	for _, text := range s.Text {
		p.say("<p>%s</p>\n", text)
	}
	if len(s.Rows) > 0 {
		p.htmlTable(s)
	} else {
		p.say("<p>Nothing of this kind in the period.</p>\n")
	}
	if len(s.List) > 0 {
		p.say("<ul>\n")
		p.items(s.List)
		p.say("</ul>\n")
	}
	if s.Query != "" {
		p.say("<p><code>%s</code></p>\n", s.Query)
	}
}

func (p *page) htmlTable(s section) {
	p.say("<table>\n<thead>")
	p.htmlRow(s.Head, "<th>%s</th>")
	p.say("</thead>\n<tbody>\n")
	for _, row := range s.Rows {
		p.htmlRow(row, "<td>%s</td>")
		p.say("\n")
	}
	p.say("</tbody>\n</table>\n")
}

func (p *page) htmlRow(row []string, cell string) {
	p.say("<tr>")
	for _, c := range row {
		p.say(cell, c)
	}
	p.say("</tr>")
}
