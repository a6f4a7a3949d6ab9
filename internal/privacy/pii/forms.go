package pii

import (
	"fmt"
	"iter"
	"unicode/utf8"
)

// KnownForms returns the forms in which a known value of a type is compared. Two spellings that a search takes for the
// same value have at least one form in common.
//   - The forms of a date of birth are the dates that it may mean.
//   - The forms of a number are its digits, and those of a phone number also its digits without the country code.
//   - The form of any other value is its words without blanks and marks, in lower case and without accents.
//
// A value without letters and digits has no form.
func KnownForms(t Type, value string) (forms []string) {
	text := plainValue(value)
	if t == DateOfBirth {
		dates, _ := datesIn(text)
		for _, d := range dates {
			if d != 0 {
				forms = append(forms, fmt.Sprintf("%d-%02d-%02d", d>>9, d>>5&15, d&31))
			}
		}
	}
	if IsNumberType(t) {
		forms = numberForms(t, text)
	}
	if len(forms) > 0 {
		return forms
	}
	var form []byte
	for _, u := range appendUnits(nil, text) {
		form = appendFoldedWord(form, text[u.start:u.end])
	}
	if len(form) == 0 {
		return nil
	}
	return []string{string(form)}
}

// piecesOf returns the pieces of a value. They have similar lengths and at most maxUnits units each.
func piecesOf(units []textUnit) iter.Seq[[]textUnit] {
	return func(yield func([]textUnit) bool) {
		pieces := (len(units) + maxUnits - 1) / maxUnits
		for i := range pieces {
			if !yield(units[i*len(units)/pieces : (i+1)*len(units)/pieces]) {
				return
			}
		}
	}
}

// KnownPieces returns the pieces of a value that a search finds one by one. Most values have one piece, and long values
// have several. The result is empty for a value without letters and digits.
func KnownPieces(value string) (pieces []string) {
	text := plainValue(value)
	for piece := range piecesOf(appendUnits(nil, text)) {
		pieces = append(pieces, string(text[piece[0].start:piece[len(piece)-1].end]))
	}
	return pieces
}

// plainValue returns a value without characters that are not displayed, and with ordinary letters and digits in place
// of their variants.
func plainValue(value string) []byte {
	text := []byte(value)
	if hasUnplain(text) {
		text = plainView(text).withoutUnplain().text
	}
	return text
}

// numberForms returns the digits of a number. For a phone number, it also returns the digits without the country code
// or without the 0 at the beginning. It returns nil if the text is not a number.
func numberForms(t Type, text []byte) []string {
	var room [mostDigits]byte
	digits := appendDigits(room[:0], text)
	if len(digits) == 0 {
		return nil
	}
	forms := []string{string(digits)}
	if t != Phone {
		return forms
	}
	rest := digits[1:]
	if digits[0] != '0' {
		rest = digits[codeLength(digits):]
	}
	if len(rest) >= leastDigits {
		forms = append(forms, string(rest))
	}
	return forms
}

// IsCommonWord reports whether a single word, in any letter case, does not identify anybody. This is a common word, a
// word that stands beside many names, for example "Mr" or "GmbH", or a word of fewer than four characters.
func IsCommonWord(word string) bool {
	w := []byte(word)
	return utf8.RuneCount(w) < 4 || isStopWord(w) || isCommonWord(w)
}
