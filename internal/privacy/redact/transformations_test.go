package redact

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/unicode/norm"

	"retort/internal/devel/testenv"
)

// planted is a record whose values must not reach the model. Its given names and family names are not common words.
type planted struct{ First, Last, Company, Street, Born, Phone string }

func plant(r *rand.Rand) planted {
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	return planted{
		pick("Hanne", "Kwame", "Anežka", "Øyvind", "Анна", "Ełżbieta", "Aoife", "Bo", "Νίκη", "Jürgen"),
		pick("Zandstra", "Mensah", "Dvořáková", "Petrović", "Петрова", "Świątek", "Weißmüller", "Ng", "Παπαδοπούλου", "Nguyễn"),
		pick("Sonnentau", "Quellhorn", "Vørdal", "«Roga»") + " " + pick("Werke", "Holding", "i Kopyta"),
		fmt.Sprint(1+r.IntN(99), " ", pick("Lindenstraße", "Harbour Way", "Rue Clér")),
		time.Date(1930+r.IntN(80), time.Month(1+r.IntN(12)), 1+r.IntN(28), 0, 0, 0, 0, time.UTC).Format("2006-01-02"),
		fmt.Sprintf("+1 202 555 %04d", r.IntN(10000)),
	}
}

// spellings lists ways in which a program can change a text so that it stays recognisable.
var spellings = []func(string) string{
	func(s string) string { return s }, strings.ToUpper, strings.ToLower, norm.NFD.String, norm.NFC.String, url.PathEscape,
	func(s string) string { return strings.Join(strings.Split(s, ""), "\u200b") },
	func(s string) string { return "(" + s + ")," }, func(s string) string { return s + "'s file" },
	func(s string) string { return base64.StdEncoding.EncodeToString([]byte("of " + s)) },
	func(s string) string { return "it was " + s + "." }, func(s string) string { return s + strings.Repeat(" and more", 40) },
	func(s string) string { return strings.ReplaceAll(s, " ", "_") }, func(s string) string { return strings.ReplaceAll(s, " ", "-") },
}

// dateSpellings lists layouts in which a program can write a date of birth.
var dateSpellings = []string{
	time.DateOnly, time.RFC3339, "2006-01-02T15:04:05.000Z", "02.01.2006", "2.1.2006", "01/02/2006", "2/1/2006", "2006/01/02",
	"January 2, 2006", "2 January 2006", "Jan 2 2006", "Mon Jan 2 2006 15:04:05 GMT-0700", "20060102", "02-01-2006", time.DateTime,
}

// placements lists ways in which a program can put a text into a document.
var placements = []func(text string, r *rand.Rand) any{
	func(s string, _ *rand.Rand) any { return s }, func(s string, _ *rand.Rand) any { return []string{s} },
	func(s string, _ *rand.Rand) any { return map[string]int{s: 1} },
	func(s string, r *rand.Rand) any {
		keys := []string{"id", "key", "file", "date", "count", "url", "ref", "path", "min", "status", "value", "from"}
		return map[string]any{keys[r.IntN(len(keys))]: s, "count": r.IntN(9)}
	},
	func(s string, _ *rand.Rand) any { return map[string]any{"rows": map[string][]string{s: {"x"}}} },
	func(s string, _ *rand.Rand) any {
		text, _ := json.Marshal(map[string]string{s: s})
		return string(text)
	},
	func(s string, _ *rand.Rand) any { return "a,b\n" + s + ",2\n" },
	func(s string, _ *rand.Rand) any { return "total of " + s + ": 3" },
	func(s string, _ *rand.Rand) any { return [][]any{{"key", "count"}, {s, 1}} },
}

// TestTransformations checks that no value of a record reaches the model in a form that docs/PERSONAL-DATA.md calls
// recognisable. It tries parts of records, spellings and places at random.
func TestTransformations(t *testing.T) {
	programs := 300
	if testenv.Full() {
		programs = 2000
	}
	r := rand.New(rand.NewPCG(31, 7))
	for range programs {
		p := plant(r)
		s := open(t, Options{})
		record, _ := json.Marshal([]map[string]string{{
			"name": p.First + " " + p.Last, "company": p.Company, "address": p.Street, "dateOfBirth": p.Born, "phone": p.Phone,
		}})
		incoming(t, s, "crm", string(record))
		for _, value := range []string{p.First + " " + p.Last, p.First, p.Last, p.Company, p.Street} {
			spelled := spellings[r.IntN(len(spellings))](value)
			if !strings.Contains(value, " ") && (spelled == strings.ToLower(spelled) || strings.Contains(spelled, "of ") && len([]rune(value)) < 4) {
				spelled = value // single words need a capital; short ones are not found in Base64 with others
			}
			checkHidden(t, s, spelled, placements[r.IntN(len(placements))](spelled, r))
		}
		born, _ := time.Parse(time.DateOnly, p.Born)
		date := born.Format(dateSpellings[r.IntN(len(dateSpellings))])
		checkHidden(t, s, date, placements[r.IntN(len(placements))](date, r))
		for _, number := range []string{p.Phone, strings.ReplaceAll(p.Phone, " ", "-"), strings.ReplaceAll(p.Phone[1:], " ", ""), p.Phone[3:]} {
			checkHidden(t, s, number, map[string]any{"ref": number, "seen": number})
		}
	}
}

// checkHidden checks that the model does not see any word of the value spelled in a document.
func checkHidden(t *testing.T, s *Session, spelled string, document any) {
	t.Helper()
	text, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.RedactOutgoing(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range strings.FieldsFunc(spelled, func(r rune) bool { return strings.ContainsRune(" ()',.-_/:", r) }) {
		if word = strings.Trim(word, "«»"); isOfValue(word) && strings.Contains(string(out), word) {
			t.Errorf("%q in %s: the model sees %s", spelled, text, out)
			return
		}
	}
}

// isOfValue reports whether a word of a spelling belongs to the value. The other words were added by the test.
func isOfValue(word string) bool {
	switch word {
	case "s", "file", "it", "was", "and", "more", "i", "Way", "way", "WAY", "Rue", "rue", "RUE", "Holding", "GMT+0000", "I":
		return false
	}
	return len(word) > 2 && !strings.HasPrefix(word, "00") && !isDay(word)
}

func isDay(word string) bool {
	return len(word) < 4 && strings.Contains("Mon Tue Wed Thu Fri Sat Sun Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec", word)
}
