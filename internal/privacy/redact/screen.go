// Package redact hides personal data from programs and from the model. It replaces personal data in server results by
// tokens before a program sees them. Types that programs need for computing are replaced only before text reaches the
// model. In the arguments of calls to servers, it replaces the tokens by their values again if the server may receive
// them.
package redact

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"retort/internal/core"
	"retort/internal/privacy/pii"
	"retort/internal/privacy/vault"
)

// HideMode says whether a type of personal data is hidden from programs and the model, from the model only, or not at
// all.
type HideMode string

// Each mode says who sees a token in place of a personal value: programs and the model, only the model, or nobody.
const (
	Sealed HideMode = "sealed" // from programs and the model
	Border HideMode = "border" // from the model; programs compute with the real text
	Off    HideMode = "off"    // not hidden
)

// modeOf returns the default mode of a type. Most types are hidden from programs and the model. Names, companies,
// addresses and dates of birth are hidden only from the model, because programs filter and sort by them.
func modeOf(t pii.Type) HideMode {
	switch t {
	case pii.Name, pii.Company, pii.Address, pii.DateOfBirth:
		return Border
	}
	return Sealed
}

// Options configures what counts as personal data and from whom each type is hidden.
type Options struct {
	Modes   map[pii.Type]HideMode
	Regions []string                    // countries whose phone numbers are found without a country code
	Words   map[pii.Type][]string       // words and phrases that are of a type wherever they stand
	Keys    map[string]pii.Type         // names of keys, in any spelling, whose values are of a type
	Types   map[pii.Type]*regexp.Regexp // custom types, with the pattern of their values or nil
	// Reveals reports whether a server may receive values of a type that did not come from it.
	Reveals func(server string, t pii.Type) bool
	// Treats returns how values of a type in a server's results are treated. If Treats is nil, the type's mode
	// decides.
	Treats func(server string, t pii.Type) TypeTreatment
}

// ModeOf returns the mode of a type, which says from whom values of this type are hidden.
func (o Options) ModeOf(t pii.Type) HideMode { return cmp.Or(o.Modes[t], modeOf(t)) }

// ScanOptions returns the options of the scanner that finds personal data.
func (o Options) ScanOptions() pii.Options {
	return pii.Options{Regions: o.Regions, Words: o.Words, Keys: o.Keys, Types: o.Types}
}

// TypeTreatment says how values of one type of personal data are handled in the results of one server. It can
// override the mode that the type has for all servers.
type TypeTreatment string

// The treatments of values in one server's results. All except Usual override the mode that the values' type has for
// all servers.
const (
	Usual TypeTreatment = ""      // as the mode of its type says
	Hide  TypeTreatment = "hide"  // programs get a token, whatever the mode
	Mask  TypeTreatment = "mask"  // its masked form replaces it for good
	Block TypeTreatment = "block" // a fixed text replaces it for good
)

// Redactor replaces personal data by tokens, and tokens by values. It is safe for concurrent use.
type Redactor struct {
	scanner *pii.Scanner
	modes   map[pii.Type]HideMode
	reveals func(server string, t pii.Type) bool
	treats  func(server string, t pii.Type) TypeTreatment
	store   *vault.TokenVault

	compared comparisonBudget

	mu       sync.Mutex
	sessions map[string]*Session
}

// New returns a Redactor that stores its tokens in store. It does not close store.
func New(o Options, store *vault.TokenVault) *Redactor {
	s := &Redactor{modes: map[pii.Type]HideMode{}, reveals: o.Reveals, treats: o.Treats, store: store, sessions: map[string]*Session{}}
	s.compared.principals, s.compared.seed = map[string]map[valueKey]*comparedValue{}, maphash.MakeSeed()
	for _, t := range slices.AppendSeq(pii.AllTypes(), maps.Keys(o.Types)) {
		s.modes[t] = o.ModeOf(t)
	}
	s.scanner = pii.New(o.ScanOptions())
	return s
}

// SessionName returns the name under which a session of a principal is stored. The argument principal is "" if there
// is only one principal.
func SessionName(principal, session string) string { return principal + "\x00" + session }

// OpenSession returns the named session with its stored tokens and known values. The error is a *core.Error if the
// stored values cannot be read.
func (s *Redactor) OpenSession(name string) (*Session, error) {
	tokens, err := s.store.OpenSession(name)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if open, ok := s.sessions[name]; ok {
		return open, nil
	}
	for old := range s.sessions {
		if len(s.sessions) < maxOpen {
			break
		}
		delete(s.sessions, old) // its values are in the vault
	}
	open := &Session{screen: s, name: name, tokens: tokens, known: &pii.KnownValues{}}
	if err := open.loadVisible(); err != nil {
		return nil, core.Errorf(core.KindInternal, "pii.vault", "the personal data stored for this session cannot be read: %w", err)
	}
	s.sessions[name] = open
	return open, nil
}

// maxOpen bounds the number of sessions kept in memory. A bound is needed because callers choose the names of
// sessions.
const maxOpen = 128

// Session replaces personal data by tokens, and tokens by values, within one session. It is safe for concurrent use.
type Session struct {
	screen *Redactor
	name   string
	tokens *vault.TokenSession
	known  *pii.KnownValues // values that a scan finds again wherever they occur
	full   atomic.Bool      // known has no room for more values

	origins valueOrigins
}

// IsFull reports whether the session had more names, companies, addresses and dates of birth than it can find again.
// From then on, programs get tokens for values of these types.
func (s *Session) IsFull() bool { return s.full.Load() }

// loadVisible adds the values in the vault to the list of known values, so that the scanner finds them wherever they
// occur in text for the model. It adds the values of types that programs see, and sealed values that a server may
// repeat. The vault does not store which sealed values servers have received, so all of them count as received.
func (s *Session) loadVisible() error {
	for _, t := range slices.Sorted(maps.Keys(s.screen.modes)) {
		err := s.tokens.EachOfType(string(t), func(e vault.TokenEntry) bool {
			if s.screen.modes[t] == Border {
				s.known.AddExact(t, e.Value)
				s.origins.addValue(t, e.Value, e.From)
			}
			s.rememberNumber(t, e.Value)
			s.rememberSealed(t, e.Value)
			return true
		})
		if err != nil {
			return err
		}
	}
	s.full.Store(s.known.IsFull())
	return nil
}

// documentVault creates the tokens for one document. It implements pii.TokenMinter.
type documentVault struct {
	*Session
	from   []string    // the server that it comes from
	border bool        // it goes to the model
	bare   bool        // it is one number of JSON
	found  *TypeCounts // of what is in it; may be nil
	fixed  bool        // a masked form or a fixed text has replaced some value
	err    error
}

// TypeCounts holds the number of values found of each type.
type TypeCounts []TypeCount

// TypeCount holds the number of values found of one type.
type TypeCount struct {
	Type pii.Type
	N    int
}

// Add adds n values of type t.
func (c *TypeCounts) Add(t pii.Type, n int) {
	for i := range *c {
		if (*c)[i].Type == t {
			(*c)[i].N += n
			return
		}
	}
	*c = append(*c, TypeCount{t, n})
}

// replaceValues replaces the personal data in a document by tokens. If the document is a single JSON number that must
// be hidden, it becomes a JSON string.
func (m *documentVault) replaceValues(document []byte) []byte {
	m.bare = len(document) > 0 && document[0]-'0' < 10 && json.Valid(document)
	out := m.screen.scanner.ReplaceValues(document, m.known, m)
	if m.bare && !bytes.Equal(out, document) {
		out = append(append([]byte{'"'}, out...), '"')
	}
	if m.fixed { // different keys may have the same masked form
		out = withUniqueKeys(out)
	}
	return out
}

// These markers take the place of a server's name for values that no server has sent: values that a program computed,
// and values that the model wrote into a program.
const (
	programSource = "\x00program"
	modelSource   = "\x00model"
)

func (m *documentVault) Mint(v pii.FoundValue) (string, bool) {
	mode := m.modeOf(v.Type)
	if m.err != nil || mode == Off || !utf8.ValidString(v.Text) {
		return "", false
	}
	if m.found != nil {
		m.found.Add(v.Type, 1)
	}
	if instead, ok := m.treatedText(v); ok {
		m.fixed = true
		return instead, true
	}
	if (strings.IndexByte(v.Raw, '%') >= 0 || strings.IndexByte(v.Raw, '&') >= 0) && strings.IndexByte(v.Raw, '\\') < 0 {
		v.Text = v.Raw // what is written with escapes comes back with them
	}
	token, err := m.tokens.MintToken(vault.TokenEntry{Type: string(v.Type), Value: v.Text, Digits: v.Number || m.bare, From: m.from})
	if err != nil {
		m.err = err
		return "", false
	}
	if mode == Sealed {
		m.rememberNumber(v.Type, v.Text)
	}
	if mode == Border && !m.border {
		m.known.AddExact(v.Type, v.Text)
		m.origins.addValue(v.Type, v.Text, m.from)
		if !m.known.IsFull() {
			return "", false
		}
		m.Session.full.Store(true) // programs do not see a value that could not be found again
	}
	return token, true
}

// modeOf returns the mode of a type for this document. It is Sealed if values of this type from the server have the
// treatment Hide.
func (m *documentVault) modeOf(t pii.Type) HideMode {
	if !m.border && m.screen.treatmentOf(m.from[0], t) == Hide {
		return Sealed
	}
	return m.screen.modes[t]
}

func (s *Redactor) treatmentOf(server string, t pii.Type) TypeTreatment {
	if s.treats == nil {
		return Usual
	}
	return s.treats(server, t)
}

// SealedType returns the type of personal data that programs see only as tokens in a property of a server's results,
// judged by the property's name. It returns "" if programs see the values of the property.
func (s *Redactor) SealedType(server, property string) string {
	t := s.scanner.OfKey(property)
	switch s.treatmentOf(server, t) {
	case Mask, Block:
		return ""
	case Hide:
		return string(t)
	}
	if s.modes[t] == Sealed {
		return string(t)
	}
	return ""
}

// treatedText returns the text that replaces a value whose treatment is Mask or Block. Unlike a token, this text
// cannot be turned back into the value. For other values the second result is false.
func (m *documentVault) treatedText(v pii.FoundValue) (string, bool) {
	if m.border {
		return "", false
	}
	switch m.screen.treatmentOf(m.from[0], v.Type) {
	case Mask:
		return strings.Map(plainJSON, valueOutline(v.Type, v.Text)), true
	case Block:
		return "(" + string(v.Type) + " withheld)", true
	}
	return "", false
}

// plainJSON replaces a character by an asterisk if a JSON string could contain it only with an escape. It returns all
// other characters unchanged.
func plainJSON(r rune) rune {
	if r < ' ' || r == '"' || r == '\\' {
		return '*'
	}
	return r
}

// Foreign handles text that already has the form of a token in a document. In a server's result, it replaces this
// text by a real token, because the server may have invented it, and nobody should mistake it for a token of this
// session. In text for the model, it replaces only the tokens of values that the model itself wrote, each by its
// value.
func (m *documentVault) Foreign(text string) (string, bool) {
	if m.border {
		return m.echoedValue(text)
	}
	typ, _, _ := strings.Cut(strings.TrimPrefix(text, "["), "]")
	typ = strings.ToLower(typ[:strings.LastIndexByte(typ, '_')])
	token, err := m.tokens.MintToken(vault.TokenEntry{Type: typ, Value: text, From: m.from})
	if err != nil {
		m.err = err
		return "", false
	}
	return token, true
}

// echoedValue returns the value of a token if the model wrote the value itself and so may see it again.
func (m *documentVault) echoedValue(token string) (string, bool) {
	e, ok := m.tokens.ResolveToken(token)
	if !ok || !slices.Contains(e.From, modelSource) || strings.ContainsAny(e.Value, "\"\\") ||
		strings.ContainsFunc(e.Value, func(r rune) bool { return r < ' ' }) {
		return "", false
	}
	return e.Value, true
}

// RedactIncoming replaces those personal values in a server's result that programs must not see, and returns the
// result. If it returns an error, personal data could not be hidden, and the result must not be used.
func (s *Session) RedactIncoming(server string, document []byte) ([]byte, error) {
	return s.RedactAndCount(server, document, nil)
}

// RedactAndCount works like RedactIncoming and also adds the number of personal values of each type to found. found
// may be nil.
func (s *Session) RedactAndCount(server string, document []byte, found *TypeCounts) ([]byte, error) {
	if err := s.tokens.RefreshTokens(); err != nil {
		return nil, err
	}
	m := &documentVault{Session: s, from: []string{server}, found: found}
	out := m.replaceValues(document)
	return out, m.err
}

// RedactOutgoing replaces the personal data in a document that is sent to the model, and returns the document. If it
// returns an error, personal data could not be hidden, and the document must not be shown.
func (s *Session) RedactOutgoing(document []byte) ([]byte, error) {
	m := &documentVault{Session: s, from: []string{programSource}, border: true}
	out := m.replaceValues(document)
	if m.err != nil {
		return nil, m.err
	}
	return s.redactBase64(out)
}

// redactBase64 replaces each run of Base64 that encodes personal data with one token.
func (s *Session) redactBase64(document []byte) ([]byte, error) {
	var out []byte
	from := 0
	m := &documentVault{Session: s, from: []string{programSource}, border: true}
	eachBase64(document, func(start, end int, plain []byte) bool {
		if !s.isPersonal(plain) {
			return false
		}
		token, ok := m.Mint(pii.FoundValue{Type: pii.Secret, Text: string(document[start:end])})
		if ok {
			out = append(append(out, document[from:start]...), token...)
			from = end
		}
		return true
	})
	if m.err != nil {
		return nil, m.err
	}
	if from == 0 {
		return document, nil
	}
	return append(out, document[from:]...), nil
}

// eachBase64 calls do for each run of Base64 in a document that encodes a text. do gets the range of the run and the
// decoded text. After a backslash, the first characters of a run may belong to an escape of JSON, such as \n or \u003d.
// So eachBase64 first tries the run without the escape. If do returns false, it tries the complete run, and the range
// then includes the backslash.
func eachBase64(document []byte, do func(start, end int, plain []byte) bool) {
	for start := 0; start < len(document); start++ {
		end := base64End(document, start)
		if end-start >= minBase64 {
			rest, from := start, start
			if before := document[:start]; (len(before)-len(bytes.TrimRight(before, `\`)))%2 == 1 {
				if rest, from = start+1, start-1; document[start] == 'u' {
					rest = start + 5
				}
			}
			if plain := decodeBase64(document[rest:end]); plain == nil || !do(rest, end, plain) {
				if plain = decodeBase64(document[start:end]); plain != nil && rest != start {
					do(from, end, plain)
				}
			}
		}
		start = max(end-1, start)
	}
}

const minBase64 = 8

// base64End returns the offset just after the run of Base64 characters that begins at i, including any equals signs at
// its end. It returns i if the character at i is not a Base64 character.
func base64End(document []byte, i int) int {
	for i < len(document) && isBase64(document[i]) && document[i] != '=' {
		i++
	}
	for i < len(document) && document[i] == '=' {
		i++
	}
	return i
}

func isBase64(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' || c == '+' || c == '/' || c == '-' || c == '_' || c == '='
}

// decodeBase64 returns the text that a run of Base64 encodes, or nil if the run does not encode valid UTF-8.
func decodeBase64(run []byte) []byte {
	letters := strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(string(run), "="))
	plain, err := base64.RawStdEncoding.DecodeString(letters)
	if err != nil || !utf8.Valid(plain) {
		return nil
	}
	return plain
}

// isPersonal reports whether a text contains personal data.
func (s *Session) isPersonal(text []byte) bool {
	counted := &countingVault{modes: s.screen.modes, found: map[string]int{}}
	s.screen.scanner.ReplaceValues(text, s.known, counted)
	return len(counted.found) > 0
}

// countingVault counts values and creates no tokens. It implements pii.TokenMinter.
type countingVault struct {
	modes map[pii.Type]HideMode
	found map[string]int
}

func (c *countingVault) Mint(v pii.FoundValue) (string, bool) {
	if c.modes[v.Type] != Off { // what is off is found too: nothing else is looked for in it
		c.found[strings.ToUpper(string(v.Type))]++
	}
	return "", false
}

func (c *countingVault) Foreign(string) (string, bool) { return "", false }

// RedactText returns a text for the model with its personal data replaced. If hiding fails, it returns the reason
// instead of the text.
func (s *Session) RedactText(text string) string {
	out, err := s.RedactOutgoing([]byte(text))
	if err != nil {
		return "(hidden: " + err.Error() + ")"
	}
	return string(out)
}

// IsPersonalKey reports whether a key of an object is personal. Such a key contains a known value or other personal
// data, or is a given name with a capital.
func (s *Session) IsPersonalKey(key string) bool {
	if s.RedactText(key) != key {
		return true
	}
	if key == "" || key[0] >= 'a' && key[0] <= 'z' || !isPlainWord(key) || s.screen.modes[pii.Name] == Off {
		return false
	}
	// the scanner takes a given name before a family name for a person's name
	for _, f := range s.screen.scanner.FindText(nil, []byte(key+" Zandstra")) {
		if f.Type == pii.Name && f.Start == 0 {
			return !isCommonWord(key)
		}
	}
	return false
}

// RedactProgram replaces personal data in a program's string literals by tokens, so that they equal the tokens in
// server results. It records that the model may see these values, because it wrote them.
func (s *Session) RedactProgram(code string) (string, error) {
	return s.redactSource(code, []string{modelSource})
}

// RedactSkill works like RedactProgram, but for the code of a skill. The current model did not write this code, so
// the values in it stay hidden from the model.
func (s *Session) RedactSkill(code string) (string, error) { return s.redactSource(code, nil) }

func (s *Session) redactSource(code string, from []string) (string, error) {
	var out strings.Builder
	at := 0
	for _, f := range s.screen.scanner.FindText(nil, []byte(code)) {
		if s.screen.modes[f.Type] != Sealed || f.Type == pii.Secret || !isQuoted(code, f.Start, f.End) {
			continue
		}
		token, err := s.tokens.MintToken(vault.TokenEntry{Type: string(f.Type), Value: code[f.Start:f.End], From: from})
		if err != nil {
			return "", err
		}
		out.WriteString(code[at:f.Start])
		out.WriteString(token)
		at = f.End
	}
	out.WriteString(code[at:])
	return out.String(), nil
}

// TokenIn returns the first token in a text, or "" if none is found. Data that outlives a session must not contain
// tokens, because a later session could use the same tokens for other values.
func (s *Redactor) TokenIn(text string) string {
	for _, f := range s.scanner.FindTokens(nil, []byte(text)) {
		return text[f.Start:f.End]
	}
	return ""
}

// isQuoted reports whether the part of a program from start to end lies inside a string literal that begins and ends
// on one line.
func isQuoted(code string, start, end int) bool {
	line := code[strings.LastIndexByte(code[:start], '\n')+1 : start]
	open := byte(0)
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\':
			i++
		case open == 0 && (c == '\'' || c == '"' || c == '`'):
			open = c
		case c == open:
			open = 0
		}
	}
	rest, _, _ := strings.Cut(code[end:], "\n")
	return open != 0 && strings.IndexByte(rest, open) >= 0
}

// SyncTokens saves new tokens to disk. It must succeed before any token is sent to the model.
func (s *Session) SyncTokens() error {
	if err := s.tokens.SyncFile(); err != nil {
		return core.Errorf(core.KindInternal, "pii.vault", "the tokens that hide personal data could not be saved: %w", err)
	}
	return nil
}

// BorderCrossing represents values of one type that are about to be sent to a server, and for which a person is asked.
// The values came from other servers, or they are inside a longer text that may be more than prose.
type BorderCrossing struct {
	Type pii.Type
	From []string
	// Inside is true for a value inside a longer text if it is not known what the server does with the text. Then From
	// is empty.
	Inside bool
}

// CrossingReason returns the sentence that explains to a person why sending the values to the server needs approval.
func CrossingReason(server string, crossings []BorderCrossing) string {
	var kinds []string
	for _, c := range crossings {
		if c.Inside {
			kinds = append(kinds, fmt.Sprintf("%s as a part of a longer text", c.Type))
			continue
		}
		kinds = append(kinds, fmt.Sprintf("%s from %s", c.Type, strings.Join(c.From, ", ")))
	}
	slices.Sort(kinds)
	return fmt.Sprintf("personal data is sent to %s: %s (servers.%s.pii.reveal)", server, strings.Join(slices.Compact(kinds), "; "), server)
}

// ErrUnknown is wrapped by the error for a token that does not exist in the session.
var ErrUnknown = errors.New("the token was not created in this session")
