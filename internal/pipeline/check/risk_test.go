package check

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/pipeline/check/python/parsertest"
	"retort/internal/pipeline/check/rules"
	"retort/internal/policy/effect"
)

// weighed describes a risk in one line: its score, level, tools with effects, files and hosts. It marks tools that
// are called in loops with *.
func weighed(r rules.ProgramRisk) string {
	var uses []string
	for _, u := range r.Uses {
		mark := ""
		if u.Loop {
			mark = "*"
		}
		if u.Effect.Kind > core.EffectRead {
			uses = append(uses, u.Tool+mark)
		}
	}
	if len(uses) > 4 {
		uses = []string{fmt.Sprint(len(uses))}
	}
	m := r.Impact
	parts := slices.Concat([]string{fmt.Sprint(r.Score), string(r.Level)}, uses, m.Reads, m.Writes, m.Deletes, m.Domains)
	return strings.Join(parts, " ")
}

// TestRisk checks that the risk of a program includes every tool and file, in whatever way the program names it.
func TestRisk(t *testing.T) {
	p, tools := parsertest.NewInterpreter(t), demoTools(t)
	g := newGate(t, p, rules.Permissive)
	for _, c := range []struct {
		language core.Language
		code     string
		want     string
	}{
		{core.TypeScript, "return 1", "0 low"},
		{core.TypeScript, "return drive.getDocument('a')", "5 low"},
		{core.TypeScript, "await sheets.addSheet({ spreadsheetId: 'a', name: 'b', columns: ['c'] })", "25 medium sheets.addSheet"},
		{core.TypeScript, "await calendar.deleteEvent('a')", "50 high calendar.deleteEvent"},
		{core.TypeScript, "for (const id of ['a', 'b']) await calendar.deleteEvent(id)", "70 high calendar.deleteEvent*"},
		{core.TypeScript, "for (const e of (await calendar.listEvents({}) as any).events) console.log(e); await calendar.deleteEvent('a')", "50 high calendar.deleteEvent"},
		{core.TypeScript, "const { deleteEvent: gone } = calendar; ['a'].map(id => gone(id))", "70 high calendar.deleteEvent*"},
		{core.TypeScript, "import * as c from './servers/calendar'; const d = c.deleteEvent; await Promise.all(['a'].map(d as any))", "70 high calendar.deleteEvent*"},
		{core.TypeScript, "import { deleteEvent } from './servers/calendar'; async function go(id: string) { await deleteEvent(id) } while (true) await go('a')", "70 high calendar.deleteEvent*"},
		{core.TypeScript, "async function again(n: number): Promise<any> { await calendar.deleteEvent('a'); return n ? again(n - 1) : 0 } return again(3)", "70 high calendar.deleteEvent*"},
		{core.TypeScript, "await callMCPTool('calendar__delete_event', { eventId: 'a' })", "50 high calendar.deleteEvent"},
		{core.TypeScript, "await (calendar as any)['delete' + 'Event']('a')", "56 high calendar.updateEvent calendar.deleteEvent calendar.createEvent calendar.respondToInvite"},
		{core.TypeScript, "const n = (await drive.getDocument('a')).title; await callMCPTool(n, {})", "95 critical 38"},
		{core.TypeScript, "const d = await drive.getDocument('a'); await chat.sendMessage({ channel: 'x', text: d.content })", "55 high chat.sendMessage"},
		{core.TypeScript, "import fs from 'node:fs/promises'; await fs.writeFile('a.csv', await fs.readFile('b.csv', 'utf8')); const u = 'https://API.example.com/x'", "6 low b.csv a.csv api.example.com"},
		{core.TypeScript, "return eval('1')", "100 critical 38"},
		{core.Python, "result = 1", "0 low"},
		{core.Python, "result = drive.get_document('a')", "5 low"},
		{core.Python, "for i in ['a']: calendar.delete_event(event_id=i)", "70 high calendar.deleteEvent*"},
		{core.Python, "from servers import calendar as c\nfor i in ['a']: c.delete_event(event_id=i)", "70 high calendar.deleteEvent*"},
		{core.Python, "from servers.calendar import delete_event as gone\nresult = [gone(event_id=i) for i in 'ab']", "70 high calendar.deleteEvent*"},
		{core.Python, "def go(i): crm.create_record(object_type='Lead', data={})\nresult = list(map(go, 'ab'))", "35 medium crm.createRecord*"},
		{core.Python, "f = crm.create_record\nf(object_type='Lead', data={})", "25 medium crm.createRecord"},
		{core.Python, "call_mcp_tool('sheets__add_sheet', {})", "25 medium sheets.addSheet"},
		{core.Python, "with open('a.csv', 'w') as f: f.write(read_file('b.csv'))", "3 low b.csv a.csv"},
		{core.Python, "result = getattr(crm, 'create_' + 'record')", "60 high 6"},
	} {
		verdict, refusal := g.Check(context.Background(), core.ExecutionRequest{Code: c.code, Language: c.language}, tools, nil)
		if refusal != nil {
			t.Errorf("%s: %s", c.code, refusal.Message)
			continue
		}
		if got := weighed(verdict.Risk); got != c.want {
			t.Errorf("%s\n got %s\nwant %s\n%q", c.code, got, c.want, verdict.Risk.Reasons)
		}
	}
}

func TestTrust(t *testing.T) {
	tools := demoTools(t)
	for _, trusted := range []bool{false, true} {
		g := New(Options{Start: inside, Effect: func(t *core.Tool) core.EffectInfo { return effect.OfTool(t, trusted && t.Server == "chat") }})
		verdict, refusal := g.Check(context.Background(), core.ExecutionRequest{Code: "await chat.sendMessage({ channel: 'x', text: 'y' })", Language: core.TypeScript}, tools, nil)
		if refusal != nil {
			t.Fatal(refusal)
		}
		if got, want := verdict.Risk.Uses[0].Effect.Kind, map[bool]core.EffectKind{false: core.EffectIrreversible, true: core.EffectWrite}[trusted]; got != want {
			t.Errorf("trusted %v: %s, want %s", trusted, got, want)
		}
		_ = g.Close()
	}
}
