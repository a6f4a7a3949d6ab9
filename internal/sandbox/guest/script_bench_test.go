package guest

import (
	"context"
	"testing"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/sandbox/wire"
)

func benchmarkRuntimes(b *testing.B, bench func(b *testing.B, r *scripted)) {
	for _, name := range []string{"node", "node22", "bun", "deno"} {
		b.Run(name, func(b *testing.B) { bench(b, newScripted(b, name)) })
	}
}

// BenchmarkScriptStart measures how long a guest process of each JavaScript runtime takes to become ready.
func BenchmarkScriptStart(b *testing.B) {
	benchmarkRuntimes(b, func(b *testing.B, r *scripted) {
		for b.Loop() {
			p := r.start(b, 512<<20)
			b.StopTimer()
			_ = p.end(b)
			b.StartTimer()
		}
	})
}

// benchmarkScript measures a program in processes that are ready and idle when the program arrives.
func benchmarkScript(b *testing.B, code string) {
	h := &fakeHost{}
	benchmarkRuntimes(b, func(b *testing.B, r *scripted) {
		for b.Loop() {
			b.StopTimer()
			p := r.start(b, 512<<20)
			testenv.FallsAsleep(p.cmd.Process.Pid)
			b.StartTimer()
			end, err := wire.ServeProgram(context.Background(), p.FrameConn, core.CheckedProgram{Code: code, Limits: core.DefaultLimits(), Namespaces: demoNamespaces}, h)
			b.StopTimer()
			if _ = p.end(b); err != nil || end.Status != core.StatusOK {
				b.Fatal(err, end.Status, end.Error)
			}
			b.StartTimer()
		}
	})
}

func BenchmarkScriptPrint(b *testing.B) { benchmarkScript(b, "console.log({a: 1}); return 1") }

func BenchmarkScript1000Calls(b *testing.B) {
	benchmarkScript(b, "for (let i = 0; i < 1000; i++) await demo.echo({text: 'x', i})")
}

func BenchmarkScript1000CallsAtOnce(b *testing.B) {
	benchmarkScript(b, "await Promise.all(Array.from({length: 1000}, (_, i) => demo.echo({text: 'x', i})))")
}

func BenchmarkScriptValue(b *testing.B) {
	benchmarkScript(b, "return Array.from({length: 10000}, (_, i) => ({id: i, name: 'name of row ' + i, tags: ['a', 'b'], when: new Date(i * 1e9), total: 1.5}))")
}
