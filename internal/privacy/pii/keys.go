package pii

import (
	_ "embed"
	"strings"
	"sync"
	"unicode"
)

//go:embed keys.txt
var keyList string

// valueMeaning says what a JSON key, such as "email", implies about its value.
type valueMeaning struct {
	typ     Type
	sure    bool   // the value is of the type, whatever it looks like
	person  bool   // a name inside is that of a person
	company bool   // a name inside is that of a company
	holder  bool   // the key means a person: the value may be the name itself
	name    bool   // the value is the name of the enclosing object
	zip     bool   // part of an address where there is a street
	generic bool   // has the meaning of the enclosing key
	people  bool   // objects with such a key are about people
	weak    bool   // other objects than people have it too
	opaque  bool   // an id, a hash, a time, an amount
	words   uint64 // kinds of context words in the key
}

// isPersonal reports whether objects with such a key describe people.
func (m valueMeaning) isPersonal() bool {
	if m.people {
		return true
	}
	switch m.typ {
	case Email, Phone, SSN, DateOfBirth, Passport, Licence, Name:
		return m.sure && !m.weak
	}
	return false
}

type meaningDictionary struct{ keys map[string]valueMeaning }

var keyDictionary = sync.OnceValue(func() *meaningDictionary {
	d := &meaningDictionary{map[string]valueMeaning{}}
	for line := range strings.Lines(keyList) {
		sort, list, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok || line[0] == '#' {
			continue
		}
		for k := range strings.SplitSeq(list, ",") {
			k = strings.TrimSpace(k)
			d.keys[k] = d.keys[k].withEntry(sort, k)
		}
	}
	return d
})

// withEntry returns the meaning m of a key, extended by what the list of known keys says about the key. The argument
// sort is one thing that the list says, such as "person" or a type of personal data.
func (m valueMeaning) withEntry(sort, key string) valueMeaning {
	switch sort {
	case "person":
		m.person = true
	case "people":
		m.people = true
	case "generic":
		m.generic = true
	case "holder":
		m.holder = true
	case "opaque":
		m.opaque = true
	case "zip?":
		m.typ, m.zip = Address, true
	case "label":
		if m.typ == "" {
			m.typ, m.name = Name, true
		}
	case "company":
		m.company = true
		if m.typ == "" {
			m.typ, m.sure = Company, true
		}
		if key == "account" || key == "accounts" || key == "organizations" || key == "companies" || key == "vendors" || key == "suppliers" {
			m.typ, m.sure = "", false
		}
	default:
		typ, unsure := strings.CutSuffix(sort, "?")
		m.typ, m.sure, m.weak = Type(typ), !unsure, key == "full name" || key == "fullname"
	}
	return m
}

// keyWords splits a key into its words in lower case. It handles firstName, FIRST_NAME, first-name and IPAddress2.
func keyWords(key string) (words []string) {
	var w strings.Builder
	flush := func() {
		if w.Len() > 0 {
			words = append(words, w.String())
			w.Reset()
		}
	}
	rs := []rune(key)
	for i, r := range rs {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r):
			flush()
			continue
		case i > 0 && unicode.IsUpper(r) && (unicode.IsLower(rs[i-1]) || unicode.IsDigit(rs[i-1])),
			i > 0 && i+1 < len(rs) && unicode.IsUpper(r) && unicode.IsUpper(rs[i-1]) && unicode.IsLower(rs[i+1]):
			flush()
		}
		w.WriteRune(unicode.ToLower(r))
	}
	flush()
	return words
}

const maxKeyWords = 8

// meaningOf returns what a key means, according to the longest known sequence of words at its end.
func (s *Scanner) meaningOf(key string) (m valueMeaning) {
	if len(key) > 120 {
		return valueMeaning{}
	}
	words := keyWords(key)
	for len(words) > 1 && isNumber(words[len(words)-1]) {
		words = words[:len(words)-1]
	}
	if len(words) == 0 || len(words) > maxKeyWords {
		return valueMeaning{}
	}
	at := 0
	m, at = s.suffixMeaning(words)
	switch {
	case m.generic && at > 0: // vat number
		m = valueMeaning{}
	case m.name && at > 0: // customer name, file name
		m = s.nameOf(words[:at])
	case m.opaque && at > 0 && at == len(words)-1 && m.typ == "":
		m.words |= s.vouchedBy(words[:at]) // ssn_value, tax_id
	case m.typ == Secret && at > 0 && isOneOf(
		words[at-1], "page", "next", "sync", "continuation", "csrf", "xsrf", "has", "is", "reset", "requires", "public",
		"cancel",
	):
		m = valueMeaning{opaque: true}
	case m.typ != "" && at > 0 && isOneOf(words[at-1], "is", "has", "num", "no", "count"):
		m = valueMeaning{}
	}
	m.words |= s.vouchedBy(words)
	return m
}

func isNumber(w string) bool { return strings.Trim(w, "0123456789") == "" }

func isOneOf(w string, all ...string) bool {
	for _, a := range all {
		if a == w {
			return true
		}
	}
	return false
}

// suffixMeaning looks up the longest known sequence of words with which a key ends. It returns the meaning of this
// sequence and the index of its first word. Digits at the end are ignored, unless the known spelling has them.
func (s *Scanner) suffixMeaning(words []string) (valueMeaning, int) {
	for from := range words {
		k := strings.Join(words[from:], " ")
		trimmed := strings.TrimRight(k, "0123456789")
		for _, k := range []string{k, trimmed, strings.TrimSuffix(trimmed, "s")} {
			if m, ok := s.keys[k]; ok {
				return m, from
			}
			if m, ok := s.tables.keys.keys[k]; ok {
				return m, from
			}
		}
	}
	return valueMeaning{}, len(words)
}

// nameOf returns the meaning of a key that ends in "name". The argument before holds the words in front of "name".
// They decide whether a person, a company or something else has this name.
func (s *Scanner) nameOf(before []string) valueMeaning {
	of, at := s.suffixMeaning(before)
	switch {
	case at == len(before):
		return valueMeaning{}
	case of.company:
		return valueMeaning{typ: Company, sure: true}
	case of.person:
		return valueMeaning{typ: Name, sure: true}
	}
	return valueMeaning{}
}

// vouchedBy returns the kinds of context words among the words of a key, as bits. A context word such as "passport"
// vouches for the key's value: it is evidence that numbers in it are personal.
func (s *Scanner) vouchedBy(words []string) (kinds uint64) {
	text := []byte(strings.Join(words, " "))
	for i := 0; i < len(text); i = spanEnd(text, i, isAlnum) + 1 {
		h := wordHash(text, i, spanEnd(text, i, isAlnum))
		k, end := s.tables.words.longestMatch(text, i, h)
		if end > 0 {
			kinds |= k
		}
	}
	return kinds
}
