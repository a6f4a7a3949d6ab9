package pii

import (
	"fmt"
	"strings"
	"testing"

	"retort/internal/devel/testenv"
)

func TestHostileTextTakesLinearTime(t *testing.T) {
	s := New(Options{})
	texts := map[string]func(n int) []byte{"names alike": manyNamed}
	for _, h := range hostile {
		texts[h] = func(n int) []byte { return []byte(strings.Repeat(h, n/len(h))) }
	}
	for h, text := range texts {
		testenv.GrowsLinearly(t, h, 1<<19, func(n int) {
			var c counting
			s.ReplaceValues(text(n), nil, &c)
		})
	}
}

// manyNamed returns a JSON document of about n bytes about people. Many of these people share a given name, a family
// name or both, and their names occur again in notes.
func manyNamed(n int) []byte {
	var b strings.Builder
	b.WriteByte('[')
	for i := 0; b.Len() < n; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		other := fmt.Sprintf("%c%c%c%cson", 'A'+i%26, 'a'+i/26%26, 'a'+i/676%26, 'a'+i/17576)
		name := []string{"Maria " + other, other + " Lindqvist", "Maria & " + other, "Maria del Mar " + other}[i%4]
		fmt.Fprintf(&b, `{"email":"a%d@example.com","full_name":%q,"note":"Maria del Mar, Maria & Maria and Lindqvist called"}`, i, name)
	}
	b.WriteByte(']')
	return []byte(b.String())
}
