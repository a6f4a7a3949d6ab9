package redact

import (
	"bytes"
	"fmt"
	"testing"
)

// BenchmarkIncoming measures how long a new session takes to hide the personal data of ten thousand contacts in a
// server's result.
func BenchmarkIncoming(b *testing.B) {
	var rows bytes.Buffer
	for i := range 10_000 {
		fmt.Fprintf(&rows, `{"id":"0035f%08d","firstName":"Hanne","lastName":"Halvorsen","email":"hanne.%d@example.com","phone":"+1 212 555 %04d","score":%d,"notes":"Met at the trade fair, wants an offer for some units until the end of the month."},`, i, i, i, i%100)
	}
	document := []byte("[" + rows.String() + "{}]")
	b.SetBytes(int64(len(document)))
	for b.Loop() {
		s := open(b, Options{})
		if _, err := s.RedactIncoming("crm", document); err != nil {
			b.Fatal(err)
		}
	}
}
