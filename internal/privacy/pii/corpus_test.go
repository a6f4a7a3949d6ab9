package pii

import (
	"bytes"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// writer creates documents from templates and records the values that the scanner must find. In a template, «type»
// stands for a personal value of this type, and ‹noise› for text that must not be found.
type writer struct {
	r    *rand.Rand
	out  bytes.Buffer
	want []TypedSpan
	who  person_
}

type person_ struct{ first, last, company string }

// Documents are filled with these names and companies. About half of them are in none of the scanner's lists.
var (
	corpusFirst = strings.Fields("Hanne Jürgen Olivia Priya Łukasz Camille João Denise Torvald Ngozi Siobhán Xiomara Bojan Tove Kwame Ludmila Anouk Rashid Yevgenia Thaddeus Marisol Ebba Cillian Zeynep Aroha Babette Ottoline Keiko Sunniva Dragana Peter Maria Ahmed Linda Thomas Julia Andreas Sarah Ivan Sofia")
	corpusLast  = strings.Fields("Halvorsen Müller Rivera Mehta Wójcik Girard Carvalho Okafor Brennan Achterberg Szymborska Quintanilla Haldane Petrosyan Vanterpool Ystad Mbeki Oyelaran Fitzwilliam Lindqvist Abernathy Castellanos Drăgulescu Eichhorn Grünwald Hashimoto Ilves Jankovic Kekkonen Lavigne Smith Schmidt García Rossi Nguyen Kowalska Jansen Silva Weber Tanaka")
	corpusStems = strings.Fields("Halden Brightwater Ostra Kestrel Meridian Takumi Corvus Solstice Zephyr Castellan Northgate Verdant Yarrow Quillon Bexley Tamarack")
	corpusForms = []string{"GmbH", "AG", "Inc.", "Ltd", "LLC", "S.A.", "SARL", "B.V.", "AS", "Oy", "S.p.A.", "Corp.", "plc", "GmbH & Co. KG", "Pvt. Ltd.", "sp. z o.o."}
)

func pick[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }

func (w *writer) digits(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = '0' + byte(w.r.IntN(10))
	}
	if b[0] == '0' {
		b[0] = '1'
	}
	return string(b)
}

func ascii(s string) string {
	return strings.NewReplacer("ü", "ue", "ö", "oe", "ä", "ae", "Ł", "L", "ł", "l", "ó", "o", "ã", "a", "í", "i", "á", "a", "ă", "a", "é", "e", " ", "").Replace(strings.ToLower(s))
}

// checkDigit appends a digit to s and returns the result. It chooses the digit so that the function ok accepts the
// result, and returns "" if no digit does that.
func checkDigit(s string, ok func(string) bool) string {
	for d := range 10 {
		if t := fmt.Sprint(s, d); ok(t) {
			return t
		}
	}
	return ""
}

func sumLuhn(s string) bool {
	n := 0
	for i := range len(s) {
		d := int(s[len(s)-1-i] - '0')
		n += d
		if i%2 == 1 {
			n += d
			if d > 4 {
				n -= 9
			}
		}
	}
	return n%10 == 0
}

func (w *writer) iban() string {
	country := pick(w.r, []string{"DE18", "GB.", "FR23", "ES20", "NL.", "AT16", "PL24", "NO11"})
	body := ""
	switch country {
	case "GB.":
		country, body = "GB", "WEST"+w.digits(14)
	case "NL.":
		country, body = "NL", "ABNA"+w.digits(10)
	default:
		n := 0
		fmt.Sscan(country[2:], &n)
		country, body = country[:2], w.digits(n)
	}
	number := ""
	for _, c := range body + country + "00" {
		if c >= 'A' {
			number += fmt.Sprint(c - 'A' + 10)
		} else {
			number += string(c)
		}
	}
	n, _ := new(big.Int).SetString(number, 10)
	rest := new(big.Int).Mod(n, big.NewInt(97)).Int64()
	id := fmt.Sprintf("%s%02d%s", country, 98-rest, body)
	if w.r.IntN(2) == 0 {
		return id
	}
	var groups []string
	for chunk := range slices.Chunk([]byte(id), 4) {
		groups = append(groups, string(chunk))
	}
	return strings.Join(groups, " ")
}

func (w *writer) card() string {
	s := checkDigit(pick(w.r, []string{"4", "51", "55", "2221", "6011"})+w.digits(20), func(string) bool { return false })
	for s == "" {
		head := pick(w.r, []string{"4", "51", "55", "2230", "6011"})
		s = checkDigit(head+w.digits(15-len(head)), sumLuhn)
	}
	switch w.r.IntN(3) {
	case 0:
		return s[:4] + " " + s[4:8] + " " + s[8:12] + " " + s[12:]
	case 1:
		return s[:4] + "-" + s[4:8] + "-" + s[8:12] + "-" + s[12:]
	}
	return s
}

func (w *writer) phone() string {
	switch w.r.IntN(9) {
	case 0:
		return fmt.Sprintf("+1 %d%s-%d%s-%s", 2+w.r.IntN(7), "12", 2+w.r.IntN(7), "55", w.digits(4))
	case 1:
		return fmt.Sprintf("(%d12) %d55-%s", 2+w.r.IntN(7), 2+w.r.IntN(7), w.digits(4))
	case 2:
		return fmt.Sprintf("%d12-%d55-%s", 2+w.r.IntN(7), 2+w.r.IntN(7), w.digits(4))
	case 3:
		return "+49 30 " + w.digits(8)
	case 4:
		return "+44 20 7946 0" + w.digits(3)
	case 5:
		return fmt.Sprintf("0%d 4%d %s %s %s", 1+w.r.IntN(5), w.r.IntN(9), w.digits(2), w.digits(2), w.digits(2))
	case 6:
		return "+55 11 9" + w.digits(4) + "-" + w.digits(4)
	case 7:
		return "+47 22 " + w.digits(2) + " " + w.digits(2) + " " + w.digits(2)
	}
	return "+34 6" + w.digits(2) + " " + w.digits(3) + " " + w.digits(3)
}

func (w *writer) personal(kind string) (Type, string) {
	switch kind {
	case "first":
		return Name, w.who.first
	case "last":
		return Name, w.who.last
	case "name":
		return Name, w.who.first + " " + w.who.last
	case "company":
		return Company, w.who.company
	case "email":
		return Email, fmt.Sprintf("%s.%s%d@%s", ascii(w.who.first), ascii(w.who.last), w.r.IntN(100), pick(w.r, []string{"example.com", "mail.example.org", "example.co.uk", "müller-bau.de", "xn--bcher-kva.example"}))
	case "phone":
		return Phone, w.phone()
	case "barephone":
		return Phone, fmt.Sprintf("%d12%d55%s", 2+w.r.IntN(7), 2+w.r.IntN(7), w.digits(4))
	case "card":
		return CreditCard, w.card()
	case "ssn":
		return SSN, fmt.Sprintf("%d%s-%d%d-%s", 1+w.r.IntN(5), w.digits(2), 1+w.r.IntN(8), w.r.IntN(10), w.digits(4))
	case "iban":
		return IBAN, w.iban()
	case "ip":
		if w.r.IntN(3) == 0 {
			return IP, fmt.Sprintf("2001:db8:%x::%x", 1+w.r.IntN(60000), 1+w.r.IntN(60000))
		}
		return IP, fmt.Sprintf("%d.%d.%d.%d", 10+w.r.IntN(110), w.r.IntN(256), w.r.IntN(256), w.r.IntN(256))
	case "mac":
		return MAC, fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", w.r.IntN(256), w.r.IntN(256), w.r.IntN(256), w.r.IntN(256), w.r.IntN(256), 1+w.r.IntN(255))
	case "wallet":
		return Wallet, fmt.Sprintf("0x%016x%016x%08x", w.r.Uint64(), w.r.Uint64(), w.r.Uint32())
	case "dob":
		return DateOfBirth, pick(w.r, []string{fmt.Sprintf("19%d-0%d-1%d", 50+w.r.IntN(49), 1+w.r.IntN(9), w.r.IntN(10)), fmt.Sprintf("1%d.0%d.19%d", w.r.IntN(10), 1+w.r.IntN(9), 50+w.r.IntN(49)), fmt.Sprintf("%d March 19%d", 1+w.r.IntN(28), 50+w.r.IntN(49))})
	case "street":
		return Address, fmt.Sprintf("%s %d", pick(w.r, []string{"Lindenstraße", "Main Street", "Rue de Rivoli", "Calle Mayor", "Karl Johans gate"}), 1+w.r.IntN(200))
	case "zip":
		return Address, w.digits(5)
	case "pesel":
		y, m, d := 50+w.r.IntN(49), 1+w.r.IntN(12), 1+w.r.IntN(28)
		return NationalID, checkDigit(fmt.Sprintf("%02d%02d%02d%s", y, m, d, w.digits(4)), func(s string) bool {
			n := 0
			for i, weight := range []int{1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1} {
				n += weight * int(s[i]-'0')
			}
			return n%10 == 0
		})
	case "cpf":
		s := w.digits(9)
		for k := 10; k <= 11; k++ {
			n := 0
			for i := range s {
				n += (k - i) * int(s[i]-'0')
			}
			s += fmt.Sprint(n * 10 % 11 % 10)
		}
		return NationalID, s[:3] + "." + s[3:6] + "." + s[6:9] + "-" + s[9:]
	case "bsn":
		for {
			s := checkDigit(w.digits(8), func(s string) bool {
				n := 0
				for i := range 8 {
					n += (9 - i) * int(s[i]-'0')
				}
				return (n-int(s[8]-'0'))%11 == 0
			})
			if s != "" {
				return NationalID, s
			}
		}
	case "dni":
		n := 10000000 + w.r.IntN(80000000)
		if y := n / 10000; y >= 1900 && y <= 2035 {
			n = 54362315
		}
		return NationalID, fmt.Sprintf("%d%c", n, "TRWAGMYFPDXBNJZSQVHLCKE"[n%23])
	case "nino":
		return NationalID, "AB" + w.digits(6) + "C"
	case "secret":
		return Secret, "gh" + "p_" + w.random("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", 36)
	}
	panic(kind)
}

func (w *writer) random(from string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = from[w.r.IntN(len(from))]
	}
	return string(b)
}

func (w *writer) noise(kind string) string {
	switch kind {
	case "int":
		return fmt.Sprint(w.r.IntN(100000))
	case "id":
		return fmt.Sprint(w.r.Int64())
	case "id16":
		return w.digits(16)
	case "ms":
		return "17" + w.digits(11)
	case "us":
		return "17" + w.digits(14)
	case "ns":
		return "17" + w.digits(17)
	case "s":
		return "17" + w.digits(8)
	case "uuid":
		return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", w.r.Uint32(), w.r.IntN(65536), w.r.IntN(4096), w.r.IntN(4096), w.r.Int64N(1<<48))
	case "sha":
		return w.random("0123456789abcdef", 40)
	case "sha256":
		return w.random("0123456789abcdef", 64)
	case "short":
		return w.random("0123456789abcdef", 7+w.r.IntN(5))
	case "b64":
		return w.random("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/", 86) + "=="
	case "float":
		return fmt.Sprintf("%.*f", 1+w.r.IntN(16), w.r.Float64()*1000)
	case "iso":
		return fmt.Sprintf("2025-%02d-%02dT%02d:%02d:%02d.%03dZ", 1+w.r.IntN(12), 1+w.r.IntN(28), w.r.IntN(24), w.r.IntN(60), w.r.IntN(60), w.r.IntN(1000))
	case "day":
		return fmt.Sprintf("2025-%02d-%02d", 1+w.r.IntN(12), 1+w.r.IntN(28))
	case "version":
		return fmt.Sprintf("%d.%d.%d", w.r.IntN(30), w.r.IntN(99), w.r.IntN(999))
	case "word":
		return pick(w.r, strings.Fields("alpha ingest worker gateway storage billing search index cache queue parser render shard replica leader node cluster edge proxy router"))
	case "price":
		return fmt.Sprintf("%d.%02d", w.r.IntN(5000), w.r.IntN(100))
	}
	panic(kind)
}

// newPerson chooses at random the person whom the next document mentions, and that person's company.
func (w *writer) newPerson() {
	w.who = person_{pick(w.r, corpusFirst), pick(w.r, corpusLast), pick(w.r, corpusStems) + pick(w.r, []string{"", " Foods", " Energy", " Marine"}) + " " + pick(w.r, corpusForms)}
}

func (w *writer) write(template string) {
	for template != "" {
		i := strings.IndexAny(template, "«‹")
		if i < 0 {
			w.out.WriteString(template)
			return
		}
		w.out.WriteString(template[:i])
		open, shut := "«", "»"
		if strings.HasPrefix(template[i:], "‹") {
			open, shut = "‹", "›"
		}
		kind, rest, _ := strings.Cut(template[i+len(open):], shut)
		if template = rest; open == "‹" {
			w.out.WriteString(w.noise(kind))
			continue
		}
		t, text := w.personal(kind)
		start := w.out.Len()
		w.out.WriteString(text)
		w.want = append(w.want, TypedSpan{start, w.out.Len(), t})
	}
}

// spans returns the parts of a document that ReplaceValues would replace, with their types.
func spans(s *Scanner, raw []byte) (found []TypedSpan) {
	w := &documentWalker{s: s, known: &KnownValues{}, escapes: true}
	w.walkView(plainView(raw))
	for _, c := range w.claims {
		found = append(found, TypedSpan{int(c.start), int(c.end), s.typeOf(c.kind)})
	}
	return found
}

// measure counts three kinds of values for each type: those that were found exactly as expected, all that were
// expected, and all that were found.
type measure map[Type]*[3]int // expected and found, expected, found

func (m measure) add(want, got []TypedSpan) {
	at := func(t Type) *[3]int {
		if m[t] == nil {
			m[t] = &[3]int{}
		}
		return m[t]
	}
	set := map[TypedSpan]bool{}
	for _, f := range want {
		at(f.Type)[1]++
		set[f] = true
	}
	for _, f := range got {
		at(f.Type)[2]++
		if set[f] {
			at(f.Type)[0]++
		}
	}
}

func ratio(a, b int) float64 {
	if b == 0 {
		return 1
	}
	return float64(a) / float64(b)
}

func (m measure) total() (p, r float64) {
	var sum [3]int
	for _, x := range m {
		for i := range sum {
			sum[i] += x[i]
		}
	}
	return ratio(sum[0], sum[2]), ratio(sum[0], sum[1])
}

func (m measure) table(title string) string {
	var types []string
	for t := range m {
		types = append(types, string(t))
	}
	slices.Sort(types)
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n| type | expected | precision | recall |\n|---|---|---|---|\n", title)
	for _, t := range types {
		x := m[Type(t)]
		fmt.Fprintf(&b, "| %s | %d | %.4f | %.4f |\n", t, x[1], ratio(x[0], x[2]), ratio(x[0], x[1]))
	}
	return b.String()
}

// complain logs the values that the scanner missed or found wrongly, one on each line. limit is the number of lines
// that may still be logged, and complain decreases it with each line.
func complain(t *testing.T, raw []byte, want, got []TypedSpan, limit *int) {
	t.Helper()
	show := func(what string, f TypedSpan) {
		if *limit--; *limit >= 0 {
			t.Logf("%s %s %q in %q", what, f.Type, raw[f.Start:f.End], raw[max(0, f.Start-50):min(len(raw), f.End+30)])
		}
	}
	for _, f := range want {
		if !slices.Contains(got, f) {
			show("missed", f)
		}
	}
	for _, f := range got {
		if !slices.Contains(want, f) {
			show("wrong", f)
		}
	}
}
