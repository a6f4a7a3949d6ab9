package pictures

import "fmt"

// Overview draws what a model has to load with Retort and without. before and after are tokens of tool definitions.
func Overview(tools, servers, before, after int) *Picture {
	p := &Picture{
		Name: "overview", Title: "What Retort does", Width: 800, Height: 322,
		Description: fmt.Sprintf("Your client talks to Retort, and Retort to your MCP servers. "+
			"The client sends programs and gets results. "+
			"Instead of %s tokens of definitions of %d tools, the model loads %s tokens: "+
			"the definitions of Retort's own tools and its instructions.",
			thousands(before), tools, thousands(after)),
	}
	p.Box(24, 40, 168, 92, plain, edge, Line{Words: "Your client", Size: large, Bold: true},
		quiet("Claude Code, Cursor,"), quiet("VS Code and others"))
	p.Box(316, 28, 168, 116, tint, accent, heading("Retort", 18),
		said("checks each program,"), said("runs it in a sandbox,"), said("asks you if needed"))
	for i := range 3 {
		at := float64(i) * 7
		p.rect(608+at, 40+at-7, 154, 92, 8, plain, edge, "")
	}
	p.Box(622, 47, 154, 92, plain, edge, Line{Words: "MCP servers", Size: large, Bold: true},
		quiet("files, mail, CRM,"), quiet("databases and others"))
	p.Arrow(muted, 196, 70, 312, 70)
	p.Label(254, 62, 112, "middle", page, said("one program"))
	p.Arrow(muted, 312, 104, 196, 104)
	p.Label(254, 122, 112, "middle", page, said("only its result"))
	p.Arrow(muted, 488, 70, 604, 70)
	p.Label(546, 62, 112, "middle", page, said("many calls"))
	p.Arrow(muted, 604, 104, 488, 104)
	p.Label(546, 122, 112, "middle", page, said("all the data"))

	p.Label(24, 188, 750, "start", page,
		Line{Words: "What the model loads before it does anything", Size: large, Bold: true})
	const from, long = 24, 560
	scale := long / float64(before)
	p.rect(from, 204, long, 40, 6, rose, bad, "")
	p.Label(from+14, 229, long-24, "start", rose,
		Line{Words: thousands(before) + " tokens", Size: 16, Bold: true, Ink: bad, Struck: true})
	p.Label(from+long+14, 221, 190, "start", page, said(fmt.Sprintf("the definitions of %d tools", tools)))
	p.Label(from+long+14, 237, 190, "start", page, quiet(fmt.Sprintf("of %d servers", servers)))
	p.rect(from, 258, scale*float64(after), 40, 6, mint, good, "")
	p.Label(from+scale*float64(after)+14, 283, 150, "start", page,
		Line{Words: thousands(after) + " tokens", Size: 16, Bold: true, Ink: good})
	p.Label(from+long+14, 275, 190, "start", page, said("definitions and instructions"))
	p.Label(from+long+14, 291, 190, "start", page, quiet("of Retort"))
	return p
}

// Path draws the five stages of a program.
func Path() *Picture {
	p := &Picture{
		Name: "path", Title: "The path of a program", Width: 800, Height: 306,
		Description: "Five stages. Search finds the tools that fit. " +
			"Check rejects a program with wrong types or forbidden code before it runs. " +
			"Ask requests an approval if the program needs one. " +
			"Run executes the program in a sandbox. On Linux it has no network by default, and none of your files. " +
			"Every tool call passes guards on its way to a server, and risky calls wait for your approval. " +
			"Return gives the model a small result.",
	}
	stages := []struct {
		name  string
		lines [3]string
	}{
		{"Search", [3]string{"finds the tools that", "fit, and shows the", "model their types"}},
		{"Check", [3]string{"types, rules and risk", "are judged before", "anything runs"}},
		{"Ask", [3]string{"a person approves", "a risky program", "before it runs"}},
		{"Run", [3]string{"on Linux: no network", "by default, and none", "of your files"}},
		{"Return", [3]string{"large results become", "files, and personal", "values are hidden"}},
	}
	const wide, gap = 136, 20
	at := func(i int) float64 { return 20 + float64(i)*(wide+gap) }
	for i, s := range stages {
		fill, stroke := tint, accent
		p.Box(at(i), 62, wide, 104, fill, stroke, heading(s.name, 15),
			minor(s.lines[0]), minor(s.lines[1]), minor(s.lines[2]))
		p.Badge(at(i)+wide/2, 62, fmt.Sprint(i+1))
		if i > 0 {
			p.Arrow(muted, at(i)-gap+2, 114, at(i)-2, 114)
		}
	}
	p.Arrow(muted, at(0)+wide/2, 26, at(0)+wide/2, 50)
	p.Label(at(0)+wide/2+10, 34, 150, "start", page, quiet("the model's task"))
	p.Arrow(muted, at(4)+wide/2, 50, at(4)+wide/2, 26)
	p.Label(at(4)+wide/2-10, 34, 190, "end", page, quiet("the result, for the model"))

	p.Arrow(bad, at(1)+wide/2, 168, at(1)+wide/2, 222)
	p.Box(at(0)+50, 224, 228, 62, rose, bad, Line{Words: "rejected: nothing ran", Bold: true, Ink: bad},
		minor("with the line and the right signature"))
	p.Arrow(bad, at(2)+wide/2, 168, at(2)+wide/2, 222)
	p.Box(at(2)+10, 224, 136, 62, rose, bad, Line{Words: "denied", Bold: true, Ink: bad}, minor("nothing runs"))
	p.DoubleArrow(muted, at(3)+wide/2, 170, at(3)+wide/2, 222)
	p.Box(at(3)+14, 224, 272, 62, plain, edge,
		Line{Words: "each call passes guards to a server", Bold: true, Size: small},
		note("limits, policy, audit log"), note("risky calls wait for your approval"))
	return p
}

// Boundaries draws the trust boundaries. Each flow of data across them has the ids of the threats to it.
func Boundaries() *Picture {
	p := &Picture{
		Name: "boundaries", Title: "Trust boundaries and data flow", Width: 800, Height: 546,
		Description: "Retort and its data directory are trusted. " +
			"Clients, callers over the network, the program in its sandbox, MCP servers and model endpoints are not. " +
			"Each numbered flow crosses a boundary and names examples of threats in the threat model.",
	}
	p.Area(20, 20, 190, 400, "not trusted: callers")
	p.Area(240, 20, 320, 400, "trusted: Retort and its files")
	p.Area(590, 20, 190, 400, "not trusted: services")

	p.Box(36, 60, 158, 60, plain, edge, bold("Client and model"), note("starts Retort"))
	p.Box(36, 160, 158, 60, plain, edge, bold("Network callers"), note("with tokens, over HTTP"))
	p.Box(36, 260, 158, 60, plain, edge, bold("Web pages"), note("in a browser"))
	p.Box(36, 345, 158, 60, plain, edge, bold("Other users"), note("of this machine"))

	p.Box(316, 60, 168, 168, tint, accent, heading("Retort", 18), said("check, policy,"),
		said("approval, tokens for"), said("personal values,"), said("audit log"))
	p.Box(256, 345, 134, 60, plain, edge, bold("Data and keys"), note("log, values, files"))
	p.Box(410, 345, 134, 60, plain, edge, bold("You"), note("approve or deny"))

	p.Box(606, 60, 158, 60, plain, edge, bold("MCP servers"), note("commands run as you"))
	p.Box(606, 160, 158, 60, plain, edge, bold("Model endpoint"), note("if you set one"))
	p.Box(606, 260, 158, 60, rose, bad, Line{Words: "Sandbox", Bold: true, Ink: bad}, minor("one for each program"))
	p.Box(606, 345, 158, 60, plain, edge, bold("Allowed hosts"), note("none by default"))
	flows(p)
	legend(p)
	return p
}

func flows(p *Picture) {
	p.DoubleArrow(muted, 196, 90, 314, 90)
	p.Badge(225, 90, "1")
	p.Arrow(muted, 196, 190, 314, 190)
	p.Badge(225, 190, "2")
	p.Arrow(muted, 196, 290, 290, 290, 290, 212, 314, 212)
	p.Badge(225, 290, "3")
	p.DoubleArrow(muted, 486, 90, 604, 90)
	p.Badge(575, 90, "4")
	p.DoubleArrow(muted, 486, 190, 604, 190)
	p.Badge(575, 190, "5")
	p.DoubleArrow(muted, 486, 212, 524, 212, 524, 290, 604, 290)
	p.Badge(575, 290, "6")
	p.DoubleArrow(muted, 468, 230, 468, 322, 575, 322, 575, 375, 604, 375)
	p.Badge(575, 348, "7")
	p.DoubleArrow(muted, 350, 230, 350, 343)
	p.Badge(350, 286, "8")
	p.DoubleArrow(muted, 428, 230, 428, 343)
	p.Badge(428, 286, "9")
	p.Arrow(muted, 196, 375, 254, 375)
	p.Badge(225, 375, "10")
}

// legend adds a key that explains the kinds of flows, below the drawing of boundaries.
func legend(p *Picture) {
	for i, words := range []string{
		"1  programs, results: C-1 to C-5, M-1", "2  requests, metrics: N-1 to N-10",
		"3  forged requests: L-1, L-3, L-13",
		"4  calls and answers: S-1 to S-33, D-1", "5  prompts and answers: M-4 to M-7",
		"6  code and calls: P-1, P-17, P-20, P-30",
		"7  network requests: P-8, P-15, P-16", "8  files: T-1 to T-5, O-1 to O-15",
		"9  questions: P-31, S-22, S-23, C-3",
		"10  files and sockets: U-1, U-2",
	} {
		x, y := 24+float64(i/4)*256, 450+float64(i%4)*24
		p.Label(x, y, 248, "start", page, said(words))
	}
}

// Team draws Retort as a server for several people.
func Team() *Picture {
	p := &Picture{
		Name: "team", Title: "Retort for a team", Width: 800, Height: 430,
		Description: "Clients reach Retort over HTTPS through a reverse proxy, " +
			"with a token of your identity provider or of Retort. " +
			"Retort and its data directory are on one machine. Only the audit log can be in PostgreSQL. " +
			"A collector receives traces and metrics. " +
			"MCP servers are called with one account for all users, or with one login for each user. " +
			"The identity provider, the reverse proxy, PostgreSQL, the collector and the model endpoint are optional.",
	}
	for i, name := range []string{"Anna's client", "Ben's client", "CI job"} {
		p.Box(20, 116+float64(i)*66, 130, 48, plain, edge, bold(name))
	}
	p.Box(20, 28, 250, 52, plain, edge, bold("Identity provider"), note("optional; issues tokens (JWT)"))
	p.Arrow(muted, 85, 112, 85, 84)
	p.Label(94, 103, 90, "start", page, note("log in"))
	p.Box(200, 158, 100, 96, plain, edge, bold("Reverse"), bold("proxy"), note("TLS;"), note("optional"))
	for i := range 3 {
		y := 140 + float64(i)*66
		p.Arrow(muted, 152, y, 175, y, 175, 206, 198, 206)
	}
	p.Area(330, 96, 240, 292, "one machine")
	p.Box(350, 158, 200, 96, tint, accent, heading("Retort", 18),
		Line{Words: "retort serve --http", Size: small, Mono: true},
		said("checks the token,"), said("keeps users apart"))
	p.Arrow(muted, 302, 206, 348, 206)
	p.Arrow(muted, 450, 156, 450, 54, 274, 54)
	p.Label(362, 47, 160, "middle", page, note("public keys"))
	p.Box(350, 304, 200, 70, plain, edge, bold("Data directory"), note("files, queue, approvals,"),
		note("values behind tokens"))
	p.DoubleArrow(muted, 450, 256, 450, 302)
	for _, s := range []struct {
		y, from float64
		lines   []Line
	}{
		{28, 176, []Line{bold("Collector"), note("optional; traces, metrics")}},
		{126, 192, []Line{bold("MCP servers"), note("one account for all, or"), note("one login for each user")}},
		{224, 220, []Line{bold("PostgreSQL"), note("optional; audit log")}},
		{322, 236, []Line{bold("Model endpoint"), note("optional; for agent tasks")}},
	} {
		p.Box(620, s.y, 160, 60, plain, edge, s.lines...)
		middle := s.y + 30
		bend := 600.0
		if s.y < 100 || s.y > 300 {
			bend = 586
		}
		p.Arrow(muted, 552, s.from, bend, s.from, bend, middle, 618, middle)
	}
	p.Label(20, 346, 300, "start", page, bold("Shared by all users"))
	p.Label(20, 364, 300, "start", page, note("skills, catalogue, audit log"))
	p.Label(20, 388, 300, "start", page, bold("Separate for each user"))
	p.Label(20, 406, 300, "start", page, note("sessions, files, tokens, jobs, approvals"))
	return p
}
