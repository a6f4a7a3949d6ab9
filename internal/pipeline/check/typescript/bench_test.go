package typescript

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"retort/internal/core"
)

// generated returns a toolset of ten servers with 451 tools, a realistic size.
func generated() *core.Toolset {
	var servers []*core.ToolServer
	for s := range 10 {
		var tools []*core.Tool
		for i := range 45 + (s+9)/18*1 {
			tools = append(tools, tool(fmt.Sprintf("list_things_%d", i), fmt.Sprintf(`{"type":"object","properties":{
				"owner":{"type":"string","description":"Account that owns the things, as it appears in the address"},
				"query":{"type":"string","description":"What to look for"},
				"state":{"type":"string","enum":["open","closed","all"],"description":"Which of them"},
				"labels":{"type":"array","items":{"type":"string"},"description":"All of these labels"},
				"filter":{"type":"object","properties":{"field%[1]d":{"type":"string"},"since":{"type":"string","format":"date-time"},"limit":{"type":"integer","minimum":1,"maximum":100}},"required":["field%[1]d"]},
				"page":{"type":"integer"},"perPage":{"type":"integer"}},"required":["owner"]}`, i),
				`{"type":"object","properties":{"items":{"type":"array","items":{"type":"object","properties":{"id":{"type":"integer"},"title":{"type":"string"}}}},"next":{"type":"string"}}}`))
		}
		servers = append(servers, server(fmt.Sprintf("server-%d", s), tools...))
	}
	return toolset(servers...)
}

// fiveTools is a program that calls five tools of three servers.
const fiveTools = `
import * as a from './servers/server-1';
interface Row { id: number; title: string }
const rows: Row[] = [];
for (let page = 1; page < 5; page++) {
  const { items } = await a.listThings1({ owner: 'o', query: 'q', page });
  rows.push(...items.filter(i => i.title.includes('x')));
  if (items.length === 0) break;
}
const more = await Promise.all(rows.map(r => server2.listThings2({ owner: 'o', query: r.title })));
const closed = await server2.listThings3({ owner: 'o', state: 'closed', filter: { field3: 'a', limit: 10 } });
const labelled = await server3.listThings4('o', 'q', 'all', ['bug']);
for (const m of more) {
  for (const item of m.items) await server3.listThings5({ owner: String(item.id), perPage: 5 });
}
return { rows: rows.length, closed: closed.items.length, next: labelled.next };
`

func benchmark(b *testing.B, code string, tools *core.Toolset) {
	b.Helper()
	c := newChecker(b)
	c.StartWarmup()
	src := ProgramSource{Code: code, Name: "program.ts", Language: core.TypeScript}
	check := func(i int) {
		// Each program is another one, as in life.
		src.Code = fmt.Sprintf("%s// %d\n", code, i)
		if _, refusal := c.CheckProgram(context.Background(), src, tools); refusal != nil {
			b.Fatalf("%s\n%s", refusal.Message, refusal.Frame)
		}
	}
	check(-1)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		check(i)
	}
}

// BenchmarkCheckWarm measures the check of a program that uses five of 451 tools.
func BenchmarkCheckWarm(b *testing.B) { benchmark(b, fiveTools, generated()) }

// BenchmarkCheckSmallest measures the check of the smallest program, which is the minimum for every program.
func BenchmarkCheckSmallest(b *testing.B) { benchmark(b, "return 1", generated()) }

// BenchmarkCheckAll measures the check of a program that may call any of 451 tools.
func BenchmarkCheckAll(b *testing.B) {
	benchmark(b, "const s: any = servers; return Object.keys(s).map(k => Object.keys(s[k]).length)", generated())
}

// BenchmarkCheckCatalogs measures the check of a program that uses tools of real servers.
func BenchmarkCheckCatalogs(b *testing.B) {
	dir := os.Getenv("RETORT_CATALOGS")
	if dir == "" {
		b.Skip("RETORT_CATALOGS names no directory of tools/list answers")
	}
	benchmark(b, `
const issues = await githubOfficial.listIssues({ owner: 'o', repo: 'r' });
const me = await githubOfficial.getMe();
const page = await playwright.browserNavigate({ url: 'https://example.com' });
const read = await mcpFilesystem.readTextFile({ path: 'a.txt' });
const graph = await mcpMemory.readGraph();
return [issues, me, page, read, graph];
`, catalog(b, filepath.Join(dir, "*.json")))
}

func BenchmarkWarm(b *testing.B) {
	for b.Loop() {
		c := New(inside)
		c.StartWarmup()
		_ = c.Close()
	}
}

// longStep is a format for 17 lines of code such as a model might write. Repeated, they form a long program.
const longStep = `
// Step %[1]d: the rows of one page, by owner.
const page%[1]d: any = await server%[2]d.listThings%[2]d({ owner: 'page-%[1]d' });
const owners%[1]d = new Map<string, { count: number; total: number }>();
for (const row of page%[1]d.items ?? []) {
  const key = String(row.owner ?? 'nobody').trim().toLowerCase();
  const sum = owners%[1]d.get(key) ?? { count: 0, total: 0 };
  sum.count += 1;
  sum.total += Number(row.amount ?? 0);
  owners%[1]d.set(key, sum);
}
const largest%[1]d = [...owners%[1]d.entries()].sort((a, b) => b[1].total - a[1].total).slice(0, 5);
function label%[1]d(name: string, total: number): string {
  if (total > 1000) return ` + "`${name}: large`" + `;
  return total > 100 ? name + ': medium' : name;
}
console.log('step %[1]d', largest%[1]d.map(([name, s]) => label%[1]d(name, s.total)).join(', '));
`

// BenchmarkCheckLong measures the check of a program of 2,000 lines.
func BenchmarkCheckLong(b *testing.B) {
	code := ""
	for i := range 2000 / 17 {
		code += fmt.Sprintf(longStep, i, 1+i%5)
	}
	benchmark(b, code, generated())
}
