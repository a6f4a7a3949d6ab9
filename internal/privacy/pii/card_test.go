package pii

import (
	"strings"
	"testing"
)

// TestNamedCards checks that a number after a word or key such as "card" is hidden even if its checksum is wrong.
// Without such a word or key, the same number must not be hidden.
func TestNamedCards(t *testing.T) {
	s := New(Options{})
	for document, want := range map[string]bool{
		`card 1234-5678-9012-3456`:                         true,
		`Card: 1234 5678 9012 3456`:                        true,
		`her card number is 1234567890123456, exp 12/29`:   true,
		`visa 4111 1111 1111 1112 expires soon`:            true,
		`card 1234.5678.9012.3456`:                         true,
		`card 3782 822463 10006`:                           true,
		`{"card":"1234-5678-9012-3456"}`:                   true,
		`{"card":"1234567890123456"}`:                      true,
		`{"card":1234567890123456}`:                        true,
		`{"cards":["1234-5678-9012-3456"]}`:                true,
		`{"payment":{"cardNo":"1234 5678 9012 3456"}}`:     true,
		`{"pan":"1234567890123456"}`:                       true,
		`{"note":"card 1234-5678-9012-3456 was declined"}`: true,
		`order 1234-5678-9012-3456`:                        false,
		`{"tracking":"1234-5678-9012-3456"}`:               false,
		`card updated at 1700000000000`:                    false,
		`{"card":"Visa"}`:                                  false,
		`{"card":{"title":"To do","id":12}}`:               false,
		`card 12-34`:                                       false,
		`the card of 2024-05-06 10:11:12`:                  false,
	} {
		hidden := string(s.ReplaceValues([]byte(document), &KnownValues{}, newTokens()))
		if found := strings.Contains(hidden, "[CREDIT_CARD_9000]"); found != want {
			t.Errorf("%s: a card is found: %v, want %v: %s", document, found, want, hidden)
		}
	}
}
