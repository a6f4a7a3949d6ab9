package demo

import (
	"encoding/json"
	"slices"
	"testing"
)

func BenchmarkBuild(b *testing.B) {
	for _, name := range ServerNames() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				s, err := Open(name)
				if err != nil {
					b.Fatal(err)
				}
				s.tools()
			}
		})
	}
}

// BenchmarkCall measures how long a server takes for one call: decoding, checking, working and encoding.
func BenchmarkCall(b *testing.B) {
	for _, x := range []struct{ server, tool, args string }{
		{"crm", "update_record", `{"objectType":"Lead","recordId":"00Q001500","data":{"Notes":"x"}}`},
		{"drive", "get_document", `{"documentId":"abc123"}`},
		{"sheets", "read_rows", `{"spreadsheetId":"orders-2026","limit":10000}`},
		{"database", "query", `{"sql":"SELECT region, SUM(amount) AS total FROM orders WHERE status = 'pending' GROUP BY region ORDER BY total DESC"}`},
	} {
		b.Run(x.server+"."+x.tool, func(b *testing.B) {
			s, err := Open(x.server)
			if err != nil {
				b.Fatal(err)
			}
			i := slices.IndexFunc(s.definitions, func(d *toolDefinition) bool { return d.name == x.tool })
			s.runToolCall(b.Context(), s.definitions[i], json.RawMessage(x.args))
			for b.Loop() {
				s.runToolCall(b.Context(), s.definitions[i], json.RawMessage(x.args))
			}
		})
	}
}
