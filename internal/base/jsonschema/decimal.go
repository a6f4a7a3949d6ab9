package jsonschema

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// exactDecimal represents the number digits × 10^exp exactly. The digits neither begin nor end with 0. The number zero
// has no digits.
type exactDecimal struct {
	negative bool
	digits   string
	exp      int64
}

// maxExp bounds the exponents of numbers. A larger exponent is replaced by maxExp, and a smaller one than -maxExp by
// -maxExp.
const maxExp = math.MaxInt32

func numberText(v any) (string, bool) {
	switch v := v.(type) {
	case json.Number:
		return string(v), true
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), true
	}
	return "", false
}

// parseDecimal parses the text of a JSON number.
func parseDecimal(s string) exactDecimal {
	var d exactDecimal
	s, d.negative = strings.CutPrefix(s, "-")
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		d.exp = parseExponent(s[i+1:])
		s = s[:i]
	}
	if whole, fraction, ok := strings.Cut(s, "."); ok {
		s = whole + fraction
		d.exp -= int64(len(fraction))
	}
	trimmed := strings.TrimRight(s, "0")
	d.exp += int64(len(s) - len(trimmed))
	d.digits = strings.TrimLeft(trimmed, "0")
	if d.digits == "" {
		return exactDecimal{}
	}
	return d
}

func parseExponent(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil && strings.HasPrefix(s, "-") {
		return -maxExp
	} else if err != nil {
		return maxExp
	}
	return min(max(n, -maxExp), maxExp)
}

func (d exactDecimal) isInteger() bool { return d.digits == "" || d.exp >= 0 }

// compareTo returns -1 if d is less than o, 0 if they are equal, and 1 otherwise.
func (d exactDecimal) compareTo(o exactDecimal) int {
	switch a, b := d.signOf(), o.signOf(); {
	case a < b:
		return -1
	case a > b:
		return 1
	case a < 0:
		return o.compareMagnitude(d)
	}
	return d.compareMagnitude(o)
}

func (d exactDecimal) signOf() int {
	switch {
	case d.digits == "":
		return 0
	case d.negative:
		return -1
	}
	return 1
}

func (d exactDecimal) compareMagnitude(o exactDecimal) int {
	switch a, b := int64(len(d.digits))+d.exp, int64(len(o.digits))+o.exp; {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return strings.Compare(d.digits, o.digits) // a prefix of the other is less
}

// maxDigits bounds the digits of numbers that are divided. The time of a division grows with the square of the number
// of digits.
const maxDigits = 2_000

// multipleOf reports whether d is an integer multiple of o.
func (d exactDecimal) multipleOf(o exactDecimal) bool {
	switch {
	case d.digits == "" || o.digits == "":
		return true
	case d.exp < o.exp:
		return false // no digits at the end of d are 0
	case len(d.digits) > maxDigits || len(o.digits) > maxDigits:
		return true
	}
	if o.digits == "1" {
		return true
	}
	a, _ := new(big.Int).SetString(d.digits, 10)
	b, _ := new(big.Int).SetString(o.digits, 10)
	if a == nil || b == nil {
		return true
	}
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(d.exp-o.exp), b)
	return a.Mul(a, scale).Mod(a, b).Sign() == 0
}

// isInteger reports whether v is an integer. 1.0 and 1e3 are also integers.
func isInteger(v any) bool {
	s, ok := numberText(v)
	if !ok {
		return false
	}
	if !strings.ContainsAny(s, ".eE") {
		return true
	}
	return parseDecimal(s).isInteger()
}
