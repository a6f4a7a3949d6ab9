package pii

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/nyaruka/phonenumbers"
)

var update = flag.Bool("update", false, "rewrite phones.txt and goldens")

const phonesHead = `# Numbering plans, made from the metadata of libphonenumber (https://github.com/google/libphonenumber,
# Copyright The Libphonenumber Authors, Apache License 2.0, https://www.apache.org/licenses/LICENSE-2.0)
# by go test -run PhoneList -update. Region, country's code, prefix of calls inside the country,
# possible lengths as bits in hexadecimal, pattern of numbers in use.
`

// TestPhoneListIsCurrent checks that phones.txt agrees with the metadata of the phonenumbers library. With -update it
// writes the file.
func TestPhoneListIsCurrent(t *testing.T) {
	collection, err := phonenumbers.MetadataCollection()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString(phonesHead)
	for _, m := range collection.GetMetadata() {
		var patterns []string
		for _, d := range []*phonenumbers.PhoneNumberDesc{m.GetFixedLine(), m.GetMobile(), m.GetTollFree(), m.GetPremiumRate(), m.GetSharedCost(),
			m.GetPersonalNumber(), m.GetVoip(), m.GetPager(), m.GetUan(), m.GetVoicemail()} {
			p := strings.Join(strings.Fields(d.GetNationalNumberPattern()), "")
			if p != "" && p != "NA" && !slices.Contains(patterns, p) {
				patterns = append(patterns, p)
			}
		}
		lengths := uint32(0)
		for _, l := range m.GetGeneralDesc().GetPossibleLength() {
			lengths |= 1 << l
		}
		trunk := m.GetNationalPrefix()
		if trunk == "" {
			trunk = "-"
		}
		fmt.Fprintf(&b, "%s %d %s %x %s\n", m.GetId(), m.GetCountryCode(), trunk, lengths, strings.Join(patterns, "|"))
	}
	if *update {
		if err := os.WriteFile("phones.txt", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if b.String() != phoneList {
		t.Error("phones.txt is not what the library has: run with -update")
	}
}

// TestPlansKnowExamples checks that the compiled numbering plans accept the example numbers of the phonenumbers
// library. They must also accept those changed example numbers that the library accepts.
func TestPlansKnowExamples(t *testing.T) {
	plans := parsePlans(phoneList)
	n := 0
	for region, p := range plans.regions {
		if region == "001" {
			continue
		}
		for _, kind := range []phonenumbers.PhoneNumberType{phonenumbers.FIXED_LINE, phonenumbers.MOBILE, phonenumbers.TOLL_FREE} {
			number := phonenumbers.GetExampleNumberForType(region, kind)
			if number == nil {
				continue
			}
			n++
			national := phonenumbers.GetNationalSignificantNumber(number)
			if !p.isValid([]byte(national)) {
				t.Errorf("%s: %s is in use", region, national)
			}
			for _, other := range []string{national + "00000000", "1", national[:len(national)-1]} {
				parsed, err := phonenumbers.Parse("+"+p.code+other, region)
				want := err == nil && phonenumbers.IsValidNumberForRegion(parsed, region) && phonenumbers.GetNationalSignificantNumber(parsed) == other
				if got := p.isValid([]byte(other)); got != want && want {
					t.Errorf("%s: %s: got %v, want %v", region, other, got, want)
				}
			}
		}
	}
	if n < 500 {
		t.Errorf("only %d examples", n)
	}
}
