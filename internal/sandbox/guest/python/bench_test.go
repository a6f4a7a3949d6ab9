package python

import (
	"context"
	"testing"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/sandbox/wire"
)

// BenchmarkStart measures how long a Python guest takes to become ready.
func BenchmarkStart(b *testing.B) {
	s := newStarter(b)
	for b.Loop() {
		_, g := s.start(b)
		_ = g.Close()
	}
}

func benchmarkProgram(b *testing.B, warm bool, code string) {
	s, h := newStarter(b), &fakeHost{}
	for b.Loop() {
		b.StopTimer()
		conn, g := s.start(b)
		if warm { // wait until the guest has loaded everything and is idle
			testenv.FallsAsleep(g.cmd.Process.Pid)
		}
		b.StartTimer()
		end, err := wire.ServeProgram(context.Background(), conn, core.CheckedProgram{Code: code, Limits: core.DefaultLimits(), Namespaces: demoNamespaces}, h)
		if err != nil || end.Status != core.StatusOK {
			b.Fatal(err, end.Status, end.Error)
		}
	}
}

func BenchmarkCold1(b *testing.B) { benchmarkProgram(b, false, "1") }

func BenchmarkReturn1(b *testing.B) { benchmarkProgram(b, true, "1") }

func BenchmarkAwait(b *testing.B) {
	benchmarkProgram(b, true, "import asyncio\nawait asyncio.gather(demo.echo(text=1), demo.echo(text=2))")
}

func Benchmark1000Calls(b *testing.B) {
	benchmarkProgram(b, true, "for i in range(1000):\n    demo.echo(text='x', times=i)")
}

func Benchmark1000Gathered(b *testing.B) {
	benchmarkProgram(b, true, "import asyncio\nlen(await asyncio.gather(*[demo.echo(text='x', times=i) for i in range(1000)]))")
}

// BenchmarkValue measures a program that returns a megabyte of rows.
func BenchmarkValue(b *testing.B) {
	benchmarkProgram(b, true, "[{'id': i, 'name': 'name of row %d' % i, 'tags': ['a', 'b'], 'when': '1970', 'total': 1.5} for i in range(10000)]")
}

// BenchmarkParse measures parsing and compiling a small program in a guest.
func BenchmarkParse(b *testing.B) {
	conn, g := newStarter(b).start(b)
	testenv.FallsAsleep(g.cmd.Process.Pid)
	for b.Loop() {
		if _, _, err := wire.ParseCode(context.Background(), conn, smallProgram); err != nil {
			b.Fatal(err)
		}
		if _, err := wire.AwaitCompiled(context.Background(), conn); err != nil {
			b.Fatal(err)
		}
	}
}

const smallProgram = `import asyncio
from collections import Counter

async def main():
    issues = await asyncio.gather(*[demo.issue(number=n) for n in range(9)])
    counts = Counter(i["state"] for i in issues)
    for state, count in counts.most_common():
        print(f"{state}: {count}")
    return {"total": len(issues), "by_state": counts}

result = asyncio.run(main())
`
