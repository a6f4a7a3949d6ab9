package report

func (p *pageWriter) writeMarkdown(format string, says ...string) {
	p.writeFormat(escapeMarkdown, format, says...)
}

func (p *pageWriter) renderMarkdown() {
	p.writeMarkdown("# %s\n\nPeriod: %s. Made %s UTC by %s.\n", p.title, p.Period(), formatTime(p.Made), p.Product)
	for _, remark := range p.Remarks {
		p.writeMarkdown("\n> **%s**\n", remark)
	}
	if len(p.Controls) > 0 {
		p.writeMarkdown("\n## Controls\n\n")
	}
	for _, c := range p.Controls {
		p.writeMarkdown("### %s %s\n\n%s\n\n", c.ID, c.Name, c.Does)
		for _, e := range c.Evidence {
			p.writeMarkdown("- Evidence: %s", e.Says)
			p.writeCommand(" `%s`", e.Query)
			p.writeMarkdown("\n")
		}
		p.writeMarkdown("- Remains your task: %s\n\n", c.Operator)
	}
	for _, s := range p.sections {
		p.markdownSection(s)
	}
	p.writeMarkdown("\n## Not covered\n\n")
	for _, n := range p.NotCovered {
		p.writeMarkdown("- %s\n", n)
	}
}

// writeCommand writes a command as inline code in the given format. It writes nothing if the command is empty.
func (p *pageWriter) writeCommand(format, command string) {
	if command != "" {
		p.writeFormat(oneLine, format, command)
	}
}

func (p *pageWriter) markdownSection(s reportSection) {
	p.writeMarkdown("\n## %s\n", s.Title)
	for _, text := range s.Text {
		p.writeMarkdown("\n%s\n", text)
	}
	if len(s.Rows) == 0 {
		p.writeMarkdown("\nNo such event in this period.\n")
	} else {
		p.writeFormat(plainText, "\n%s\n%s\n", tableRow(s.Head), dividerRow(s.Head))
		for _, row := range s.Rows {
			p.writeFormat(plainText, "%s\n", tableRow(row))
		}
	}
	if len(s.List) > 0 {
		p.writeMarkdown("\n")
	}
	for _, item := range s.List {
		p.writeMarkdown("- %s\n", item)
	}
	p.writeCommand("\n`%s`\n", s.Query)
}

// plainText returns s unchanged. It serves as the escape function for trusted text.
func plainText(s string) string { return s }
