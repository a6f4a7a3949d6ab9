package pii

import (
	_ "embed"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

//go:embed names.txt
var nameList string

// The roles that a word can have in or next to a name, such as title or given name. Each role is one bit, because a
// word can have several roles.
const (
	roleTitle = 1 << iota
	roleGreeting
	roleSignoff
	roleIntro
	roleParticle
	roleGiven
	roleSurname
	roleStop
	roleCompany
	roleVerb
	roleStreet
	roleSelf // an intro that one word may follow
)

// companyForms lists legal forms of companies, such as GmbH, in their exact spelling.
var companyForms = []string{"Inc", "Incorporated", "LLC", "LLP", "LP", "Ltd", "Limited", "plc", "Plc", "PLC", "Corp", "Corporation", "Co", "GmbH", "AG", "KG", "KGaA", "OHG", "UG", "mbH", "eG", "SE",
	"SA", "SAS", "SARL", "EURL", "SL", "SpA", "Srl", "SRL", "SNC", "Lda", "Ltda", "BV", "NV", "VOF", "AS", "ASA",
	"AB", "ApS", "Oy", "Oyj", "Pty", "Pvt", "Pte", "KK", "GK", "Holdings", "Kft", "Zrt", "Nyrt", "doo",
	"S.A", "S.L", "S.A.S", "S.p.A", "S.r.l", "B.V", "N.V", "K.K", "G.K", "L.L.C", "S.A.R.L", "sp. z o.o", "Sp. z o.o", "a.s", "s.r.o", "d.o.o"}

// roleLexicon maps words to their roles in names, such as title or given name. Only some roles can begin a name.
type roleLexicon struct {
	phraseLexicon[uint16]
	starts [1 << 10]uint64
}

// hasRole reports whether a word with this hash may have a role that begins or ends a name. It can also return true
// for a word that has no such role.
func (l *roleLexicon) hasRole(h uint64) bool { return l.starts[h>>54]>>(h>>48&63)&1 != 0 }

var people = sync.OnceValue(func() *roleLexicon {
	l, all := &roleLexicon{}, map[string]uint16{}
	roles := map[string]uint16{"title": roleTitle, "greeting": roleGreeting, "signoff": roleSignoff, "intro": roleIntro, "self": roleIntro | roleSelf, "particle": roleParticle,
		"given": roleGiven, "surname": roleSurname, "stop": roleStop, "verb": roleVerb}
	for line := range strings.Lines(nameList) {
		role, words, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok || line[0] == '#' {
			continue
		}
		for w := range strings.SplitSeq(words, ",") {
			all[strings.Map(blankMarks, strings.TrimSpace(w))] |= roles[role]
		}
	}
	for _, f := range companyForms {
		w := strings.Map(blankMarks, strings.ToLower(f))
		all[w] |= roleCompany
	}
	for _, list := range [][]string{streetBefore, streetAfter, streetFrench} {
		for _, w := range list {
			all[foldCase(w)] |= roleStreet
		}
	}
	for w, r := range all {
		for _, w := range phraseSpellings(w) {
			l.addPhrase(w, r)
			if r&^(roleStop|roleParticle) != 0 {
				h := wordHash([]byte(w), 0, spanEnd([]byte(w), 0, isAlnum))
				l.starts[h>>54] |= 1 << (h >> 48 & 63)
			}
		}
	}
	return l
})

// capitalLatin returns w with its first letter as a capital if that letter is beyond U+00FF. Lookups ignore case only
// up to U+00FF, so such spellings are listed explicitly.
func capitalLatin(w string) string {
	if r, n := utf8.DecodeRuneInString(w); r > 0xFF {
		return string(unicode.ToUpper(r)) + w[n:]
	}
	return w
}

// findPerson finds a name, company or street around a word whose role suggests one. It returns the offset at which
// the scan continues, or 0.
func (sc *textScan) findPerson(w textWord, role uint16, end int) int {
	text := sc.text
	capital := isCapitalised(text, w.start)
	if role&roleCompany != 0 && !sc.s.off[Company] {
		if at := sc.takeCompany(w, end); at > 0 {
			return at
		}
	}
	if role&roleStreet != 0 && !sc.s.off[Address] && !sc.opaque {
		if at := sc.findStreet(w); at > 0 {
			return at
		}
	}
	if sc.s.off[Name] || sc.opaque {
		return 0
	}
	switch {
	case role&roleTitle != 0 && (capital || end-w.start >= 5): // señora Lima
		return sc.takeName(afterTitle(text, end), 1, 4, false)
	case role&roleSignoff != 0 && byteAt(text, max(w.start-1, 0)) <= '\n' || role&roleSignoff != 0 && byteAt(text, end) == ',':
		if at := sc.takeSignedName(end); at > 0 {
			return at
		}
	}
	switch {
	case role&roleGreeting != 0 && capital && byteAt(text, end) == ' ':
		return sc.takeGreetedName(end + 1)
	case role&roleVerb != 0 && !capital:
		return sc.takeSubject(w)
	case role&roleIntro != 0:
		if byteAt(text, end) == ':' || end-w.start > 8 || role&roleSelf != 0 {
			least := 2
			if role&roleSelf != 0 {
				least = 1
			}
			return sc.takeName(blanksEnd(text, skipByte(text, end, ':'), 2), least, 4, true)
		}
	case role&roleGiven != 0 && capital:
		return sc.takeGivenName(w)
	case role&roleSurname != 0 && capital:
		return sc.takeSurname(w)
	}
	return 0
}

func skipByte(text []byte, i int, b byte) int {
	if byteAt(text, i) == b {
		return i + 1
	}
	return i
}

func afterTitle(text []byte, i int) int {
	i = skipByte(text, i, '.')
	for range 2 { // Frau Dr. Weber
		for _, t := range []string{"Dr", "Prof", "Dra"} {
			if j := blanksEnd(text, i, 1); j+len(t) < len(text) && string(text[j:j+len(t)]) == t && !isAlnumByte(text[j+len(t)]) {
				i = skipByte(text, j+len(t), '.')
			}
		}
	}
	if byteAt(text, i) != ' ' {
		return len(text)
	}
	return i + 1
}

// isCapitalised reports whether the word at i begins with a capital.
func isCapitalised(text []byte, i int) bool {
	b := byteAt(text, i)
	switch {
	case class[b]&isUpper != 0:
		return true
	case b == 0xC3:
		return byteAt(text, i+1) < 0x9F
	case b == 0xC4 || b == 0xC5:
		return capitalLatinA(b, byteAt(text, i+1))
	case b == 0xCE || b == 0xD0:
		return byteAt(text, i+1) < 0xB0
	}
	return false
}

// capitalLatinA reports whether the two bytes encode a capital of the Latin Extended-A block, such as Ł or Ş. In that
// block, capitals have even numbers up to U+0137 and from U+014A to U+0177, and odd numbers otherwise.
func capitalLatinA(a, b byte) bool {
	r := int(a&0x1F)<<6 | int(b&0x3F)
	if r >= 0x139 && r <= 0x148 || r >= 0x179 && r <= 0x17E {
		return r%2 == 1
	}
	return r%2 == 0
}

// nameWord returns the end of the word at i if it can be part of a name (Ana, O'Brien, Jean-Luc, J.), otherwise 0.
func nameWord(text []byte, i int) int {
	if !isCapitalised(text, i) {
		return 0
	}
	j, uppers := i, 0
	for j < len(text) {
		switch b := text[j]; {
		case class[b]&isLetter != 0:
			if class[b]&isUpper != 0 {
				if uppers++; j > i+3 && class[text[j-1]]&isLower != 0 { // BufferPool, not McDonald
					return 0
				}
			}
			j++
			continue
		case (b == '\'' || b == '-') && class[byteAt(text, j+1)]&isUpper != 0:
			j++
			continue
		case b == 0xE2 && byteAt(text, j+1) == 0x80 && byteAt(text, j+2) == 0x99 && class[byteAt(text, j+3)]&isUpper != 0:
			j += 3
			continue
		case isDigitByte(b) || b == '_' || b == '@' || b == '/' || b == '(' || b == '=':
			return 0
		}
		break
	}
	if j-i == 1 && byteAt(text, j) == '.' {
		return j + 1
	}
	if j-i < 2 || uppers > 3 || uppers == j-i && j-i < 4 {
		return 0
	}
	return j
}

func (sc *textScan) roleOf(start, end int) uint16 {
	h := wordHash(sc.text, start, end)
	if !sc.s.tables.people.mayBegin(h) {
		return 0
	}
	role, e := sc.s.tables.people.longestMatch(sc.text, start, h)
	if e < end {
		return 0
	}
	return role
}

// nameRun finds the consecutive words at i that can form a name, at most the given number of words. It returns the
// end of the last word and how many words it found, not counting particles such as "van".
func (sc *textScan) nameRun(i, most int) (end, n int) {
	for n < most {
		j := i
		for p := 0; n > 0 && p < 2; p++ { // van der Berg
			e := spanEnd(sc.text, j, isLetter)
			if e == j || byteAt(sc.text, e) != ' ' || class[sc.text[j]]&isLower == 0 || sc.roleOf(j, e)&roleParticle == 0 {
				break
			}
			j = e + 1
		}
		e := nameWord(sc.text, j)
		if e == 0 || sc.roleOf(j, e)&roleStop != 0 {
			break
		}
		end, n = e, n+1
		if byteAt(sc.text, e) != ' ' {
			break
		}
		i = e + 1
	}
	return end, n
}

// takeName adds the name at i to the findings. The arguments least and most limit the number of words in the name. If
// known is set, a shorter name is enough if it is a known given or family name.
func (sc *textScan) takeName(i, least, most int, known bool) int {
	if i >= len(sc.text) || i < 0 {
		return 0
	}
	end, n := sc.nameRun(i, most)
	if n < least {
		if n == 0 || !known || sc.roleOf(i, end)&(roleGiven|roleSurname) == 0 {
			return 0
		}
	}
	if f := sc.roleOf(i, end); n == 1 && f&(roleTitle|roleGreeting|roleCompany) != 0 {
		return 0
	}
	return sc.addFinding(i, end, Name)
}

// takeGreetedName finds a name after a greeting such as "Dear". A comma, a colon or the end of the line must follow
// it, unless the first word is a known given name.
func (sc *textScan) takeGreetedName(i int) int {
	i = afterSalutation(sc.text, i)
	end, n := sc.nameRun(i, 3)
	if n == 0 {
		return 0
	}
	switch b := byteAt(sc.text, end); {
	case b == ',' || b == ':' || b == '\n' || b == '\r' || b == 0:
		return sc.addFinding(i, end, Name)
	case sc.roleOf(i, spanEnd(sc.text, i, isLetter))&roleGiven != 0:
		return sc.addFinding(i, end, Name)
	}
	return 0
}

// afterSalutation returns the offset after the titles at i, such as Ms in "Dear Ms Weber".
func afterSalutation(text []byte, i int) int {
	for _, t := range []string{"Mr", "Mrs", "Ms", "Miss", "Herr", "Frau", "Dr", "Prof", "Madame", "Monsieur", "Señor", "Señora", "Sr", "Sra"} {
		if i+len(t) < len(text) && string(text[i:i+len(t)]) == t && !isAlnumByte(text[i+len(t)]) {
			return afterSalutation(text, blanksEnd(text, skipByte(text, i+len(t), '.'), 1))
		}
	}
	return i
}

// takeSignedName finds a name on the line after the closing of a letter, such as "Regards".
func (sc *textScan) takeSignedName(i int) int {
	text := sc.text
	i = skipByte(text, i, ',')
	i = skipByte(text, i, '!')
	line := false
	for i < len(text) && class[text[i]]&isSpace != 0 {
		line = line || text[i] == '\n'
		i++
	}
	if !line {
		return 0
	}
	end, n := sc.nameRun(i, 4)
	if n == 0 {
		return 0
	}
	if b := byteAt(text, end); b != '\n' && b != '\r' && b != 0 && b != ',' && b != ' ' {
		return 0
	}
	return sc.addFinding(i, end, Name)
}

// takeGivenName finds a known given name together with the capitalised words that follow it. A given name alone
// counts only in prose.
func (sc *textScan) takeGivenName(w textWord) int {
	if b := byteAt(sc.text, w.start-1); b == '/' || b == '.' || b == '_' || b == '-' || b == '@' || b == '#' || b == '`' {
		return 0
	}
	end, n := sc.nameRun(w.start, 4)
	if n == 0 {
		return 0
	}
	if n > 1 && (sc.companyFollows(end) || sc.placeFollows(end)) {
		return 0
	}
	if n == 1 && (!sc.isInProse(w.start, end) || sc.afterSaint(w.start)) {
		return 0
	}
	return sc.addFinding(w.start, end, Name)
}

// afterSaint reports whether the name at i is a place, because a word such as San precedes it, as in San Francisco.
func (sc *textScan) afterSaint(i int) bool {
	p, ok := sc.wordBefore(2)
	return ok && p.end == i-1 && isOneOf(
		string(sc.text[p.start:p.end]), "San", "Santa", "Santo", "São", "Saint", "St", "Los", "Las", "El", "Port", "New",
		"Mount", "Lake", "Fort", "Cape",
	)
}

// companyFollows reports whether the legal form of a company, such as GmbH, follows at i.
func (sc *textScan) companyFollows(i int) bool {
	j := blanksEnd(sc.text, skipByte(sc.text, i, ','), 1)
	e := spanEnd(sc.text, j, isLetter)
	return e > j && sc.roleOf(j, e)&roleCompany != 0
}

// placeFollows reports whether a word such as "Street" follows at i, which makes the name before it a place.
func (sc *textScan) placeFollows(i int) bool {
	j := blanksEnd(sc.text, i, 1)
	return isOneOf(
		string(sc.text[j:spanEnd(sc.text, j, isLetter)]), "Street", "Avenue", "Road", "Square", "Lane", "Drive",
		"Airport", "University", "Hospital", "School", "Park", "Bridge", "Tower", "Institute", "Foundation",
	)
}

// isInProse reports whether a name is surrounded by ordinary words, or by a word and the end of a sentence.
func (sc *textScan) isInProse(start, end int) bool {
	text := sc.text
	lower := func(i int) bool {
		return class[byteAt(text, i)]&isLower != 0 && class[byteAt(text, i+1)]&(isLower|isSpace) != 0
	}
	after := byteAt(text, end) == ' ' && lower(end+1)
	before := byteAt(text, start-1) == ' ' && start > 1 && (class[text[start-2]]&isLower != 0 || text[start-2] == ',')
	closes := end >= len(text) || text[end] == '.' || text[end] == ',' || text[end] == '?' || text[end] == '!' || text[end] == '\''
	return after && (before || start == 0 || text[max(0, start-2)] == '.' || text[start-1] == '\n') || before && closes
}

// takeSubject finds a name of two or three capitalised words in front of a verb, such as "wrote", that is usually
// said of a person.
func (sc *textScan) takeSubject(verb textWord) int {
	start, end, n := 0, verb.start, 0
	for back := 2; back <= 4; back++ {
		p, ok := sc.wordBefore(back)
		if !ok || p.start < sc.done || p.end+1 != end || sc.text[p.end] != ' ' || nameWord(sc.text, p.start) != p.end || p.sort&isLower == 0 ||
			sc.roleOf(p.start, p.end)&(roleStop|roleTitle|roleGreeting|roleCompany|roleSignoff|roleParticle) != 0 ||
			sc.voc.mayBegin(wordHash(sc.text, p.start, p.end)) {
			break
		}
		if b := byteAt(sc.text, p.start-1); b != ' ' && b != '\n' && b != 0 && b != '(' && b != '"' {
			break
		}
		start, end, n = p.start, p.start, n+1
	}
	if n < 2 || start > 1 && sc.text[start-1] == ' ' && class[sc.text[start-2]]&isLetter != 0 && sc.afterCapital(start) {
		return 0
	}
	sc.addFinding(start, verb.start-1, Name)
	return 0
}

// afterCapital reports whether the word that ends before the offset i begins with a capital.
func (sc *textScan) afterCapital(i int) bool {
	for back := 2; back <= 6; back++ {
		if p, ok := sc.wordBefore(back); ok && p.end == i-1 {
			return isCapitalised(sc.text, p.start)
		}
	}
	return false
}

// takeSurname finds a known family name together with the word before it.
func (sc *textScan) takeSurname(w textWord) int {
	p, ok := sc.wordBefore(2)
	if !ok || p.end+1 != w.start || sc.text[p.end] != ' ' || p.start < sc.done || nameWord(sc.text, p.start) != p.end ||
		nameWord(sc.text, w.start) == 0 {
		return 0
	}
	if sc.roleOf(p.start, p.end)&(roleStop|roleTitle|roleGreeting|roleCompany) != 0 || p.sort&isLower == 0 {
		return 0
	}
	if b := byteAt(sc.text, p.start-1); b == '/' || b == '.' || b == '_' || b == '-' || b == '@' {
		return 0
	}
	stop, _ := sc.nameRun(w.start, 2)
	if sc.companyFollows(stop) {
		return 0
	}
	return sc.addFinding(p.start, stop, Name)
}

// takeCompany finds a company: the legal form w and the words before it.
func (sc *textScan) takeCompany(w textWord, end int) int {
	form := string(sc.text[w.start:end])
	exact := false
	for _, f := range companyForms {
		exact = exact || f == form
	}
	if !exact || isAlnumByte(byteAt(sc.text, end)) {
		return 0
	}
	start, n := w.start, 0
	if p, ok := sc.wordBefore(2); ok && p.end+1 < start && sc.text[p.end] == ',' && len(form) == 2 && form != "Co" { // Las Vegas, NV
		return 0
	}
	for back := 2; back <= 6; back++ {
		p, ok := sc.wordBefore(back)
		if !ok || p.start < sc.done || !isJoined(sc.text[p.end:start]) || p.end+2 == start && sc.text[p.end] == '.' && p.end-p.start > 1 ||
			!isCapitalised(sc.text, p.start) && p.sort&isDigit == 0 {
			break
		}
		if r := sc.roleOf(p.start, p.end); r&(roleStop|roleGreeting) != 0 {
			break
		}
		if n == 0 && p.sort&isLower == 0 && len(form) <= 2 && p.end-p.start > 5 {
			break
		}
		start, n = p.start, n+1
	}
	if n == 0 || !isCapitalised(sc.text, start) {
		return 0
	}
	return sc.addFinding(start, companyEnd(sc.text, w.start, end), Company)
}

// isJoined reports whether two words can belong to one name, judged by the text between them, such as a space or a
// hyphen.
func isJoined(between []byte) bool {
	switch string(between) {
	case " ", ", ", " & ", "-", "&", ". ", " + ", "'":
		return true
	}
	return false
}

// companyEnd returns the end of a company's legal form with what may follow it: a full stop, "& Co. KG" or "Ltd.".
func companyEnd(text []byte, start, i int) int {
	switch form := string(text[start:i]); form {
	case "Inc", "Ltd", "Corp", "Co", "Lda", "Ltda", "Pty", "Pvt", "Pte":
		i = skipByte(text, i, '.')
	default:
		if strings.Contains(form, ".") {
			i = skipByte(text, i, '.')
		}
	}
	for _, more := range []string{" & Co. KG", " & Co. KGaA", " & Co.", " Ltd.", " Ltd", " LLC", " Limited"} {
		if i+len(more) <= len(text) && string(text[i:i+len(more)]) == more && !isAlnumByte(byteAt(text, i+len(more))) {
			return i + len(more)
		}
	}
	return i
}

// displayName finds the display name in front of an e-mail address that begins at start, as in Ana Lima <ana@…> or
// Ana Lima (ana@…).
func (sc *textScan) displayName(start int) {
	text := sc.text
	if sc.s.off[Name] || start < 3 || text[start-1] != '<' && text[start-1] != '(' {
		return
	}
	end := start - 1
	for end > 0 && (text[end-1] == ' ' || text[end-1] == '"') {
		end--
	}
	from, n := end, 0
	for back := 1; back <= len(sc.recent); back++ {
		p, ok := sc.wordBefore(back)
		if !ok || p.start < start && (p.start < sc.done || !isCapitalised(text, p.start) || sc.roleOf(p.start, p.end)&roleStop != 0) {
			break
		}
		switch {
		case p.start >= start: // of the local part
			continue
		case n == 0 && p.end == end, n == 0 && p.end == end-1 && text[p.end] == '.', n > 0 && p.end < from && isJoined(text[p.end:from]):
			from, n = p.start, n+1
			continue
		}
		break
	}
	if n >= 1 && n <= 4 {
		sc.addFinding(from, end, Name)
	}
}
