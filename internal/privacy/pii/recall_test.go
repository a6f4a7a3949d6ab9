package pii

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"retort/internal/devel/testenv"
)

// knownValues maps types to known values.
type knownValues map[Type][]string

// list returns a KnownValues that contains the values.
func (k knownValues) list() *KnownValues {
	g := &KnownValues{}
	for t, values := range k {
		for _, v := range values {
			g.AddExact(t, v)
		}
	}
	return g
}

// foundIn returns the values that ReplaceValues replaces in a document, separated by bars. out is the resulting
// document, with tokens that have no numbers, for example [NAME].
func foundIn(known knownValues, document string) (found, out string) {
	v := newTokens()
	out = string(New(Options{}).ReplaceValues([]byte(document), known.list(), v))
	var texts []string
	for _, f := range v.all {
		texts = append(texts, f.Text)
	}
	return strings.Join(texts, "|"), regexp.MustCompile(`_\d+\]`).ReplaceAllString(out, "]")
}

// recallCase says which values are found in a document if some values are known. want separates the values by bars.
type recallCase struct {
	known          knownValues
	document, want string
}

func checkRecall(t *testing.T, cases []recallCase) {
	t.Helper()
	for _, c := range cases {
		if got, out := foundIn(c.known, c.document); got != c.want {
			t.Errorf("%v in %s: found %q, want %q: %s", c.known, c.document, got, c.want, out)
		}
	}
}

// TestKnownInDenseScripts checks scripts without spaces between words. All known values in a run of letters are found,
// also short ones, but single characters are not.
func TestKnownInDenseScripts(t *testing.T) {
	han := knownValues{Name: {"王小明", "李伟", "佐藤 さくら", "王"}, Company: {"華為"}}
	other := knownValues{Name: {"สมชาย ใจดี", "김철수", "ジョン・スミス", "はな"}}
	checkRecall(t, []recallCase{
		{han, "昨日王小明和李伟去了華為公司", "王小明|李伟|華為"},
		{han, `{"note":"王小明李伟李伟王小明"}`, "王小明|李伟|李伟|王小明"},
		{han, "佐藤さくらさんと李伟", "佐藤さくら|李伟"},
		{han, "国王在王府井", ""},
		{han, `["王"]`, "王"},
		{han, "王 さん", "王"},
		{han, `{"李伟":1}`, "李伟"},
		{han, "Mr李伟x", "李伟"},
		{other, "พบสมชายใจดีที่นี่", "สมชายใจดี"},
		{other, "어제 김철수가 왔다", "김철수"},
		{other, "昨日ジョンスミスさん", "ジョンスミス"},
		{other, "ｼﾞｮﾝ･ｽﾐｽ", norm.NFD.String("ジョン･スミス")},
		{other, "はなして", ""},
		{other, "はな さん", "はな"},
	})
}

// TestKnownValuesOverlap checks that two overlapping values are both hidden completely.
func TestKnownValuesOverlap(t *testing.T) {
	known := knownValues{Company: {"Orion Vexel Quade", "Quade Lumen Werke", "王小明", "小明李伟"}}
	checkRecall(t, []recallCase{
		{knownValues{Company: {"Orion 王", "李伟"}}, "Orion 王李伟", "Orion 王|李伟"},
		{known, "Orion Vexel Quade Lumen Werke", "Orion Vexel Quade|Lumen Werke"},
		{known, "王小明李伟", "王小明|李伟"},
	})
}

// TestRecallTakesLinearTime checks that a search takes linear time in texts with many beginnings of known values.
func TestRecallTakesLinearTime(t *testing.T) {
	s, a := New(Options{}), strings.Repeat("a ", 11)
	for unit, value := range map[string]string{
		"王": "王王 王王", "李": "李李李李李李李李李李李李李王", "a ": a + "b", "1 ": "1 1 1 1 1 1 1 2", "Aa": "Aa Aa Ab", "é": "éé ée",
		"1.1.": "1.1.1960", "Anna 😀": "Anna Müller", "AaBb": "Aa Bb Aa Bb Aa Bb Aa Bb Aa Cc", "Éé": "Éé Éé Éa", "a1": "a 1 a 1 a 2",
		"Mc": "Mc Mc Mcx", "AbCd": "Ab Cd", "QuuxZork": "Zork", "AaAa ": "Aa Aa Aa Ab", "a123456789": "+1 123 456 7890", "1a": "1960-01-12", "Aa王": "Aa 王 Aa 李", "12th ": "12th",
	} {
		g := &KnownValues{}
		for _, t := range []Type{Company, Phone, DateOfBirth} {
			g.AddExact(t, value)
		}
		testenv.GrowsLinearly(t, unit, 1<<18, func(n int) {
			var c counting
			s.ReplaceValues([]byte(strings.Repeat(unit, n/len(unit))), g, &c)
		})
	}
}

// TestScanTakesNoLock checks that a scan does not wait for a goroutine that adds values.
func TestScanTakesNoLock(t *testing.T) {
	g := &KnownValues{}
	g.AddExact(Name, "Hanne Müller")
	g.mu.Lock()
	defer g.mu.Unlock()
	if found := New(Options{}).FindKnown(nil, g, []byte("of Hanne Müller")); len(found) != 1 {
		t.Errorf("found %v", found)
	}
}

// TestWordsOfNames checks which words of a known name are found alone, and in which places.
func TestWordsOfNames(t *testing.T) {
	known := knownValues{Name: {"Hanne Zandstra", "GitHub Actions", "Release Notes", "Rose Will", "Bo Ng", "maria rossi", "Quux Frobnitz"}}
	checkRecall(t, []recallCase{
		{known, "Zandstra wrote to Hanne", "Zandstra|Hanne"},
		{known, `{"a":["Hanne","Ng","NG"]}`, "Hanne|Ng|NG"},
		{known, "the hanne and the ng of zandstra", ""},
		{known, "maria and Rossi", "maria|Rossi"},
		{known, "GitHub has Actions, release the notes, Release, Frobnitz Quux", ""},
		{known, "by GitHub Actions and GitHub_Actions", "GitHub Actions|GitHub_Actions"},
		{known, "quux-frobnitz, QuuxFrobnitz2, QUUX FROBNITZ", "quux-frobnitz|QuuxFrobnitz|QUUX FROBNITZ"},
		{known, "lib/Zandstra, Zandstra_total, x.Zandstra, @Zandstra/pkg, Zandstra.js, hanne-config", ""},
		{known, "/Zandstra #Zandstra _Zandstra_ @Hanne and $Zandstra \\Zandstra", "Zandstra|Zandstra|Zandstra|Hanne|Zandstra|Zandstra"},
		{known, "Zandstra_2024.pdf 2024_Zandstra ...Zandstra, 1.Hanne", "Zandstra|Zandstra|Zandstra|Hanne"},
		{known, `{"Zandstra_2024":1,"Hanne":1,"Hanne-total":2,"hanne":3,"Hanne_x":4,"of Hanne.":5}`, "Hanne|Hanne"},
		{known, `{"status":"ROSE","kind":"will","Rose":1}`, ""},
		{known, "Rose Will and the rose will", "Rose Will"},
		{known, "Hanne's, Hannes, HANNE ZANDSTRAS", "Hanne|Hanne|HANNE ZANDSTRA"},
	})
}

// TestCommonWords checks that a value that is a common word is found only if it is the whole text and begins with a
// capital.
func TestCommonWords(t *testing.T) {
	known := knownValues{Company: {"Active", "Orbit", "Open Door"}, Name: {"lodash", "Open"}, Address: {"12", "10115"}}
	checkRecall(t, []recallCase{
		{known, `{"status":"active","other":"open","Open":1}`, "Open"},
		{known, `["Active"]`, "Active"},
		{known, "the Active one is Open", ""},
		{known, `{"orbit_id":"x","n":"12","count":"10115","zip":"10115"}`, "10115"},
		{known, "orbit; ORBIT, Orbit's", "orbit|ORBIT|Orbit"},
		{known, "the open door", ""},
		{known, "an Open Door", "Open Door"},
		{known, "lodash/fp and x.lodash", ""},
	})
}

// TestKnownDates checks in which spellings a known date of birth is found.
func TestKnownDates(t *testing.T) {
	known := knownValues{DateOfBirth: {"1960-01-12", "2024-03-04"}}
	first := knownValues{DateOfBirth: {"1960-01-01"}}
	march := knownValues{DateOfBirth: {"1960-03-10"}}
	checkRecall(t, []recallCase{
		{known, `{"born":19600112,"x":12011960,"id":19600112,"n":600112,"y":120160}`, "19600112|12011960|19600112"},
		{known, `{"count":12011960,"n":1960011,"f":1960.0112,"m":-19600112}`, ""},
		{known, "12.01.60, 01/12/60, 12/01/60, 1/12/60", "12.01.60|01/12/60|12/01/60|1/12/60"},
		{known, "03.04.24, 01.12.60, version 12.01.60.2", ""},
		{known, `{"version":"12.01.60","date":"12.01.1960"}`, "12.01.1960"},
		{known, "12th January 1960, the 12th of January 1960, 12TH OF JANUARY 1960", "12th January 1960|12th of January 1960|12TH OF JANUARY 1960"},
		{march, "März 10, 1960, MÄRZ 10, 1960, Ma\u0308rz 10 1960, 10. Ma\u0308rz 1960", "März 10, 1960|MÄRZ 10, 1960|Ma\u0308rz 10 1960|10. Ma\u0308rz 1960"},
		{march, "10 марта, 10 Marz 1960, 10th-March-1960, March 1960, 10-mar-1960", "10 Marz 1960|10th-March-1960|10-mar-1960"},
		{first, "1º de enero de 1960, 1.º enero 1960, 1o de janeiro de 1960, 1er janvier 1960", "1º de enero de 1960|1.º enero 1960|1o de janeiro de 1960|1er janvier 1960"},
		{known, "dob19600112", "19600112"},
		{known, `{"x":"dob19600112","y":"v19600112 dob12011960"}`, "19600112|19600112"},
		{known, "12. Januar 1960, January 12, 1960, 1960-01-12T00:00:00Z 19600112T0815", "12. Januar 1960|January 12, 1960|1960-01-12|19600112"},
	})
}

// TestKnownNumbers checks in which spellings known numbers are found, and that other JSON numbers do not change.
func TestKnownNumbers(t *testing.T) {
	known := knownValues{Phone: {"+1 202 555 0143", "030 23125987", "+49 (0)89 1234567", "5550199", "+1\u00a0305\u00a0555\u00a00177"}, SSN: {"536-90-4399"}}
	checkRecall(t, []recallCase{
		{known, `{"a":12025550143,"id":12025550143,"b":2025550143,"count":536904399}`, "12025550143|12025550143|536904399"},
		{known, `{"id":5550199,"count":5550199,"price":2025550143,"x":23125987,"y":3023125987}`, ""},
		{known, `{"a":5550199}`, "5550199"},
		{known, `{"ref":"202 555 0143","id":"x-2025550143"}`, "202 555 0143|2025550143"},
		{known, `{"id":"23125987","n":"5550199"}`, "5550199"},
		{known, `{"x":4989123456,"y":49891234567,"id":"089 1234567"}`, "49891234567|089 1234567"},
		{known, `{"s":"1\u00a0305\u00a0555\u00a00177"}`, "1\u00a0305\u00a0555\u00a00177"},
		{known, `{"s":"1 305 555 0177","n":13055550177}`, "1 305 555 0177|13055550177"},
		{known, "１２０２５５５０１４３", "12025550143"},
	})
}

// TestNumbersBesideOthers checks that known numbers are found after letters and points, but not inside decimals.
func TestNumbersBesideOthers(t *testing.T) {
	known := knownValues{CreditCard: {"4111111111111111"}, Phone: {"5550199", "138 0013 8000"}, DateOfBirth: {"1960-01-12"}}
	names := knownValues{CreditCard: {"4111111111111111"}, Phone: {"138 0013 8000"}, Name: {"Mensah"}}
	checkRecall(t, []recallCase{
		{known, "ref4111111111111111, ref4111 1111 1111 1111, 4111111111111111x", "4111111111111111|4111 1111 1111 1111|4111111111111111"},
		{known, "no.5550199, see.4111111111111111 and 0.4111111111111111", "5550199|4111111111111111|4111111111111111"},
		{known, "a5550199 5550199b 1.5550199 0.13800138000.2", ""},
		{known, "电话13800138000生日1960-01-12", "13800138000|1960-01-12"},
		{names, "Mensah13800138000 13800138000MENSAH TeamMensah4111111111111111", "Mensah|13800138000|13800138000|MENSAH|Mensah|4111111111111111"},
		{known, "Müller13800138000, dob1960-01-12, v12.01.60, 19600112x a19600112b", "13800138000|1960-01-12"},
		{known, `{"id":"a13800138000f","url":"/x/ref4111111111111111"}`, "13800138000|4111111111111111"},
	})
}

// TestKnownValuesInAddresses checks that an e-mail address is found completely if its local part contains known values.
func TestKnownValuesInAddresses(t *testing.T) {
	known := knownValues{Phone: {"13800138000"}, DateOfBirth: {"1960-01-12"}, Name: {"Kwame Mensah"}, Secret: {"hunter22"}}
	checkRecall(t, []recallCase{
		{known, "to wang13800138000@163.example", "wang13800138000@163.example"},
		{known, "13800138000@163.example 13800138000.x@163.example", "13800138000@163.example|13800138000.x@163.example"},
		{known, "John19600112@x.example j.1960-01-12@x.example", "John19600112@x.example|j.1960-01-12@x.example"},
		{known, "j.hunter22@x.example hunter22j.Mensah@x.example", "j.hunter22@x.example|hunter22j.Mensah@x.example"},
		{known, "12 January 1960-j@x.example Kwame Mensah-x@x.example", "12 January 1960|j@x.example|Kwame Mensah|x@x.example"},
		{known, "a:hunter22@x.example", "hunter22"},
	})
}

// TestSealedDigits checks that a sealed value of digits is not found inside dates, prices and ids.
func TestSealedDigits(t *testing.T) {
	g := &KnownValues{}
	for _, v := range []string{"2024", "12345", "83920174", "123456789012", "2024-05-01", "hunter22", "status"} {
		g.AddSealed(Secret, v)
	}
	for text, want := range map[string]string{
		"on 2024-05-01 in 2024": "", "2024": "", "12345": "12345", "it is 12345.00 for 12345": "", `{"id":"12345","x":"12345"}`: "12345",
		"x 83920174 y": "83920174", `{"id":"83920174","price":"83920174.00"}`: "", `{"id":"x 123456789012"}`: "123456789012",
		"my hunter22, status": "hunter22|status", "7,83920174,9\n1:83920174": "83920174|83920174", "83920174-1;9/83920174": "83920174|83920174",
		"1.83920174 83920174.5 and 83920174. 5": "83920174", `{"id":"HUNTER22"}`: "HUNTER22",
	} {
		checkFound(t, g, text, want)
	}
}

// TestUnusualCharacters checks that emoji, characters that are not displayed, and variants of letters do not keep a
// known value from being found.
func TestUnusualCharacters(t *testing.T) {
	known := knownValues{Name: {"Hanne 🌸 Zandstra", "Ola😀", "Müller"}}
	checkRecall(t, []recallCase{
		{known, "Hanne Zandstra😀 and Hanne🌸Zandstra", "Hanne Zandstra|Hanne🌸Zandstra"},
		{known, "😀Müller😀, Ola😀", "Müller|Ola😀"},
		{known, "Hanne \u034f Zandstra, Hanne\u061c \u180bZandstra", "Hanne \u034f Zandstra|Hanne\u061c \u180bZandstra"},
		{known, "Ｍüller, M\u200büller, Mu\u0308ller, 𝐌üller", "Müller|Müller|Mu\u0308ller|𝐌üller"},
	})
}

// TestManyTypes checks that found values have a type if there are more than maxKinds types.
func TestManyTypes(t *testing.T) {
	g := &KnownValues{}
	types := map[Type]*regexp.Regexp{}
	for i := range 300 {
		typ := Type(fmt.Sprint("custom_", i))
		types[typ] = nil
		g.AddExact(typ, fmt.Sprintf("Quux%d Frobnitz", i))
	}
	for _, f := range New(Options{Types: types}).FindKnown(nil, g, []byte("Quux1 Frobnitz, Quux299 Frobnitz")) {
		if f.Type == "" {
			t.Errorf("%v has no type", f)
		}
	}
}

// TestLongValues checks that all words of a long value are hidden, but not its last words where they occur alone.
func TestLongValues(t *testing.T) {
	long := "Flat 3, 12 Quux Road, Upper Frobnitz, near the old mill, of the county of Zork, in the north of it"
	known := knownValues{Address: {long}}
	checkRecall(t, []recallCase{{known, "in the north of it", ""}})
	got, out := foundIn(known, "at "+long+".")
	if strings.ContainsAny(strings.NewReplacer("[ADDRESS]", "", "at", "").Replace(out), "abcdefgh") {
		t.Errorf("found %q: %s", got, out)
	}
}

// TestFullByWords checks that a list without room for words says that it is full when a value cannot be added, also if
// only Add has used the room.
func TestFullByWords(t *testing.T) {
	g := &KnownValues{}
	g.words.n = maxEntries
	if g.AddExact(Name, "Kwame Mensah"); !g.IsFull() {
		t.Error("a value was dropped, and the list is not full")
	}
}

// TestRoomIsBounded checks that a list is full if there are too many values, or too many words in them. A full list
// must still have room for numbers and sealed values.
func TestRoomIsBounded(t *testing.T) {
	for name, fill := range map[string]func(g *KnownValues){
		"values": func(g *KnownValues) { g.most = 1 },
		"words":  func(g *KnownValues) { g.words.n = maxEntries - 1 },
	} {
		g := &KnownValues{}
		fill(g)
		g.AddExact(Name, "Hanne Zandstra")
		g.AddExact(Name, "Kwame Mensah")
		g.AddSealed(Secret, "hunter22")
		if full := g.IsFull(); !full || g.exact != 1 {
			t.Errorf("%s: full: %v, %d values", name, full, g.exact)
		}
		g.words.n = max(g.words.n, maxEntries+1)
		if g.most = 0; name == "values" {
			g.most = 2
		}
		g.AddExact(Phone, "+1 202 555 0143")
		text := []byte("Hanne Zandstra, Kwame Mensah, hunter22, 2025550143")
		if found := New(Options{}).FindKnown(nil, g, text); len(found) != 3 {
			t.Errorf("%s: found %v", name, found)
		}
	}
}

// FuzzRecall checks that a known value is hidden completely, in several spellings and next to other values.
func FuzzRecall(f *testing.F) {
	f.Add("Hanne Zandstra\nZandstra Works\n王小明\n小明李伟", "of Hanne Zandstra Works and 王小明李伟", byte(1))
	f.Add("'t Hooft Bouw\nAnna😀\nMüller, Jr.\nสมชาย ใจดี", "Müllers, Mu\u0308ller", byte(2))
	f.Add("a b\nb c d\nquux a b c\nAa Bb", "AaBb3 quux a b c d", byte(3))
	f.Add("ㅝA0ㅝ", "0", byte(0))
	f.Add("ü\nü😀ü", "0ü", byte(1))
	s := New(Options{})
	f.Fuzz(func(t *testing.T, values, text string, spelling byte) {
		all := strings.Split(values, "\n")
		if !utf8.ValidString(values) || len(all) > 8 || len(values) > 500 || len(text) > 2000 {
			return
		}
		g := &KnownValues{}
		for _, v := range all {
			g.AddExact(Company, v)
		}
		for _, v := range all {
			spelled := respell(v, spelling)
			document := text + " | " + spelled + " | " + text
			found := s.FindKnown(nil, g, []byte(document))
			checkCovered(t, document, len(text)+3, len(text)+3+len(spelled), found, isCertain(v))
		}
	})
}

// respell returns another spelling of a value, for example in capitals. It returns the value itself if the spelling
// would change its folded units.
func respell(v string, spelling byte) string {
	other := []func(string) string{strings.ToUpper, strings.ToLower, norm.NFD.String, norm.NFC.String}[spelling%4](v)
	if foldedUnits(other) != foldedUnits(v) {
		return v
	}
	return other
}

func foldedUnits(v string) string {
	var folded []byte
	for _, u := range appendUnits(nil, []byte(v)) {
		folded = append(appendFoldedWord(folded, []byte(v[u.start:u.end])), ' ')
	}
	return string(folded)
}

// isCertain reports whether a company with this value is found anywhere in a text, so that FuzzRecall can require it.
func isCertain(v string) bool {
	text := plainView([]byte(v)).withoutUnplain().text
	units := appendUnits(nil, text)
	return len(units) > 0 && len(units) <= maxUnits && reachOf(text, units)&asWord != 0 && hasSmallGaps(text, units)
}

// hasSmallGaps reports whether at most maxBetween blanks and marks stand between any two units of a value.
func hasSmallGaps(text []byte, units []textUnit) bool {
	for i, u := range units[1:] {
		if start, _ := nextUnit(text, units[i].end); start != u.start {
			return false
		}
	}
	return true
}

// checkCovered checks that findings are in order and do not overlap. If certain is true, it also checks that they cover
// all units from start to end.
func checkCovered(t *testing.T, document string, start, end int, found []TypedSpan, certain bool) {
	t.Helper()
	hidden, last := []byte(document), 0
	for _, f := range found {
		if f.Start < last || f.End <= f.Start || f.End > len(document) || f.Type == "" {
			t.Fatalf("%v of %d bytes, after %d", f, len(document), last)
		}
		last = f.End
		for i := f.Start; i < f.End; i++ {
			hidden[i] = ' '
		}
	}
	left := plainView(hidden[start:end]).withoutUnplain().text
	if units := appendUnits(nil, left); certain && len(units) > 0 {
		t.Fatalf("%q: %q is left of %q", document, left, document[start:end])
	}
}
