//go:build unix

package client

import (
	"encoding/json"
	"testing"
)

// BenchmarkCall measures a call through the pool, once to a server in memory and once to a process over its standard
// streams. The time that the server needs is included.
func BenchmarkCall(b *testing.B) {
	for name, server := range map[string]ServerSpec{
		"memory": {Name: "s", Dial: dialScripted(func(*scripted) {})},
		"stdio":  hostileServer("proper"),
	} {
		p := New([]ServerSpec{server}, Options{})
		args := json.RawMessage(`{"owner":"o","repo":"r","number":42}`)
		call := func(b *testing.B) {
			if _, err := p.Call(b.Context(), "s", "t", args); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(name+"/sequential", func(b *testing.B) {
			for b.Loop() {
				call(b)
			}
		})
		b.Run(name+"/concurrent", func(b *testing.B) {
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					call(b)
				}
			})
		})
		_ = p.Close()
	}
}
