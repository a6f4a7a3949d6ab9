package pictures

import "fmt"

// Overview draws what a model has to load with Retort and without. before and after are tokens of tool definitions.
func Overview(tools, servers, before, after int) *Picture {
	p := &Picture{
		Name: "overview", Title: "What Retort does", Width: 800, Height: 322,
		Description: fmt.Sprintf("Your client talks to Retort, and Retort to your MCP servers. The client sends programs and gets results. "+
			"Instead of %s tokens of definitions of %d tools, the model loads %s tokens: the definitions of Retort's own tools.",
			thousands(before), tools, thousands(after)),
	}
	p.Box(24, 40, 168, 92, plain, edge, Line{Words: "Your client", Size: large, Bold: true},
		Line{Words: "Claude Code, Cursor,", Ink: muted}, Line{Words: "VS Code and others", Ink: muted})
	p.Box(316, 28, 168, 116, tint, accent, Line{Words: "Retort", Size: 18, Bold: true, Ink: accent},
		Line{Words: "checks each program,"}, Line{Words: "runs it in a sandbox,"}, Line{Words: "asks you if needed"})
	for i := range 3 {
		at := float64(i) * 7
		p.rect(608+at, 40+at-7, 154, 92, 8, plain, edge, "")
	}
	p.Box(622, 47, 154, 92, plain, edge, Line{Words: "MCP servers", Size: large, Bold: true},
		Line{Words: "files, mail, CRM,", Ink: muted}, Line{Words: "databases and others", Ink: muted})
	p.Arrow(muted, 196, 70, 312, 70)
	p.Label(254, 62, 112, "middle", page, Line{Words: "one program"})
	p.Arrow(muted, 312, 104, 196, 104)
	p.Label(254, 122, 112, "middle", page, Line{Words: "only its result"})
	p.Arrow(muted, 488, 70, 604, 70)
	p.Label(546, 62, 112, "middle", page, Line{Words: "many calls"})
	p.Arrow(muted, 604, 104, 488, 104)
	p.Label(546, 122, 112, "middle", page, Line{Words: "all the data"})

	p.Label(24, 188, 750, "start", page, Line{Words: "What the model loads before it does anything", Size: large, Bold: true})
	const from, long = 24, 560
	scale := long / float64(before)
	p.rect(from, 204, long, 40, 6, rose, bad, "")
	p.Label(from+14, 229, long-24, "start", rose, Line{Words: thousands(before) + " tokens", Size: 16, Bold: true, Ink: bad, Struck: true})
	p.Label(from+long+14, 221, 190, "start", page, Line{Words: fmt.Sprintf("the definitions of %d tools", tools)})
	p.Label(from+long+14, 237, 190, "start", page, Line{Words: fmt.Sprintf("of %d servers", servers), Ink: muted})
	p.rect(from, 258, scale*float64(after), 40, 6, mint, good, "")
	p.Label(from+scale*float64(after)+14, 283, 150, "start", page, Line{Words: thousands(after) + " tokens", Size: 16, Bold: true, Ink: good})
	p.Label(from+long+14, 275, 190, "start", page, Line{Words: "the definitions of"})
	p.Label(from+long+14, 291, 190, "start", page, Line{Words: "Retort's own tools", Ink: muted})
	return p
}

// Path draws the five stages of a program.
func Path() *Picture {
	p := &Picture{
		Name: "path", Title: "The path of a program", Width: 800, Height: 306,
		Description: "Five stages. Search finds the tools that fit. Check rejects a program with wrong types or forbidden code before it runs. " +
			"Ask requests an approval if the program or a call needs one. Run executes the program in a sandbox; every tool call passes " +
			"guards on its way to a server. Return gives the model a small result.",
	}
	stages := []struct {
		name  string
		lines [3]string
	}{
		{"Search", [3]string{"finds the tools that", "fit, and shows the", "model their types"}},
		{"Check", [3]string{"types, rules and risk", "are judged before", "anything runs"}},
		{"Ask", [3]string{"a person approves", "what is risky or", "cannot be undone"}},
		{"Run", [3]string{"its own process: no", "network, and none", "of your files"}},
		{"Return", [3]string{"large results become", "files, and personal", "values are hidden"}},
	}
	const wide, gap = 136, 20
	at := func(i int) float64 { return 20 + float64(i)*(wide+gap) }
	for i, s := range stages {
		fill, stroke := tint, accent
		p.Box(at(i), 62, wide, 104, fill, stroke, Line{Words: s.name, Size: 15, Bold: true, Ink: accent},
			Line{Words: s.lines[0], Size: small}, Line{Words: s.lines[1], Size: small}, Line{Words: s.lines[2], Size: small})
		p.Badge(at(i)+wide/2, 62, fmt.Sprint(i+1))
		if i > 0 {
			p.Arrow(muted, at(i)-gap+2, 114, at(i)-2, 114)
		}
	}
	p.Arrow(muted, at(0)+wide/2, 26, at(0)+wide/2, 50)
	p.Label(at(0)+wide/2+10, 34, 150, "start", page, Line{Words: "the model's task", Ink: muted})
	p.Arrow(muted, at(4)+wide/2, 50, at(4)+wide/2, 26)
	p.Label(at(4)+wide/2-10, 34, 190, "end", page, Line{Words: "the result, for the model", Ink: muted})

	p.Arrow(bad, at(1)+wide/2, 168, at(1)+wide/2, 222)
	p.Box(at(0)+50, 224, 228, 62, rose, bad, Line{Words: "rejected: nothing ran", Bold: true, Ink: bad},
		Line{Words: "with the line and the right signature", Size: small})
	p.Arrow(bad, at(2)+wide/2, 168, at(2)+wide/2, 222)
	p.Box(at(2)+10, 224, 136, 62, rose, bad, Line{Words: "denied", Bold: true, Ink: bad}, Line{Words: "the call is not sent", Size: small})
	p.DoubleArrow(muted, at(3)+wide/2, 170, at(3)+wide/2, 222)
	p.Box(at(3)+14, 224, 272, 62, plain, edge, Line{Words: "each call passes guards to a server", Bold: true, Size: small},
		Line{Words: "policy, approval, limits, audit log", Size: small, Ink: muted})
	return p
}

// Boundaries draws the trust boundaries, and on each flow of data the ids of threats.
func Boundaries() *Picture {
	p := &Picture{
		Name: "boundaries", Title: "Trust boundaries and data flow", Width: 800, Height: 546,
		Description: "Retort and its data directory are trusted. Clients, callers over the network, the program in its sandbox, MCP servers " +
			"and model endpoints are not. Each numbered flow crosses a boundary and names threats of the threat model.",
	}
	p.Area(20, 20, 190, 400, "not trusted: callers")
	p.Area(240, 20, 320, 400, "trusted: Retort and its files")
	p.Area(590, 20, 190, 400, "not trusted: services")

	p.Box(36, 60, 158, 60, plain, edge, Line{Words: "Client and model", Bold: true}, Line{Words: "starts Retort", Size: small, Ink: muted})
	p.Box(36, 160, 158, 60, plain, edge, Line{Words: "Network callers", Bold: true}, Line{Words: "with tokens, over HTTP", Size: small, Ink: muted})
	p.Box(36, 260, 158, 60, plain, edge, Line{Words: "Web pages", Bold: true}, Line{Words: "in a browser", Size: small, Ink: muted})
	p.Box(36, 345, 158, 60, plain, edge, Line{Words: "Other users", Bold: true}, Line{Words: "of this machine", Size: small, Ink: muted})

	p.Box(316, 60, 168, 168, tint, accent, Line{Words: "Retort", Size: 18, Bold: true, Ink: accent}, Line{Words: "check, policy,"},
		Line{Words: "approval, tokens for"}, Line{Words: "personal values,"}, Line{Words: "audit log"})
	p.Box(256, 345, 134, 60, plain, edge, Line{Words: "Data and keys", Bold: true}, Line{Words: "log, values, files", Size: small, Ink: muted})
	p.Box(410, 345, 134, 60, plain, edge, Line{Words: "You", Bold: true}, Line{Words: "approve or deny", Size: small, Ink: muted})

	p.Box(606, 60, 158, 60, plain, edge, Line{Words: "MCP servers", Bold: true}, Line{Words: "run as your user", Size: small, Ink: muted})
	p.Box(606, 160, 158, 60, plain, edge, Line{Words: "Model endpoint", Bold: true}, Line{Words: "if you set one", Size: small, Ink: muted})
	p.Box(606, 260, 158, 60, rose, bad, Line{Words: "Sandbox", Bold: true, Ink: bad}, Line{Words: "one for each program", Size: small})
	p.Box(606, 345, 158, 60, plain, edge, Line{Words: "Allowed hosts", Bold: true}, Line{Words: "none by default", Size: small, Ink: muted})
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

// legend explains the flows below the drawing of boundaries.
func legend(p *Picture) {
	for i, words := range []string{
		"1  programs, results: C-1 to C-5, M-1", "2  requests with a token: N-1 to N-7", "3  forged requests: L-1, L-3, L-13",
		"4  calls and answers: S-1 to S-33, D-1", "5  prompts and answers: M-4 to M-7", "6  code and calls: P-1, P-17, P-20, P-30",
		"7  network requests: P-8, P-15, P-16", "8  files: T-1 to T-5, O-1 to O-15", "9  questions: P-31, S-22, S-23, C-3",
		"10  files and sockets: U-1, U-2",
	} {
		x, y := 24+float64(i/4)*256, 450+float64(i%4)*24
		p.Label(x, y, 248, "start", page, Line{Words: words})
	}
}

// Team draws Retort as a server for several people.
func Team() *Picture {
	p := &Picture{
		Name: "team", Title: "Retort for a team", Width: 800, Height: 430,
		Description: "Clients reach Retort over HTTPS through a reverse proxy, with a token of your identity provider or of Retort. " +
			"Retort and its data directory are on one machine. Only the audit log can be in PostgreSQL. A collector receives traces and metrics.",
	}
	for i, name := range []string{"Anna's client", "Ben's client", "CI job"} {
		p.Box(20, 116+float64(i)*66, 130, 48, plain, edge, Line{Words: name, Bold: true})
	}
	p.Box(20, 28, 250, 52, plain, edge, Line{Words: "Identity provider", Bold: true}, Line{Words: "issues tokens (JWT)", Size: small, Ink: muted})
	p.Arrow(muted, 85, 112, 85, 84)
	p.Label(94, 103, 90, "start", page, Line{Words: "log in", Size: small, Ink: muted})
	p.Box(200, 158, 100, 96, plain, edge, Line{Words: "Reverse", Bold: true}, Line{Words: "proxy", Bold: true}, Line{Words: "TLS", Size: small, Ink: muted})
	for i := range 3 {
		y := 140 + float64(i)*66
		p.Arrow(muted, 152, y, 175, y, 175, 206, 198, 206)
	}
	p.Area(330, 96, 240, 292, "one machine")
	p.Box(350, 158, 200, 96, tint, accent, Line{Words: "Retort", Size: 18, Bold: true, Ink: accent}, Line{Words: "retort serve --http", Size: small, Mono: true},
		Line{Words: "checks the token,"}, Line{Words: "keeps users apart"})
	p.Arrow(muted, 302, 206, 348, 206)
	p.Arrow(muted, 450, 156, 450, 54, 274, 54)
	p.Label(362, 47, 160, "middle", page, Line{Words: "public keys", Size: small, Ink: muted})
	p.Box(350, 304, 200, 70, plain, edge, Line{Words: "Data directory", Bold: true}, Line{Words: "files, queue, approvals,", Size: small, Ink: muted},
		Line{Words: "values behind tokens", Size: small, Ink: muted})
	p.DoubleArrow(muted, 450, 256, 450, 302)
	for _, s := range []struct {
		y          float64
		name, what string
		from       float64
	}{
		{28, "Collector", "traces, metrics (OTLP)", 176}, {126, "MCP servers", "one login for each user", 192},
		{224, "PostgreSQL", "only the audit log", 220}, {322, "Model endpoint", "for agent tasks", 236},
	} {
		p.Box(620, s.y, 160, 60, plain, edge, Line{Words: s.name, Bold: true}, Line{Words: s.what, Size: small, Ink: muted})
		middle := s.y + 30
		bend := 600.0
		if s.y < 100 || s.y > 300 {
			bend = 586
		}
		p.Arrow(muted, 552, s.from, bend, s.from, bend, middle, 618, middle)
	}
	p.Label(20, 346, 300, "start", page, Line{Words: "Shared by all users", Size: normal, Bold: true})
	p.Label(20, 364, 300, "start", page, Line{Words: "skills, catalogue, audit log", Size: small, Ink: muted})
	p.Label(20, 388, 300, "start", page, Line{Words: "Separate for each user", Size: normal, Bold: true})
	p.Label(20, 406, 300, "start", page, Line{Words: "sessions, files, tokens, jobs, approvals", Size: small, Ink: muted})
	return p
}
