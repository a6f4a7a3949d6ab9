package pii

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nyaruka/phonenumbers"
)

// licensed holds one line of testdata/*/cases.txt: a test case from another project, whose licence is in the same
// folder. The columns are separated by tabs.
type licensed struct {
	typ    Type
	origin string // folder and what its authors call the case
	// sign says how the case is used. With +, the value is valid and must be found, and with - it is invalid. With =,
	// the case is a text in which the expected findings are marked. With ~ and a reason, the case is not used.
	// testdata/README.md describes the format.
	sign  string
	label string // what stands before the value, or for = the region
	text  string
}

func licensedCases(t *testing.T) (all []licensed) {
	t.Helper()
	files, err := filepath.Glob("testdata/*/cases.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			c := strings.SplitN(lines.Text(), "\t", 5)
			if len(c) != 5 {
				t.Fatalf("%s: %q", name, lines.Text())
			}
			all = append(all, licensed{Type(c[0]), filepath.Base(filepath.Dir(name)) + " " + c[1], c[2], c[3], c[4]})
		}
	}
	return all
}

// licensedFrames lists the sentences into which a value is inserted together with its label.
var licensedFrames = []string{"%s", "Please note %s.", "(%s), as agreed", "x\n%s\ny", "\"%s\""}

// marked removes the marks « and » from a text and returns the parts between them as expected findings.
func marked(typ Type, text string) (plain string, want []TypedSpan) {
	for {
		before, rest, ok := strings.Cut(text, "«")
		plain += before
		if !ok {
			return plain, want
		}
		value, after, _ := strings.Cut(rest, "»")
		want = append(want, TypedSpan{len(plain), len(plain) + len(value), typ})
		plain, text = plain+value, after
	}
}

// TestLicensed checks with the test cases of other projects that the scanner finds the valid values and not the
// invalid ones. Precision and recall of each type must be at least 99 percent, or 98 percent for phone numbers.
func TestLicensed(t *testing.T) {
	m, left, none := measure{}, map[string]int{}, map[Type]int{}
	usual := New(Options{})
	limit := 40
	for _, c := range licensedCases(t) {
		if why, ok := strings.CutPrefix(c.sign, "~"); ok {
			left[why]++
			continue
		}
		s, frames := usual, licensedFrames
		if c.sign == "=" {
			s, frames = New(Options{Regions: []string{c.label}}), frames[:1]
		}
		for _, frame := range frames {
			raw, want := c.framed(frame)
			got := ofTypes(s.FindText(nil, []byte(raw)), []Type{c.typ})
			if c.sign == "-" {
				if c.typ == CreditCard && len(got) > 0 {
					continue // a word calls it a card's, so it is hidden without its checksum
				}
				if none[c.typ]++; !c.within(got, strings.Index(raw, c.text)) {
					got = nil
				}
			}
			m.add(want, got)
			complain(t, []byte(raw), want, got, &limit)
		}
	}
	t.Log(m.table("licensed"))
	t.Logf("not valid, and not to be found: %v", none)
	t.Logf("left out: %v", left)
	for typ, x := range m {
		least := .99
		if typ == Phone {
			least = .98
		}
		if p, r := ratio(x[0], x[2]), ratio(x[0], x[1]); p < least || r < least {
			t.Errorf("%s: precision %.4f, recall %.4f", typ, p, r)
		}
	}
}

// framed returns the case inserted into a text, and the findings that are expected there.
func (c licensed) framed(frame string) (raw string, want []TypedSpan) {
	if c.sign == "=" {
		return marked(c.typ, c.text)
	}
	value := c.text
	if c.sign == "+" {
		value = "«" + value + "»"
	}
	if c.label != "" {
		value = c.label + ": " + value
	}
	return marked(c.typ, fmt.Sprintf(frame, value))
}

// within reports whether the scanner found an invalid value. A finding that only overlaps it counts too, except for
// e-mail: an invalid address may contain a valid one.
func (c licensed) within(got []TypedSpan, start int) bool {
	end := start + len(c.text)
	for _, f := range got {
		if f.Start == start && f.End == end || c.typ != Email && f.Start < end && f.End > start {
			return true
		}
	}
	return false
}

// TestLicensedPhones checks that the example numbers of libphonenumber are found for every region, with and without
// the country code.
func TestLicensedPhones(t *testing.T) {
	abroad, home, limit := measure{}, measure{}, 30
	usual := New(Options{})
	for region := range phonenumbers.GetSupportedRegions() {
		local := New(Options{Regions: []string{region}})
		for _, sort := range []phonenumbers.PhoneNumberType{phonenumbers.FIXED_LINE, phonenumbers.MOBILE, phonenumbers.TOLL_FREE} {
			n := phonenumbers.GetExampleNumberForType(region, sort)
			if n == nil || !phonenumbers.IsValidNumber(n) {
				continue
			}
			try := func(m measure, s *Scanner, format phonenumbers.PhoneNumberFormat, frames ...string) {
				number := phonenumbers.Format(n, format)
				for _, frame := range frames {
					raw, want := marked(Phone, fmt.Sprintf(frame, "«"+number+"»"))
					got := ofTypes(s.FindText(nil, []byte(raw)), []Type{Phone})
					m.add(want, got)
					complain(t, []byte(raw), want, got, &limit)
				}
			}
			try(abroad, usual, phonenumbers.INTERNATIONAL, "%s", "Call me on %s today.", "(%s)", "a;%s;b")
			try(abroad, usual, phonenumbers.E164, "%s", "Call me on %s today.", "(%s)", "a;%s;b")
			try(home, local, phonenumbers.NATIONAL, "Tel.: %s", "my phone number is %s, thanks")
		}
	}
	for title, m := range map[string]measure{"with the country's code": abroad, "as dialled at home": home} {
		t.Log(m.table(title))
		if p, r := m.total(); p < .98 || r < .98 || title[0] == 'w' && r < 1 {
			t.Errorf("%s: precision %.4f, recall %.4f", title, p, r)
		}
	}
}

// TestLicensedNames checks that the scanner finds names and companies in the text of letters, even if they are in
// none of its lists. Companies whose names contain no legal form (such as GmbH) look like other words. Therefore they
// are measured separately and may be missed.
func TestLicensedNames(t *testing.T) {
	raw, err := os.ReadFile("testdata/faker/names.txt")
	if err != nil {
		t.Fatal(err)
	}
	s, limit := New(Options{}), 30
	formal, plain := measure{}, measure{}
	r := rand.New(rand.NewPCG(8, 7))
	for i, line := range strings.Split(strings.TrimSpace(string(raw)), "\n") {
		c := strings.Split(line, "\t")
		m := plain
		if words := strings.Fields(c[3]); slices.Contains(companyForms, words[len(words)-1]) {
			m = formal
		}
		for j := range 3 {
			w := &writer{r: r, who: person_{c[1], c[2], c[3]}}
			w.write(letters[(3*i+j)%len(letters)])
			types := []Type{Name, Company}
			want, got := ofTypes(w.want, types), ofTypes(spans(s, w.out.Bytes()), types)
			m.add(want, got)
			complain(t, w.out.Bytes(), want, got, &limit)
		}
	}
	t.Log(formal.table("names of faker, companies with a legal form"))
	t.Log(plain.table("names of faker, companies without one"))
	for typ, least := range map[Type][2]float64{Name: {.95, .92}, Company: {.9, .9}} {
		if p, r := ratio(formal[typ][0], formal[typ][2]), ratio(formal[typ][0], formal[typ][1]); p < least[0] || r < least[1] {
			t.Errorf("%s: precision %.4f, recall %.4f", typ, p, r)
		}
	}
}
