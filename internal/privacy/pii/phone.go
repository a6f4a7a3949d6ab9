package pii

import (
	_ "embed"
	"math/bits"
	"strconv"
	"strings"
	"sync"
)

// phoneList is generated from the metadata of libphonenumber (Apache-2.0) by a test in phone_test.go. Each line holds
// the region, the country calling code, the national prefix or -, the possible lengths as bits, and a regular
// expression for assigned numbers.
//
//go:embed phones.txt
var phoneList string

// numberingPlan describes the phone numbers of one region.
type numberingPlan struct {
	region, code, trunk string
	lengths             uint32 // bit n: numbers of n digits are possible
	pattern             string
	automaton           func() *digitAutomaton // built when first needed
}

// numberingPlans holds the numbering plans of all regions.
type numberingPlans struct {
	regions map[string]*numberingPlan
	codes   map[int][]*numberingPlan // by country's code
}

func parsePlans(list string) numberingPlans {
	p := numberingPlans{map[string]*numberingPlan{}, map[int][]*numberingPlan{}}
	for line := range strings.Lines(list) {
		f := strings.Fields(line)
		if len(f) != 5 || f[0] == "#" {
			continue
		}
		lengths, _ := strconv.ParseUint(f[3], 16, 32)
		one := &numberingPlan{region: f[0], code: f[1], trunk: strings.TrimPrefix(f[2], "-"), lengths: uint32(lengths), pattern: f[4]}
		one.automaton = sync.OnceValue(func() *digitAutomaton { return compileDigits(one.pattern) })
		p.regions[one.region] = one
		code, _ := strconv.Atoi(one.code)
		p.codes[code] = append(p.codes[code], one)
	}
	return p
}

// hasShortNumbers reports whether phone numbers of fewer than seven digits are usual in the region. In regions with
// many different lengths, such short numbers usually do not belong to people.
func (p *numberingPlan) hasShortNumbers() bool {
	return p.lengths&0x7f != 0 && bits.OnesCount32(p.lengths) <= 4
}

func (p *numberingPlan) isPossible(n int) bool { return n < 32 && p.lengths>>n&1 != 0 }
func (p *numberingPlan) isValid(d []byte) bool {
	return p.isPossible(len(d)) && p.automaton().matchesDigits(d)
}

// findAtPlus finds a phone number with a country code after the + at i.
func (sc *textScan) findAtPlus(i int) int {
	b := byteAt(sc.text, i-1)
	if isAlnumByte(b) || b == '+' || b == '_' {
		return 0
	}
	j := i + 1
	if byteAt(sc.text, j) == ' ' {
		j++
	}
	if !isDigitByte(byteAt(sc.text, j)) && byteAt(sc.text, j) != '(' {
		return 0
	}
	var g digitGroups
	if g.readGroups(sc.text, i, j); g.total < 7 || j > i+1 && g.n < 3 {
		return 0
	}
	return sc.findPhone(&g, true)
}

// findAtBracket finds a phone number that begins with an area code in brackets. i is the offset of the opening
// bracket.
func (sc *textScan) findAtBracket(i int) int {
	if !isDigitByte(byteAt(sc.text, i+1)) {
		return 0
	}
	shut := spanEnd(sc.text, i+1, isDigit)
	usual := shut > i+2
	if b := byteAt(sc.text, shut); b == ' ' || b == '-' { // (06 1) 234 5678
		shut, usual = spanEnd(sc.text, shut+1, isDigit), false
	}
	if shut > i+6 || byteAt(sc.text, shut) != ')' || !usual && sc.contextBefore(i)&sc.voc.phone == 0 {
		return 0
	}
	var g digitGroups
	if g.readGroups(sc.text, i, i); g.total < 7 {
		return 0
	}
	return sc.findPhone(&g, false)
}

// findPhone finds a phone number in groups of digits. If international is set, a + precedes these groups.
func (sc *textScan) findPhone(g *digitGroups, international bool) int {
	if sc.s.off[Phone] || sc.opaque && sc.words&sc.voc.phone == 0 ||
		!international && !canBegin(sc.text, g.start) && !sc.behindPhone(g.start) {
		return 0
	}
	k := 0
	switch {
	case international:
		k = sc.internationalGroups(g, 0)
	case g.len[0] >= 2 && g.digits[0] == '0' && g.digits[1] == '0':
		k = sc.internationalGroups(g, 2)
	default:
		k = sc.nationalNumber(g)
		if whole := sc.withoutPlus(g); whole > k {
			k = whole
		}
	}
	if k == 0 {
		return 0
	}
	return sc.takeDialled(g, k)
}

// withoutPlus returns how many groups of digits form an assigned international phone number that lacks its +. It
// returns 0 if there is no such number, or if no context word such as "phone" precedes it.
func (sc *textScan) withoutPlus(g *digitGroups) int {
	if g.total < 10 || g.digits[0] == '0' || sc.contextBefore(g.start)&sc.voc.phone == 0 {
		return 0
	}
	for k := g.n; k > 0; k-- {
		if n := g.digitCount(k); n >= 10 && n <= 16 && sc.s.tables.phones.isInternational(g.digits[:n], true) {
			return k
		}
	}
	return 0
}

// takeDialled adds the first k groups to the findings as a phone number, unless the characters that follow show that
// the number continues.
func (sc *textScan) takeDialled(g *digitGroups, k int) int {
	end := g.end[k-1]
	if b := byteAt(sc.text, end); isAlnumByte(b) && b != 'x' || b == '_' ||
		(b == ':' || b == '.' || b == ',' && g.n == 1) && isDigitByte(byteAt(sc.text, end+1)) {
		return 0
	}
	return sc.addFinding(g.start, extensionEnd(sc.text, end), Phone)
}

// canBegin reports whether a phone number may begin at i, judging by the characters before.
func canBegin(text []byte, i int) bool {
	b := byteAt(text, i-1)
	return !isAlnumByte(b) && b != '_' && b != '.' && b != '$' && b != '#' &&
		!((b == '-' || b == '/' || b == ',' || b == ':' || b == '+') && isAlnumByte(byteAt(text, i-2)))
}

// behindPhone reports whether a phone number and a slash end directly before the offset i. Another phone number may
// then begin at i.
func (sc *textScan) behindPhone(i int) bool {
	n := len(sc.out)
	return n > sc.first && byteAt(sc.text, i-1) == '/' && sc.out[n-1].End == i-1 && sc.out[n-1].Type == Phone
}

// internationalGroups returns how many groups of digits form a phone number with a country code, or 0 if none do. The
// country code begins after the first skip digits. Assigned numbers are preferred to numbers whose length is merely
// possible.
func (sc *textScan) internationalGroups(g *digitGroups, skip int) int {
	for _, strict := range []bool{true, false} {
		if !strict && skip > 0 && sc.contextBefore(g.start)&sc.voc.phone == 0 {
			return 0
		}
		for k := g.n; k > 0; k-- {
			n := g.digitCount(k)
			if n >= skip+7 && n <= skip+16 && sc.s.tables.phones.isInternational(g.digits[skip:n], strict) {
				return k
			}
		}
	}
	return 0
}

// isInternational reports whether the digits are a country code followed by a number of that country. The number may
// begin with the national prefix, often written as (0), which is not dialled from abroad. If strict is set, the
// number must be assigned. Otherwise a possible length is enough.
func (p *numberingPlans) isInternational(d []byte, strict bool) bool {
	code := 0
	for n := 1; n <= 3; n++ {
		if code = code*10 + int(d[n-1]-'0'); p.codes[code] == nil {
			continue
		}
		for _, one := range p.codes[code] {
			rest := d[n:]
			if one.isNational(rest, strict) {
				return true
			}
			if t := len(one.trunk); t > 0 && len(rest) > t && string(rest[:t]) == one.trunk && one.isNational(rest[t:], strict) {
				return true
			}
		}
		return false
	}
	return false
}

// CountryOf returns the ISO 3166 code of the country that a phone number or an IBAN belongs to. It returns "" if the
// country is unknown or several countries share the calling code and numbering plan.
func (s *Scanner) CountryOf(t Type, value string) string {
	switch {
	case t == IBAN && len(value) > 2:
		return strings.ToUpper(value[:2])
	case t != Phone || !strings.HasPrefix(value, "+"):
		return ""
	}
	var digits []byte
	for i := range len(value) {
		if isDigitByte(value[i]) {
			digits = append(digits, value[i])
		}
	}
	plans, code := &s.tables.phones, 0
	for n := 1; n <= 3 && n < len(digits); n++ {
		if code = code*10 + int(digits[n-1]-'0'); plans.codes[code] == nil {
			continue
		}
		country := ""
		for _, one := range plans.codes[code] {
			if one.isValid(digits[n:]) {
				if country != "" {
					return ""
				}
				country = one.region
			}
		}
		return country
	}
	return ""
}

func (p *numberingPlan) isNational(d []byte, strict bool) bool {
	if strict {
		return p.isValid(d)
	}
	return len(d) >= 6 && p.isPossible(len(d)) && !isUniform(d)
}

// nationalNumber returns how many groups form a national phone number of one of the scanner's regions, or 0. Digits
// without separators need a context word such as "phone", and so do groups that may be a price or an ID.
func (sc *textScan) nationalNumber(g *digitGroups) int {
	vouched := sc.contextBefore(g.start)&sc.voc.phone != 0
	for k := g.n; k > 0; k-- {
		d := g.digits[:g.digitCount(k)]
		if len(d) < 7 || len(d) > 15 || !vouched && !g.isGroupedAsPhone(k) {
			continue
		}
		for _, p := range sc.s.phones {
			if p.dialledAtHome(d, g, k, vouched) {
				return k
			}
		}
	}
	return 0
}

// shortPhone finds a phone number of four to six digits after a context word such as "phone", in regions where short
// numbers are usual.
func (sc *textScan) shortPhone(start int) int {
	if len(sc.s.short) == 0 || sc.opaque || sc.s.off[Phone] || sc.contextBefore(start)&sc.voc.phone == 0 || !canBegin(sc.text, start) {
		return 0
	}
	var g digitGroups
	g.readGroups(sc.text, start, start)
	for k := g.n; k > 0; k-- {
		for _, p := range sc.s.short {
			if n := g.digitCount(k); n < 7 && p.isValid(g.digits[:n]) {
				return sc.takeDialled(&g, k)
			}
		}
	}
	return 0
}

// isGroupedAsPhone reports whether the first k groups are arranged in a way typical of phone numbers: (212) 555-0100,
// 212-555-0100, 030 1234567, 01 23 45 67 89.
func (g *digitGroups) isGroupedAsPhone(k int) bool {
	switch first := g.len[0]; {
	case k == 1 || g.sep[1] == '/' && g.digits[0] != '0':
		return false
	case g.brackets && g.sep[1] == ')':
		return true
	case k == 3 && g.hasLengths(3, 3, 4) && g.isUniform(3), k == 4 && g.hasLengths(1, 3, 3, 4) && g.digits[0] == '1':
		return true
	case k >= 3 && first == 1 && g.digits[0] == '0': // 0 532 123 45 67, 0 (532) 1234567
		return k == 5 && g.hasLengths(1, 3, 3, 2, 2) && g.isUniform(5) || k == 3 && g.brackets && g.sep[2] == ')' && g.hasLengths(1, 3, 7)
	case k == 4 && g.hasLengths(3, 2, 2, 2):
		return g.digits[0] >= '6' && g.isUniform(k)
	case g.sep[1] == '.':
		return k == 5 && g.digits[0] == '0' && g.hasLengths(2, 2, 2, 2, 2)
	case g.digits[0] == '0' && first >= 2 && first <= 6:
		return g.len[1] >= 2 && g.digits[1] != '0' && g.digitCount(k) >= 9 && !(k == 2 && g.hasLengths(5, 4))
	}
	return false
}

// dialledAtHome reports whether the digits are a phone number as dialled within its region. North American numbers
// need not be assigned, because numbers invented for examples usually are not.
func (p *numberingPlan) dialledAtHome(d []byte, g *digitGroups, k int, vouched bool) bool {
	rest := d
	if t := len(p.trunk); t > 0 && len(d) > t && string(d[:t]) == p.trunk && !(p.code == "1" && len(d) == 10) {
		rest = d[t:]
	} else if p.trunk == "0" && !vouched {
		return false
	}
	if p.code == "1" {
		return len(rest) == 10 && rest[0] >= '2' && rest[3] >= '1' && !isUniform(rest) ||
			len(rest) == 7 && vouched && k == 2 && g.hasLengths(3, 4)
	}
	if p.region == "AR" && g.mobileArgentina(k) {
		return true
	}
	return p.isValid(rest) || vouched && k > 1 && len(rest) >= 8 && p.isPossible(len(rest)) && len(rest) < len(d)
}

// mobileArgentina recognises Argentine mobile numbers, which have the digits 15 after the area code: 0343
// 15-555-1212.
func (g *digitGroups) mobileArgentina(k int) bool {
	if k < 3 || g.len[0] < 3 || g.len[0] > 5 || g.digitCount(k) != 13 {
		return false
	}
	area := g.len[0]
	return string(g.digits[area:area+2]) == "15" && !isUniform(g.digits[area+2:13])
}

// extensionEnd returns the end of a phone extension at i, such as " ext. 12" or "x12", or i itself if none is found.
func extensionEnd(text []byte, i int) int {
	j := blanksEnd(text, i, 1)
	for _, w := range []string{"extension", "ext.", "ext", "x"} {
		if j+len(w) < len(text) && equalFold(text[j:j+len(w)], w) {
			j = blanksEnd(text, j+len(w), 1)
			if end := spanEnd(text, j, isDigit); end > j && end-j <= 6 && !isAlnumByte(byteAt(text, end)) {
				return end
			}
			return i
		}
	}
	return i
}
