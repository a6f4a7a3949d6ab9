package bench

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"retort/internal/privacy/pii"
	"retort/internal/privacy/redact"
	"retort/internal/privacy/vault"
)

// measurePrivacy measures how fast personal data is found and hidden: in 10 MB of text with few findings, in 10 MB
// of CRM records with three findings each, and in one small result. The targets are 150 MB/s, 80 MB/s and 0.3 ms.
func (b *benchRun) measurePrivacy(context.Context) error {
	const size = 10_000_000
	r := rand.New(rand.NewPCG(1, 2))
	text, records, small := makeProse(r, size), makeCustomers(r, size), makeCustomers(r, 10_000)
	scanner := pii.New(pii.Options{})
	var found []pii.TypedSpan
	err := b.timeRuns("scan 10 MB of text for personal data", 5, 66.7, func() error {
		found = scanner.FindText(found[:0], text)
		return checkFindings(len(found))
	})
	if err != nil {
		return err
	}
	for _, m := range []struct {
		name     string
		document []byte
		runs     int
		target   float64
	}{
		{"hide personal data in 10 MB of JSON", records, 5, 125},
		{"hide personal data in a result of 10 KB", small, 100, 0.3},
	} {
		err := b.timeRuns(m.name, m.runs, m.target, func() error {
			session, err := redact.New(redact.Options{}, vault.Open("", nil, 0)).OpenSession("default")
			if err != nil {
				return err
			}
			out, err := session.RedactIncoming("crm", m.document)
			if err != nil {
				return err
			}
			return checkFindings(bytes.Count(out, []byte("[EMAIL_")))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func checkFindings(n int) error {
	if n == 0 {
		return fmt.Errorf("nothing personal was found")
	}
	return nil
}

// makeProse returns prose with an occasional address or number.
func makeProse(r *rand.Rand, size int) []byte {
	words := strings.Fields("the report says that revenue of the second quarter was higher than expected and the team will meet on Tuesday to discuss what to do next with customers in " +
		"Berlin, Madrid and New York (see page 12). A total of 1,204 units were shipped in 2024 for $12.50 each; version 2.3.1 is out since 2024-05-17 and works.")
	var b bytes.Buffer
	for b.Len() < size {
		if r.IntN(60) == 0 {
			fmt.Fprintf(&b, "anna.%d@example.com ", r.IntN(1000))
		}
		b.WriteString(words[r.IntN(len(words))])
		b.WriteByte(' ')
	}
	return b.Bytes()
}

// makeCustomers returns records as a CRM sends them.
func makeCustomers(r *rand.Rand, size int) []byte {
	first, last := strings.Fields("Hanne Olivia Priya Camille Denise Matteo Ingrid Tomas"), strings.Fields(
		"Halvorsen Rivera Mehta Girard Okafor Lindqvist Moretti Novak",
	)
	var b bytes.Buffer
	b.WriteString(`{"contacts":[`)
	for i := 0; b.Len() < size; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		f, l := first[r.IntN(8)], last[r.IntN(8)]
		fmt.Fprintf(&b, `{"id":"0035f00000%08d","firstName":%q,"lastName":%q,"email":"%s.%d@example.com","phone":"+1 212 555 %04d","title":"Head of Procurement","status":"open","score":%d,`+
			`"createdDate":"2025-0%d-1%dT08:11:00.000Z","lastActivityMs":17%011d,"notes":"Met at the trade fair, wants an offer for %d units until the end of the month. Please send the data sheet to the office."}`,
			i, f, l, strings.ToLower(f), i, r.IntN(10000), r.IntN(100), 1+r.IntN(9), r.IntN(9), r.Int64N(1e11), r.IntN(500))
	}
	b.WriteString("]}")
	return b.Bytes()
}
