package redact

import (
	"errors"
	"hash/maphash"
	"math"
	"slices"
	"strings"
	"sync"

	"retort/internal/core"
	"retort/internal/privacy/pii"
	"retort/internal/privacy/vault"
)

// ErrProbing is wrapped by the error for a comparison of tokens that is refused because it could reveal a token's
// value.
var ErrProbing = errors.New("more comparisons could reveal its value")

// Bounds on how many bits of a value comparisons may reveal to a principal. The rank of a value among n others
// reveals log2(n) bits of the value. A program could therefore find a value letter by letter if it could compare the
// value's token with texts of its choice. To prevent that, a token is compared only with tokens of the same type
// whose values servers have sent, and only up to these bounds.
const (
	textBits   = 24.0     // about two lists of some thousand values each
	numberBits = 14.0     // of values that have few bits, such as phone numbers, cards and dates: one list of 16,384
	equalBits  = 1.0 / 16 // what a comparison for equality is counted as
)

const (
	maxCompared   = 1 << 17 // values that a principal has compared
	maxPrincipals = 1 << 12 // principals with recorded comparisons
	recentSets    = 4       // sets that a value is remembered to have been sorted in
)

// comparisonBudget counts how many bits of each value comparisons have revealed to each principal. It counts by value
// and not by token, because a new session has new tokens for the same values. The counts are kept as long as the
// Redactor exists. A comparisonBudget is safe for concurrent use.
type comparisonBudget struct {
	mu         sync.Mutex
	principals map[string]map[valueKey]*comparedValue
	sets       uint32
	seed       maphash.Seed
}

// valueKey is a key under which facts about a value are stored without storing the value itself.
type valueKey struct {
	typ  string
	hash uint64
}

func (c *comparisonBudget) keyOf(e vault.TokenEntry) valueKey {
	return valueKey{e.Type, maphash.String(c.seed, strings.ToLower(e.Value))}
}

// comparedValue records how many bits of one value comparisons have revealed so far, and in which of the latest sorts
// the value took part.
type comparedValue struct {
	bits float64
	sets [recentSets]uint32 // ids of the latest sorts that included it; 0 is unused
}

// chargeSort charges a principal for sorting values. It returns an error if the budget is not enough. Sorting the
// same values together again is free, because it reveals nothing new.
func (c *comparisonBudget) chargeSort(principal string, values []valueKey) *core.Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, refused := c.comparedBy(principal, len(values))
	if refused != nil || sortedTogether(known, values) {
		return refused
	}
	cost := math.Log2(float64(len(values)))
	if refused := checkBudget(known, values, cost); refused != nil {
		return refused
	}
	c.sets++
	for _, t := range values {
		k := entryOf(known, t)
		k.bits += cost
		copy(k.sets[1:], k.sets[:])
		k.sets[0] = c.sets
	}
	return nil
}

// chargeEquality charges a principal for comparing two values for equality. It returns an error if the budget is not
// enough.
func (c *comparisonBudget) chargeEquality(principal string, values []valueKey) *core.Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, refused := c.comparedBy(principal, len(values))
	if refused != nil {
		return refused
	}
	if refused := checkBudget(known, values, equalBits); refused != nil {
		return refused
	}
	for _, t := range values {
		entryOf(known, t).bits += equalBits
	}
	return nil
}

// comparedBy returns the records of the values that the principal has compared so far. It returns an error if too
// many principals have compared values, or if a comparison of n further values would exceed maxCompared.
func (c *comparisonBudget) comparedBy(principal string, n int) (map[valueKey]*comparedValue, *core.Error) {
	known, ok := c.principals[principal]
	if !ok {
		if len(c.principals) >= maxPrincipals {
			return nil, core.Errorf(core.KindLimit, "pii.compare", "more than %d users compared tokens since Retort was started", maxPrincipals).
				WithHint("let the server sort or filter")
		}
		known = map[valueKey]*comparedValue{}
		c.principals[principal] = known
	}
	if len(known)+n > maxCompared {
		return nil, core.Errorf(core.KindLimit, "pii.compare", "more than %d tokens were compared since Retort was started", maxCompared).
			WithHint("let the server sort or filter")
	}
	return known, nil
}

func entryOf(known map[valueKey]*comparedValue, t valueKey) *comparedValue {
	k, ok := known[t]
	if !ok {
		k = &comparedValue{}
		known[t] = k
	}
	return k
}

// sortedTogether reports whether a single earlier sort included all of the given values.
func sortedTogether(known map[valueKey]*comparedValue, values []valueKey) bool {
	first, ok := known[values[0]]
	if !ok {
		return false
	}
	for _, set := range first.sets {
		all := set != 0 && !slices.ContainsFunc(values, func(t valueKey) bool {
			k, ok := known[t]
			return !ok || !slices.Contains(k.sets[:], set)
		})
		if all {
			return true
		}
	}
	return false
}

// checkBudget returns an error if a comparison reveals more bits than may still be revealed about any of the compared
// values. The argument cost is the number of bits that the comparison reveals.
func checkBudget(known map[valueKey]*comparedValue, values []valueKey, cost float64) *core.Error {
	for _, v := range values {
		spent := 0.0
		if k, ok := known[v]; ok {
			spent = k.bits
		}
		if spent+cost > bitBudget(v.typ) {
			return core.Errorf(
				core.KindPolicy, "pii.compare",
				"the comparison was refused: this token of type %s was compared with too many different values: %w", v.typ,
				ErrProbing,
			).
				WithHint("let the server sort or filter, or sort the whole list once and reuse the result")
		}
	}
	return nil
}

// bitBudget returns how many bits comparisons may reveal about a value of this type.
func bitBudget(typ string) float64 {
	switch pii.Type(typ) {
	case pii.Email, pii.Name, pii.Company, pii.Address:
		return textBits
	}
	return numberBits
}

// EqualValues reports whether two tokens stand for the same value, ignoring case, blanks and the characters - ( ) and /.
// Two texts that are not tokens are compared in the same way. Comparing a token with another text is an error.
func (s *Session) EqualValues(a, b string) (bool, *core.Error) {
	x, isToken, err := s.resolveEntry(a)
	if err != nil {
		return false, err
	}
	y, both, err := s.resolveEntry(b)
	switch {
	case err != nil:
		return false, err
	case isToken != both:
		return false, noTexts("pii.equals")
	case !isToken:
		return plainText(a) == plainText(b), nil
	case x.Type != y.Type || x.Number == y.Number:
		return x.Type == y.Type, nil
	}
	if err := s.screen.compared.chargeEquality(s.principalName(), []valueKey{
		s.screen.compared.keyOf(x), s.screen.compared.keyOf(y),
	}); err != nil {
		return false, err
	}
	return isSameValue(x, y), nil
}

func noTexts(op string) *core.Error {
	return core.Errorf(core.KindInvalidArguments, op, "a token can be compared only with another token").
		WithHint("compare values that servers have sent; let the server filter by text")
}

// principalName returns the name of the principal who owns the session, cut from the session's name (see
// SessionName).
func (s *Session) principalName() string {
	principal, _, _ := strings.Cut(s.name, "\x00")
	return principal
}

// resolveEntry looks up the vault entry of a token. isToken is false if the text is not a token. It returns an error
// for a token that does not exist in this session.
func (s *Session) resolveEntry(text string) (e vault.TokenEntry, isToken bool, refused *core.Error) {
	found := s.screen.scanner.FindTokens(nil, []byte(text))
	if len(found) != 1 || found[0].End-found[0].Start != len(text) {
		return vault.TokenEntry{}, false, nil
	}
	e, ok := s.tokens.ResolveToken(text)
	if !ok {
		return e, true, core.Errorf(core.KindInvalidArguments, "pii", "%s cannot be used in this session: %w", text, ErrUnknown)
	}
	return e, true, nil
}

// RankValues returns each token's rank in the order of the values, beginning at 0. Equal values have the same rank.
// Missing values, such as "" and "undefined", come last. If no text is a token, the texts themselves are ranked.
func (s *Session) RankValues(tokens []string) ([]int, *core.Error) {
	values, entries, err := s.comparedValues(tokens)
	if err != nil {
		return nil, err
	}
	if refused := s.checkSortable(entries); refused != nil {
		return nil, refused
	}
	present := slices.DeleteFunc(slices.Clone(values), func(v *string) bool { return v == nil })
	sorted := make([]string, len(present))
	for i, v := range present {
		sorted[i] = *v
	}
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	ranks := make([]int, len(values))
	for i, v := range values {
		if ranks[i] = len(sorted); v != nil {
			ranks[i], _ = slices.BinarySearch(sorted, *v)
		}
	}
	return ranks, nil
}

// comparedValues returns the value behind each token, in lower case, or nil if the value is missing. It also returns
// the vault entries of all distinct values. It returns an error if tokens and plain texts are mixed.
func (s *Session) comparedValues(tokens []string) ([]*string, []vault.TokenEntry, *core.Error) {
	values := make([]*string, len(tokens))
	entries := map[valueKey]vault.TokenEntry{} // equal values count once
	texts := false
	for i, token := range tokens {
		if isMissing(token) {
			continue
		}
		e, isToken, err := s.resolveEntry(token)
		if err != nil {
			return nil, nil, err
		}
		value := strings.ToLower(token)
		if isToken {
			entries[s.screen.compared.keyOf(e)] = e
			value = strings.ToLower(e.Value)
		}
		texts = texts || !isToken
		values[i] = &value
	}
	if texts && len(entries) > 0 {
		return nil, nil, noTexts("pii.sortBy")
	}
	list := make([]vault.TokenEntry, 0, len(entries))
	for _, e := range entries {
		list = append(list, e)
	}
	return values, list, nil
}

// isMissing reports whether a text is a common spelling of a missing value, such as "" or "undefined".
func isMissing(text string) bool {
	return text == "" || text == "undefined" || text == "null" || text == "None"
}

// checkSortable charges the principal for sorting the values. It returns an error if they have different types, if a
// value was not sent by any server, or if the comparison budget of a value is spent.
func (s *Session) checkSortable(entries []vault.TokenEntry) *core.Error {
	if len(entries) < 2 {
		return nil
	}
	keys := make([]valueKey, len(entries))
	for i, e := range entries {
		if e.Type != entries[0].Type {
			return core.Errorf(
				core.KindInvalidArguments, "pii.sortBy", "tokens of different types cannot be sorted together: %s and %s",
				entries[0].Type, e.Type,
			)
		}
		sent := slices.ContainsFunc(e.From, func(from string) bool { return from != programSource && from != modelSource })
		if !sent {
			return core.Errorf(
				core.KindPolicy, "pii.sortBy", "one of the values was written by the program, not sent by a server: %w",
				ErrProbing,
			).
				WithHint("sort values that servers have sent")
		}
		keys[i] = s.screen.compared.keyOf(e)
	}
	return s.screen.compared.chargeSort(s.principalName(), keys)
}
