package pii

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Type represents a type of personal data: the lower-case word of settings. Tokens bear it in capitals.
type Type string

// The types. The set is closed and append-only.
const (
	Email       Type = "email"
	Phone       Type = "phone"
	CreditCard  Type = "credit_card"
	SSN         Type = "ssn" // of the United States, with ITIN
	Name        Type = "name"
	Company     Type = "company"
	IBAN        Type = "iban"
	IP          Type = "ip"
	Address     Type = "address"
	Secret      Type = "secret"
	MAC         Type = "mac"
	Wallet      Type = "wallet"
	NationalID  Type = "national_id" // personal, tax and health numbers of states
	Passport    Type = "passport"
	Licence     Type = "driving_licence"
	DateOfBirth Type = "date_of_birth"
)

// AllTypes returns all built-in types. It is the only list of them: settings, types of wrappers and modes are made from it.
func AllTypes() []Type {
	return []Type{
		Email, Phone, CreditCard, SSN, Name, Company, IBAN, IP, Address, Secret, MAC, Wallet, NationalID, Passport, Licence,
		DateOfBirth,
	}
}

// Finding represents a piece of a text that is personal. Start and End are offsets in bytes of the text as it was
// given, before any escape in it was decoded.
type Finding struct {
	Start, End int
	Type       Type
}

// Value represents a finding on its way to become a token.
type Value struct {
	Type   Type
	Text   string // decoded: what a person would write
	Raw    string // as it stood in the document, escapes included
	Number bool   // stood as a JSON number; the token stands as a string
}

// Vault describes what Replace asks of its caller. It is called in the order of the document and may be called twice
// for equal values.
type Vault interface {
	// Mint returns the token of a value. With ok false the value stays.
	Mint(v Value) (token string, ok bool)
	// Foreign is told of text in the input that has the shape of a token. With
	// ok true, instead takes its place; it must not need escaping in JSON.
	Foreign(text string) (instead string, ok bool)
}

// Options adjust a scanner. The zero value finds every type.
type Options struct {
	// Regions are ISO 3166 codes of countries whose phone numbers are found when
	// written without the country's code. None means a default list.
	Regions []string
	// Off are the types that are not looked for.
	Off []Type
	// Keys are further names of keys, in any case and spelling ("crew_member"),
	// of which the values are of a type.
	Keys map[string]Type
	// Words are further words and phrases that are of a type wherever they stand.
	Words map[Type][]string
	// Types are further types, with the form of their values; nil has none, so that only
	// Words and Keys tell. Their names are like those of the others and of at most
	// MaxType bytes.
	Types map[Type]*regexp.Regexp
}

// MaxType bounds the name of a type, in bytes.
const MaxType = 20

// Scanner finds personal data. It is safe for concurrent use.
type Scanner struct {
	types   []Type        // all
	shapes  []customShape // of further types
	off     map[Type]bool
	tables  *sharedTables
	keys    map[string]valueMeaning // of Options
	words   *Gazetteer              // of Options
	phones  []*numberingPlan        // regions of numbers without a country's code
	short   []*numberingPlan        // of these, with numbers of less than seven digits
	walkers walkerPool
}

// New makes a scanner. Regions and types that do not exist are passed over.
func New(o Options) *Scanner {
	s := &Scanner{types: AllTypes(), off: map[Type]bool{}, tables: allTables(), keys: map[string]valueMeaning{}}
	for _, t := range slices.Sorted(maps.Keys(o.Types)) {
		if s.types = append(s.types, t); o.Types[t] != nil {
			s.shapes = append(s.shapes, customShape{t, o.Types[t]})
		}
	}
	for _, t := range o.Off {
		s.off[t] = true
	}
	for k, t := range o.Keys {
		s.keys[strings.Join(keyWords(k), " ")] = valueMeaning{typ: t, sure: true}
	}
	for t, words := range o.Words {
		if !slices.Contains(s.types, t) {
			continue
		}
		if s.words == nil {
			s.words = &Gazetteer{}
		}
		for _, w := range words {
			s.words.Add(t, w)
		}
	}
	regions := o.Regions
	if len(regions) == 0 {
		regions = []string{"US", "GB", "DE", "FR", "ES", "IT", "NL"}
	}
	for _, r := range regions {
		if p := s.tables.phones.regions[strings.ToUpper(r)]; p != nil {
			if s.phones = append(s.phones, p); p.hasShortNumbers() {
				s.short = append(s.short, p)
			}
		}
	}
	return s
}

func (s *Scanner) allGazetteers() []*Gazetteer {
	if s.words == nil {
		return nil
	}
	return []*Gazetteer{s.words}
}

// FindText appends what is personal in a text to dst, in order and without
// overlaps, in one pass. Percent and HTML escapes are looked through. It knows
// nothing of JSON: see Replace.
func (s *Scanner) FindText(dst []Finding, text []byte) []Finding {
	v := plainView(text)
	u, ok := v.unescape()
	from := len(dst)
	dst = s.appendFindings(dst, u.text, textHints{names: s.allGazetteers()})
	kept := dst[:from]
	for _, f := range dst[from:] {
		if ok {
			f.Start, f.End = u.rawRange(f.Start, f.End)
		}
		if f.Type != "" { // text in the shape of a token is none of ours
			kept = append(kept, f)
		}
	}
	return kept
}
