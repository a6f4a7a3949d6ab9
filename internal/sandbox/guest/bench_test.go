package guest

import (
	"context"
	"testing"

	"retort/internal/core"
	"retort/internal/sandbox/wire"
)

// BenchmarkStart measures how long a guest in this process takes to become ready.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		_ = newGuestConn(b).Close()
	}
}

func benchmarkProgram(b *testing.B, code string) {
	h := &fakeHost{}
	for b.Loop() {
		b.StopTimer()
		conn := newGuestConn(b)
		b.StartTimer()
		end, err := wire.ServeProgram(context.Background(), conn, core.CheckedProgram{Code: code, Limits: core.DefaultLimits(), Namespaces: demoNamespaces}, h)
		if err != nil || end.Status != core.StatusOK {
			b.Fatal(err, end.Status, end.Error)
		}
	}
}

func BenchmarkReturn1(b *testing.B) { benchmarkProgram(b, "return 1") }

func BenchmarkPrint(b *testing.B) { benchmarkProgram(b, "console.log({a: 1}); return 1") }

func Benchmark1000Calls(b *testing.B) {
	benchmarkProgram(b, "for (let i = 0; i < 1000; i++) await demo.echo({text: 'x', i})")
}

// BenchmarkValue measures a program that returns a megabyte of rows.
func BenchmarkValue(b *testing.B) {
	benchmarkProgram(b, "return Array.from({length: 10000}, (_, i) => ({id: i, name: 'name of row ' + i, tags: ['a', 'b'], when: new Date(i * 1e9), total: 1.5}))")
}
