package pii

import "strings"

// Checks of digits. Arguments are ASCII digits without separators, unless a
// check says otherwise.

func isLuhn(d []byte) bool {
	sum, double := 0, false
	for i := len(d) - 1; i >= 0; i-- {
		v := int(d[i] - '0')
		if double {
			if v *= 2; v > 9 {
				v -= 9
			}
		}
		sum, double = sum+v, !double
	}
	return sum%10 == 0
}

// weightedSum returns the sum of the digits multiplied by their weights.
func weightedSum(d []byte, weights ...int) (sum int) {
	for i, w := range weights {
		sum += w * int(d[i]-'0')
	}
	return sum
}

func parseNumber(d []byte) (n int) {
	for _, b := range d {
		n = n*10 + int(b-'0')
	}
	return n
}

func lastDigit(d []byte) int { return int(d[len(d)-1] - '0') }

// isUniform reports whether all bytes are equal. Numbers with one repeated digit are usually invented.
func isUniform(d []byte) bool {
	for _, b := range d {
		if b != d[0] {
			return false
		}
	}
	return true
}

// hasDifferentDigits validates numbers that have no checksum. It refuses one repeated digit, because such numbers are
// usually invented.
func hasDifferentDigits(d []byte) bool { return !isUniform(d) }

// travelDigit verifies the check digit of a travel document, which is the tenth character of its number (ICAO 9303).
func travelDigit(id []byte) bool {
	s := 0
	for i, b := range id[:9] {
		s += strings.IndexByte(base36Digits, b) * [3]int{7, 3, 1}[i%3]
	}
	return s%10 == int(id[9]-'0')
}

// mod97 returns the remainder modulo 97 that the checksum of an IBAN needs. It divides the number that consists of
// the digits of rest, followed by the characters of id. In this number a letter stands for two digits, from 10 for A
// to 35 for Z.
func mod97(id []byte, rest int) int {
	for _, b := range id {
		switch {
		case isDigitByte(b):
			rest = (rest*10 + int(b-'0')) % 97
		default:
			rest = (rest*100 + int(b|0x20-'a') + 10) % 97
		}
	}
	return rest
}

// isMod1110 verifies an ISO 7064 MOD 11,10 checksum.
func isMod1110(d []byte) bool {
	p := 10
	for _, b := range d[:len(d)-1] {
		s := (p + int(b-'0')) % 10
		if s == 0 {
			s = 10
		}
		p = s * 2 % 11
	}
	return (11-p)%10 == lastDigit(d)
}

var (
	verhoeffD = [10]string{
		"0123456789", "1234067895", "2340178956", "3401289567", "4012395678", "5987604321", "6598710432", "7659821043",
		"8765932104", "9876543210",
	}
	verhoeffP = [8]string{"0123456789", "1576283094", "5803796142", "8916043527", "9453126870", "4286573901", "2793806415", "7046913258"}
)

func isVerhoeff(d []byte) bool {
	c := byte('0')
	for i := range d {
		c = verhoeffD[c-'0'][verhoeffP[i%8][d[len(d)-1-i]-'0']-'0']
	}
	return c == '0'
}

// isDate reports whether a day can occur in a month, whatever the year. Therefore it always accepts 29 February.
func isDate(month, day int) bool {
	return month >= 1 && month <= 12 && day >= 1 && day <= 31 &&
		(day < 31 || month != 2 && month != 4 && month != 6 && month != 9 && month != 11) &&
		(day < 30 || month != 2)
}

func isYear(y int) bool { return y >= 1900 && y <= 2035 }

// isYYMMDD reports whether six digits are a year, a month and a day, in this order. Any two digits can be the year.
// isDDMMYY does the same for the order day, month, year.
func isYYMMDD(d []byte) bool { return isDate(parseNumber(d[2:4]), parseNumber(d[4:6])) }
func isDDMMYY(d []byte) bool { return isDate(parseNumber(d[2:4]), parseNumber(d[:2])) }

func isYYYYMMDD(d []byte) bool { return isYear(parseNumber(d[:4])) && isYYMMDD(d[2:8]) }

// cardIssuers lists the prefixes of payment card numbers by issuer. Each byte of lengths is one allowed length of the
// whole number.
var cardIssuers = []struct {
	low, high, digits int // of the prefix
	lengths           string
}{
	{4, 4, 1, "\x10\x13\x0d"},                        // Visa
	{51, 55, 2, "\x10"},                              // Mastercard
	{2221, 2720, 4, "\x10"},                          // Mastercard
	{34, 34, 2, "\x0f"},                              // American Express
	{37, 37, 2, "\x0f"},                              // American Express
	{300, 305, 3, "\x0e\x10"},                        // Diners Club
	{3095, 3095, 4, "\x0e\x10"},                      // Diners Club
	{36, 36, 2, "\x0e\x10"},                          // Diners Club
	{38, 39, 2, "\x0e\x10"},                          // Diners Club
	{6011, 6011, 4, "\x10\x13"},                      // Discover
	{644, 659, 3, "\x10\x13"},                        // Discover
	{622126, 622925, 6, "\x10\x11\x12\x13"},          // Discover, UnionPay
	{62, 62, 2, "\x0e\x0f\x10\x11\x12\x13"},          // UnionPay
	{1800, 1800, 4, "\x0f"}, {2131, 2131, 4, "\x0f"}, // JCB
	{
		3528, 3589, 4, "\x10\x11\x12\x13",
	}, // JCB
	{
		2200, 2204, 4, "\x10\x11\x12\x13",
	}, // Mir
	{
		50, 50, 2, "\x10\x13",
	}, // Maestro, RuPay, Elo
	{
		56, 58, 2, "\x10\x12\x13",
	}, // Maestro
	{5018, 5018, 4, "\x0c\x0d\x0e\x0f\x10\x11\x12\x13"}, {5020, 5020, 4, "\x0c\x0d\x0e\x0f\x10\x11\x12\x13"},
	{5038, 5038, 4, "\x0c\x0d\x0e\x0f\x10\x11\x12\x13"}, // Maestro
	{6304, 6304, 4, "\x10\x12\x13"},                     // Maestro
	{6759, 6763, 4, "\x10\x12\x13"},                     // Maestro
	{60, 60, 2, "\x10"},                                 // RuPay
	{81, 82, 2, "\x10"},                                 // RuPay
	{9792, 9792, 4, "\x10"},                             // Troy
}

// isCard reports whether digits form a payment card number, judged by their prefix, how many they are, and their
// checksum.
func isCard(d []byte) bool {
	if len(d) < 12 || len(d) > 19 || isUniform(d) {
		return false
	}
	for _, i := range cardIssuers {
		if p := parseNumber(d[:i.digits]); p < i.low || p > i.high {
			continue
		}
		for _, n := range []byte(i.lengths) {
			if int(n) == len(d) {
				return isLuhn(d)
			}
		}
	}
	return false
}
