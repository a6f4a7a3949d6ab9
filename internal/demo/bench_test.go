package demo

import "testing"

func BenchmarkBuild(b *testing.B) {
	for _, name := range Names() {
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

func BenchmarkCall(b *testing.B) {
	for _, x := range []struct{ name, server, tool, args string }{
		{"update", "crm", "update_record", `{"objectType":"Lead","recordId":"00Q001500","data":{"Notes":"x"}}`},
		{"transcript", "drive", "get_document", `{"documentId":"abc123"}`},
		{"sheet", "sheets", "read_rows", `{"spreadsheetId":"orders-2026","limit":10000}`},
	} {
		b.Run(x.name, func(b *testing.B) {
			c, _ := open(b, x.server)
			for b.Loop() {
				if o := c.call(x.tool, x.args); o.IsError {
					b.Fatal(o.text())
				}
			}
		})
	}
}
