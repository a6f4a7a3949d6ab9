package pii

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Type represents a type of personal data, in the lower-case spelling of the settings. Tokens contain it in capitals.
type Type string

// The built-in types of personal data. New versions only add types.
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

// AllTypes returns all built-in types of personal data.
func AllTypes() []Type {
	return []Type{
		Email, Phone, CreditCard, SSN, Name, Company, IBAN, IP, Address, Secret, MAC, Wallet, NationalID, Passport, Licence,
		DateOfBirth,
	}
}

// TypedSpan represents a part of a text that is personal data. Start and End are byte offsets in the text as it was
// given, before any escapes are decoded.
type TypedSpan struct {
	Start, End int
	Type       Type
}

// FoundValue represents a finding that is about to be replaced by a token.
type FoundValue struct {
	Type   Type
	Text   string // decoded: what a person would write
	Raw    string // as spelled in the document, with escapes
	Number bool   // was a JSON number; its token is a JSON string
}

// TokenMinter supplies the tokens for ReplaceValues, which calls it in the order of the document. It may be called
// more than once for equal values.
type TokenMinter interface {
	// Mint returns the token of a value. If ok is false, the value stays in the document.
	Mint(v FoundValue) (token string, ok bool)
	// Foreign is called for text in the input that already has the form of a token. If ok is true, this text is
	// replaced by the result instead, which must not need escapes in JSON.
	Foreign(text string) (instead string, ok bool)
}

// Options configures a Scanner. The zero value finds every built-in type.
type Options struct {
	// Regions lists ISO 3166 codes of countries whose phone numbers are found without a country code. If it is empty,
	// a default list applies.
	Regions []string
	// Off lists the types that are not searched for.
	Off []Type
	// Keys maps additional key names, in any case and spelling ("crew_member"), to the type of their values.
	Keys map[string]Type
	// Words lists, for each type, additional words and phrases that are personal data of that type wherever they
	// occur.
	Words map[Type][]string
	// Types maps each custom type to the pattern of its values. If the pattern is nil, values are found only through
	// Words and Keys. The name of a custom type has the same form as the built-in names, and at most MaxType bytes.
	Types map[Type]*regexp.Regexp
}

// MaxType bounds the length of the name of a custom type, in bytes.
const MaxType = 20

// Scanner finds personal data. It is safe for concurrent use.
type Scanner struct {
	types   []Type        // all
	shapes  []customShape // of further types
	off     map[Type]bool
	tables  *sharedTables
	keys    map[string]valueMeaning // of Options
	words   *KnownValues            // of Options
	phones  []*numberingPlan        // regions of numbers without a country's code
	short   []*numberingPlan        // of these, with numbers of less than seven digits
	walkers walkerPool
}

// New returns a scanner. It ignores unknown regions and types.
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
			s.words = &KnownValues{}
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

func (s *Scanner) allGazetteers() []*KnownValues {
	if s.words == nil {
		return nil
	}
	return []*KnownValues{s.words}
}

// FindText appends the personal parts of a text to dst, in order and without overlaps. It decodes percent and HTML
// escapes. Unlike ReplaceValues, it does not parse JSON.
func (s *Scanner) FindText(dst []TypedSpan, text []byte) []TypedSpan {
	v := plainView(text)
	u, ok := v.decodeEscapes()
	from := len(dst)
	dst = s.appendFindings(dst, u.text, textHints{}.withNames(s.allGazetteers()))
	kept := dst[:from]
	for _, f := range dst[from:] {
		if ok {
			f.Start, f.End = u.rawRange(f.Start, f.End)
		}
		if f.Type != "" { // skip text in the form of a token
			kept = append(kept, f)
		}
	}
	return kept
}
