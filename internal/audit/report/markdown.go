package report

func (p *page) write(format string, says ...string) { p.put(markdown, format, says...) }

func (p *page) markdown() {
	p.write("# %s\n\nPeriod: %s. Made %s UTC by %s.\n", p.title, p.Period(), stamp(p.Made), p.Product)
	for _, remark := range p.Remarks {
		p.write("\n> **%s**\n", remark)
	}
	if len(p.Controls) > 0 {
		p.write("\n## Controls\n\n")
	}
	for _, c := range p.Controls {
		p.write("### %s %s\n\n%s\n\n", c.ID, c.Name, c.Does)
		for _, e := range c.Evidence {
			p.write("- Evidence: %s", e.Says)
			p.command(" `%s`", e.Query)
			p.write("\n")
		}
		p.write("- Left to the operator: %s\n\n", c.Operator)
	}
	for _, s := range p.sections {
		p.markdownSection(s)
	}
	p.write("\n## Not covered\n\n")
	for _, n := range p.NotCovered {
		p.write("- %s\n", n)
	}
}

// command writes a command as code, if there is one.
func (p *page) command(format, command string) {
	if command != "" {
		p.put(oneLine, format, command)
	}
}

func (p *page) markdownSection(s section) {
	p.write("\n## %s\n", s.Title)
	for _, text := range s.Text {
		p.write("\n%s\n", text)
	}
	if len(s.Rows) == 0 {
		p.write("\nNothing of this kind in the period.\n")
	} else {
		p.put(plain, "\n%s\n%s\n", cells(s.Head), dashes(s.Head))
		for _, row := range s.Rows {
			p.put(plain, "%s\n", cells(row))
		}
	}
	if len(s.List) > 0 {
		p.write("\n")
	}
	for _, item := range s.List {
		p.write("- %s\n", item)
	}
	p.command("\n`%s`\n", s.Query)
}

// plain returns a text that is written as it is.
func plain(s string) string { return s }
