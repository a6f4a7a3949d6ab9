package bench

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"retort/internal/core"
	"retort/internal/pipeline/check"
	"retort/internal/sandbox/process"
	"retort/internal/sandbox/runtimes"
)

// sandboxParser parses Python in a sandbox, as the engine does.
type sandboxParser struct{ sandboxes *process.Backend }

func (p sandboxParser) Parse(ctx context.Context, code string) (core.ParsedProgram, error) {
	return p.sandboxes.Parse(ctx, "python", code)
}

// measureValidation measures all checks of programs like those that models write: parsing, rules, type check and risk.
func (b *benchRun) measureValidation(ctx context.Context) error {
	tools, err := makeToolset(usualToolCount)
	if err != nil {
		return err
	}
	processes := process.New(process.Options{
		Command: []string{b.Self, "guest"}, Interpreters: runtimes.SupportedRuntimes(nil, core.DefaultLimits().Memory),
	})
	defer processes.Close()
	g := check.New(check.Options{
		Start:  func() (io.ReadWriteCloser, error) { return processes.StartHelper([]string{b.Self, "compiler"}, 1<<30) },
		Parser: sandboxParser{processes},
	})
	defer g.Close()
	defer func() { b.pause = 0 }()
	for _, m := range []struct {
		name     string
		language core.Language
		lines    int
		runs     int
		pause    time.Duration
		target   float64
	}{
		{"validation with risk: median program", core.TypeScript, 20, 50, 0, 10},
		{"validation with risk: 2,000-line program", core.TypeScript, 2000, 20, 0, 50},
		{"validation with risk: median program in Python", core.Python, 20, 15, 300 * time.Millisecond, 10},
		{"validation with risk: 2,000-line program in Python", core.Python, 2000, 10, 300 * time.Millisecond, 50},
	} {
		if m.language == core.Python && !slices.Contains(processes.Capabilities().Runtimes, "python") {
			continue // there is no Python here
		}
		b.pause = m.pause
		runs := 0
		err := b.timeRuns(m.name, m.runs, m.target, func() error {
			runs++ // a changed program, so that nothing of it is cached
			code := longProgram(tools, m.language, m.lines, runs)
			if verdict, refusal := g.Check(ctx, core.ExecutionRequest{Language: m.language, Code: code}, tools, nil); refusal != nil {
				return refusal
			} else if verdict.Risk.Score == 0 {
				return fmt.Errorf("a program that calls tools has no risk")
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// longProgram returns a program of about the given number of lines that calls five tools.
func longProgram(tools *core.Toolset, language core.Language, lines, seed int) string {
	part, comment := longScript, "//"
	if language == core.Python {
		part, comment = longPython, "#"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s program %d\n", comment, seed)
	for i := 0; strings.Count(b.String(), "\n") < lines; i++ {
		s := tools.Servers[i%5]
		t := s.Tools[i%5]
		name := s.TypeScript + "." + t.TypeScript
		if language == core.Python {
			name = s.Python + "." + t.Python
		}
		b.WriteString(strings.NewReplacer("%N", fmt.Sprint(i), "%T", name).Replace(part))
	}
	return b.String()
}

const longScript = `
// Step %N: the rows of one page, by owner.
const page%N: any = await %T({ id: 'page-%N' });
const owners%N = new Map<string, { count: number; total: number }>();
for (const row of page%N.items ?? []) {
  const key = String(row.owner ?? 'nobody').trim().toLowerCase();
  const sum = owners%N.get(key) ?? { count: 0, total: 0 };
  sum.count += 1;
  sum.total += Number(row.amount ?? 0);
  owners%N.set(key, sum);
}
const largest%N = [...owners%N.entries()].sort((a, b) => b[1].total - a[1].total).slice(0, 5);
function label%N(name: string, total: number): string {
  if (total > 1000) return ` + "`${name}: large`" + `;
  return total > 100 ? name + ': medium' : name;
}
console.log('step %N', largest%N.map(([name, s]) => label%N(name, s.total)).join(', '));
`

const longPython = `
# Step %N: the rows of one page, by owner.
page_%N = %T(id="page-%N")
owners_%N = {}
for row in page_%N.get("items", []):
    key = str(row.get("owner") or "nobody").strip().lower()
    total = owners_%N.setdefault(key, {"count": 0, "total": 0})
    total["count"] += 1
    total["total"] += float(row.get("amount") or 0)
largest_%N = sorted(owners_%N.items(), key=lambda kv: -kv[1]["total"])[:5]

def label_%N(name, total):
    if total > 1000:
        return f"{name}: large"
    return name + ": medium" if total > 100 else name

print("step %N", ", ".join(label_%N(name, s["total"]) for name, s in largest_%N))
`
