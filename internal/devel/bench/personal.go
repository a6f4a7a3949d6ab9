package bench

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"retort/internal/privacy/redact"
	"retort/internal/privacy/vault"
)

// detectionSample describes documents for measuring the detection of one type of personal data: made-up values in
// sentences and JSON, and similar values that are not personal data.
type detectionSample struct {
	name     string
	value    func(r *rand.Rand) string
	frames   []string                  // texts in which %s stands for the value
	negative func(r *rand.Rand) string // returns a document without a value of the type
	losses   string
}

const sampleCount = 120 // documents of each type that contain a value; half as many more contain none

var (
	givenNames = []string{"Maria", "James", "Anna", "Peter", "Sofia", "Thomas", "Laura", "Michael", "Emma", "David", "Julia", "Daniel"}
	surnames   = []string{
		"Schneider", "Miller", "Johansson", "Rossi", "Novak", "Dubois", "Garcia", "Smith", "Larsen", "Weber", "Kowalski",
		"Brown",
	}
)

func randomDigits(r *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		b.WriteByte(byte('0' + r.IntN(10)))
	}
	return b.String()
}

func oneOf(r *rand.Rand, list []string) string { return list[r.IntN(len(list))] }

func fullName(r *rand.Rand) string { return oneOf(r, givenNames) + " " + oneOf(r, surnames) }

// cardNumber makes a number with a valid checksum.
func cardNumber(r *rand.Rand) string {
	number := "4" + randomDigits(r, 14)
	sum := 0
	for i, c := range number {
		d := int(c - '0')
		if i%2 == 0 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return number + fmt.Sprint((10-sum%10)%10)
}

var personalSamples = []detectionSample{
	{"email", func(r *rand.Rand) string {
		return strings.ToLower(oneOf(r, givenNames)+"."+oneOf(r, surnames)) + randomDigits(r, 2) + "@example.org"
	}, []string{`"write to %s today"`, `{"contact":"%s"}`},
		func(r *rand.Rand) string { return `"the package @scope/name@` + randomDigits(r, 1) + `.2.3 is out"` }, ""},
	{"phone", func(r *rand.Rand) string {
		return fmt.Sprintf("+1 212 %d %s", 200+r.IntN(700), "0"+randomDigits(r, 3))
	}, []string{`"call %s after noon"`, `{"phone":"%s"}`},
		func(r *rand.Rand) string { return `"order 20260517-` + randomDigits(r, 4) + ` of 2026-05-17"` }, ""},
	{
		"credit card", cardNumber, []string{`"paid with %s"`, `{"creditCard":"%s"}`, `"card %s was declined"`},
		func(r *rand.Rand) string { return `{"id":"` + randomDigits(r, 13) + `x"}` }, "",
	},
	{"SSN", func(r *rand.Rand) string {
		return fmt.Sprintf("%03d-%02d-%04d", 100+r.IntN(500), 1+r.IntN(98), 1+r.IntN(9998))
	}, []string{`"his SSN is %s"`, `{"ssn":"%s"}`},
		func(r *rand.Rand) string { return `"build 000-12-` + randomDigits(r, 4) + ` passed"` }, ""},
	{"IP address", func(r *rand.Rand) string {
		return fmt.Sprintf("81.%d.%d.%d", 1+r.IntN(250), 1+r.IntN(250), 1+r.IntN(250))
	}, []string{`"from %s at noon"`, `{"clientIp":"%s"}`},
		func(r *rand.Rand) string { return `"version 1.2.` + randomDigits(r, 2) + ` is out"` }, ""},
	{
		"name, by key", fullName, []string{`{"fullName":"%s"}`, `{"customer":{"name":"%s"}}`},
		func(r *rand.Rand) string { return `{"name":"list_issues_` + randomDigits(r, 2) + `"}` }, "",
	},
	{
		"name, in prose", fullName, []string{`"Yesterday %s called about the order."`, `"%s will join the meeting."`},
		func(r *rand.Rand) string { return `"The Dataset Viewer said ` + randomDigits(r, 2) + `"` },
		"names in running text are found by words around them and by lists; some are missed",
	},
	{"company, in prose", func(r *rand.Rand) string {
		return oneOf(r, surnames) + oneOf(r, []string{" GmbH", " Ltd", " Inc", " and Sons", " Group"})
	},
		[]string{`"We met %s in May."`, `"The offer of %s is late."`},
		func(r *rand.Rand) string { return `"The Inc of ` + randomDigits(r, 2) + `"` },
		"companies without a legal form are missed"},
}

// personalTargets measures for each type of personal data how many documents are handled correctly. A document is
// handled correctly if its value is hidden from the model, or if nothing is hidden because it has none.
func personalTargets() ([]PromisedTarget, error) {
	const promised = 99.0
	var all []PromisedTarget
	r := rand.New(rand.NewPCG(7, 11))
	for _, s := range personalSamples {
		missed, wrong, err := s.measureDetection(r)
		if err != nil {
			return nil, err
		}
		total := sampleCount + sampleCount/2
		accuracy := 100 * float64(total-missed-wrong) / float64(total)
		met := accuracy >= promised
		t := PromisedTarget{
			Name: "personal data: " + s.name, Promised: "> 99 %", Measured: fmt.Sprintf("%.1f %%", accuracy), Met: &met,
			Command: "retort bench targets", Losses: s.losses,
		}
		if missed+wrong > 0 {
			t.Losses = strings.TrimPrefix(
				s.losses+fmt.Sprintf("; %d of %d missed, %d of %d wrongly hidden", missed, sampleCount, wrong, sampleCount/2), "; ",
			)
		}
		all = append(all, t)
	}
	return all, nil
}

func (s detectionSample) measureDetection(r *rand.Rand) (missed, wrong int, err error) {
	hide := func(document string) (string, error) {
		session, err := redact.New(redact.Options{}, vault.Open("", nil, 0)).OpenSession("default")
		if err != nil {
			return "", err
		}
		out, err := session.RedactOutgoing([]byte(document))
		return string(out), err
	}
	for i := range sampleCount {
		value := s.value(r)
		out, err := hide(fmt.Sprintf(s.frames[i%len(s.frames)], value))
		if err != nil {
			return 0, 0, err
		}
		if strings.Contains(out, value) {
			missed++
		}
	}
	for range sampleCount / 2 {
		document := s.negative(r)
		out, err := hide(document)
		if err != nil {
			return 0, 0, err
		}
		if out != document {
			wrong++
		}
	}
	return missed, wrong, nil
}
