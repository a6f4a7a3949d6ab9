package catalog

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
)

func BenchmarkReplace(b *testing.B) {
	for _, n := range []int{450, 10_000} {
		all := make([]json.RawMessage, n)
		for i := range all {
			all[i] = json.RawMessage(fmt.Sprintf(`{"name":"tool_%d","description":"Lists the open issues of a repository","inputSchema":{"type":"object","properties":{"owner":{"type":"string","description":"who owns it"},"repo":{"type":"string"},"n":{"type":"integer"}},"required":["owner","repo"]}}`, i))
		}
		b.Run(fmt.Sprint("tools=", n), func(b *testing.B) {
			c, err := Open(Options{})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := c.ReplaceListing("s", all, ""); err != nil {
					b.Fatal(err)
				}
				c.Toolset()
			}
		})
	}
}

func BenchmarkColdStart(b *testing.B) {
	o := Options{Dir: b.TempDir(), Key: filepath.Join(b.TempDir(), "key")}
	c, err := Open(o)
	if err != nil {
		b.Fatal(err)
	}
	for s := range 10 {
		var all []json.RawMessage
		for i := range 45 {
			all = append(all, json.RawMessage(fmt.Sprintf(`{"name":"tool_%d","description":"Lists the open issues of a repository","inputSchema":{"type":"object","properties":{"owner":{"type":"string","description":"who owns it"},"repo":{"type":"string"},"n":{"type":"integer"}},"required":["owner","repo"]}}`, i)))
		}
		if _, err := c.ReplaceListing(fmt.Sprint("server", s), all, ""); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		again, err := Open(o)
		if err != nil {
			b.Fatal(err)
		}
		if n := again.Toolset().CountTools(); n != 450 {
			b.Fatal(n)
		}
	}
}
