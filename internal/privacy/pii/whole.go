package pii

import (
	"bytes"
	"unicode/utf8"
)

// matchWhole checks whether a text as a whole is a value of type t. If so, it returns the range of the text without
// surrounding blanks, otherwise 0, 0. If sure is set, the key of the value has determined the type, and only
// impossible values are refused. Otherwise the value itself must look like the type.
func (s *Scanner) matchWhole(t Type, text []byte, sure bool) (start, end int) {
	v := text
	if n := len(v); n == 0 || v[0] <= ' ' || v[0] >= 0x80 || v[n-1] <= ' ' || v[n-1] >= 0x80 {
		v = bytes.TrimSpace(text)
		start = bytes.Index(text, v)
	}
	if len(v) == 0 || !utf8.Valid(v) && t != Secret || isEmptyValue(v) || s.tokenEnd(v, 0) == len(v) {
		return 0, 0
	}
	if t == Secret { // the scheme of an Authorization header is not secret
		for _, scheme := range []string{"bearer ", "basic ", "token "} {
			if len(v) > len(scheme) && equalFold(v[:len(scheme)], scheme) {
				v, start = v[len(scheme):], start+len(scheme)
			}
		}
	}
	ok := false
	switch t {
	case Name:
		ok = nameLike(v, sure)
	case Company:
		ok = companyLike(v)
	case Email:
		at := bytes.IndexByte(v, '@')
		ok = at > 0 && at == bytes.LastIndexByte(v, '@') && byteMarks(v)&notInMail == 0
	case Phone:
		ok = phoneLike(v)
	case Address:
		ok = addressLike(v, sure)
	case DateOfBirth:
		ok = birthLike(v)
	case Secret:
		ok = len(v) >= 3 && len(v) < 8192 && !isPlaceholder(v) && !bytes.HasPrefix(v, []byte("http")) && (len(v) >= 8 || mixedSecret(v)) &&
			!allWords(v) &&
			!versionLike(v)
	case CreditCard:
		d, rest := countCharacters(v)
		ok = d >= 12 && d <= 19 && rest == 0 && len(v) <= 25
	case IBAN:
		d, letters := countCharacters(v)
		ok = d >= 6 && letters <= 20 && len(v) <= 42 && !bytes.ContainsAny(v, "@/:{")
	case SSN:
		d, rest := countCharacters(v)
		ok = d >= 7 && d <= 12 && rest == 0
	case NationalID, Passport, Licence:
		d, letters := countCharacters(v)
		ok = d >= 2 && d+letters >= 5 && d+letters <= 24 && len(v) <= 30 && !bytes.ContainsAny(v, "@:{,\"") && bytes.Count(v, []byte(" ")) <= 6
	case Wallet:
		ok = len(v) >= 20 && len(v) <= 110 && !bytes.ContainsAny(v, " @/{\"")
	case MAC:
		d, letters := countCharacters(v)
		ok = d+letters == 12 && isHexText(bytes.ReplaceAll(bytes.ReplaceAll(bytes.ReplaceAll(v, []byte(":"), nil), []byte("-"), nil), []byte("."), nil))
	default:
		ok = s.isCustomType(t) && len(v) >= 2 && len(v) <= 200
	}
	if !ok {
		return 0, 0
	}
	return start, start + len(v)
}

// isEmptyValue reports whether a value means "no value", such as null or n/a.
func isEmptyValue(v []byte) bool {
	if len(v) > 14 {
		return false
	}
	var room [16]byte
	switch b := appendFolded(room[:0], v); string(b) {
	case "null", "none", "nil", "n/a", "na", "-", "--", "?", "unknown", "undefined", "true", "false", "yes", "no", "tbd", "todo", "empty", "other", "default", "unassigned", "anonymous", "not available", "not provided", "redacted", "[redacted]", "hidden",
		"string", "object", "array", "number", "boolean", "user", "admin", "system", "team", "unbekannt", "inconnu", "desconocido", "keine", "work", "home", "mobile", "personal", "primary":
		return true
	}
	return bytes.IndexByte(v, '*') >= 0 && isUniform(bytes.ReplaceAll(v, []byte(" "), nil))
}

// Each class marks the bytes that cannot occur in values of one type. An e-mail address, for example, contains no
// byte of class notInMail.
const (
	notInMail = 1 << iota
	notInName
	notInCompany
	notInPhone
)

var markOf = func() (of [256]uint8) {
	for _, b := range []byte(" <>,;\"%&") {
		of[b] |= notInMail
	}
	for _, b := range []byte("@{}<>=|\\\"_;/[]\n") {
		of[b] |= notInName
	}
	for _, b := range []byte("@{}<>=|\\\"\n") {
		of[b] |= notInCompany
	}
	for b, c := range class {
		if c&isLetter != 0 && bytes.IndexByte([]byte("xextnsionXEXTNSION"), byte(b)) < 0 || bytes.IndexByte([]byte(":@,;=_{}<>"), byte(b)) >= 0 {
			of[b] |= notInPhone
		}
	}
	return of
}()

// byteMarks returns the union of the classes of all bytes of v, such as notInMail.
func byteMarks(v []byte) (all uint8) {
	for _, b := range v {
		all |= markOf[b]
	}
	return all
}

// countCharacters returns how many digits and how many letters v contains.
func countCharacters(v []byte) (digits, letters int) {
	for _, b := range v {
		switch {
		case isDigitByte(b):
			digits++
		case isAlnumByte(b):
			letters++
		}
	}
	return digits, letters
}

// nameLike reports whether a value can be a name: it has letters, at most two digits, and no address or path. Unless
// sure is set, it must have no digits and at least two capitalised words.
func nameLike(v []byte, sure bool) bool {
	d, letters := countCharacters(v)
	if letters == 0 || len(v) > 100 || d > 2 || byteMarks(v)&notInName != 0 {
		return false
	}
	if sure {
		return d == 0 || bytes.IndexByte(v, ' ') > 0
	}
	return d == 0 && capitalWords(v) >= 2
}

// capitalWords returns the number of capitalised words in v. Short lower-case particles are skipped. It returns 0 if
// there are more than five, or if a longer word is not capitalised.
func capitalWords(v []byte) (n int) {
	for _, w := range bytes.Fields(v) {
		switch {
		case isCapitalised(w, 0) || w[0] >= 0xE0:
			n++
		case len(w) > 3 || class[w[0]]&isLower == 0:
			return 0
		}
	}
	if n > 5 {
		return 0
	}
	return n
}

// personLike reports whether a value consists of two or more capitalised words and is probably a person's name. At
// least one word must be a known name. If holder is set, because the value's key may name a person, it also suffices
// that none of the words is common.
func (s *Scanner) personLike(v []byte, holder bool) bool {
	if len(v) > 60 || len(v) < 5 || !nameLike(v, false) {
		return false
	}
	for i := 0; i < len(v); {
		e := spanEnd(v, i, isAlnum)
		if e > i {
			holder = holder && !isCommonWord(v[i:e])
			role, end := s.tables.people.longestMatch(v, i, wordHash(v, i, e))
			switch {
			case end == e && role&roleStop != 0, end >= e && role&roleCompany != 0: // K.K. is two words
				return false
			case end == e && role&(roleGiven|roleSurname) != 0:
				return true
			}
		}
		i = e + 1
	}
	return holder
}

func companyLike(v []byte) bool {
	_, letters := countCharacters(v)
	return letters >= 2 && len(v) <= 120 && byteMarks(v)&notInCompany == 0 && !bytes.Contains(v, []byte("://")) && !isUUID(v)
}

func phoneLike(v []byte) bool {
	d, letters := countCharacters(v)
	if d < 5 || d > 20 || len(v) > 40 || letters > 9 {
		return false
	}
	if byteMarks(v)&notInPhone != 0 {
		return false
	}
	var g digitGroups
	g.readGroups(v, 0, 0)
	return g.dateGroups() == 0
}

// addressLike reports whether a value can be a postal address. Unless sure is set, it must contain digits and words,
// and must not be an IP address. E-mail and wallet addresses are never accepted.
func addressLike(v []byte, sure bool) bool {
	d, letters := countCharacters(v)
	if len(v) > 300 || bytes.ContainsAny(v, "@{}<>=|\\\"") || bytes.Contains(v, []byte("://")) || d+letters < 2 ||
		bytes.HasPrefix(v, []byte("0x")) {
		return false
	}
	return sure || d > 0 && letters > 3 && bytes.IndexByte(v, ' ') > 0 && quadEnd(v, 0) == 0
}

func birthLike(v []byte) bool {
	d, letters := countCharacters(v)
	if d < 4 || d > 20 || len(v) > 40 {
		return false
	}
	return letters == 0 && d >= 6 && d <= 8 || dateAt(v, 0) > 0
}

func mixedSecret(v []byte) bool {
	d, letters := countCharacters(v)
	return d > 0 && letters > 0 || d+letters < len(v) || d == len(v)
}

// versionLike reports whether a text is a version or a range of versions.
func versionLike(v []byte) bool {
	w := bytes.TrimLeft(v, "^~>=<v ")
	d, letters := countCharacters(w)
	return len(v) < 24 && len(w) > 0 && isDigitByte(w[0]) &&
		(bytes.Count(w, []byte(".")) >= 2 && letters <= 6 || d+letters < 4 && len(w) < len(v))
}

// allWords reports whether a text consists of a few ordinary words, such as "API key of the shop".
func allWords(v []byte) bool {
	d, letters := countCharacters(v)
	return bytes.IndexByte(v, ' ') > 0 && d == 0 && letters+bytes.Count(v, []byte(" ")) >= len(v)-2
}
