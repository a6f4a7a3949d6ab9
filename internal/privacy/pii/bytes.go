package pii

import (
	"encoding/binary"
	"math/bits"
)

// Each class of bytes has one bit, so that a byte can have several classes. Non-ASCII bytes count as letters, except
// the first bytes of those UTF-8 blocks that contain punctuation.
const (
	isDigit = 1 << iota
	isUpper
	isLower
	isHigh    // beyond ASCII
	isLocal   // may stand in the local part of an e-mail address
	isHex     // of either case
	isTrigger // begins or marks something by itself
	isSpace

	isLetter = isUpper | isLower | isHigh
	isAlnum  = isLetter | isDigit
)

var class = byteClasses()

func byteClasses() (c [256]uint8) {
	for b := range 256 {
		switch {
		case b >= '0' && b <= '9':
			c[b] = isDigit | isLocal | isHex
		case b >= 'A' && b <= 'Z':
			c[b] = isUpper | isLocal
		case b >= 'a' && b <= 'z':
			c[b] = isLower | isLocal
		case b >= 0x80 && b != 0xC2 && b != 0xE2 && b != 0xEF:
			c[b] = isHigh | isLocal
		}
	}
	for _, b := range "abcdefABCDEF" {
		c[b] |= isHex
	}
	for _, b := range "._%+-'" {
		c[b] |= isLocal
	}
	for _, b := range []byte("@:+([-\xC2\xE2\xEF") {
		c[b] |= isTrigger
	}
	for _, b := range " \t\r\n" {
		c[b] |= isSpace
	}
	return c
}

func isDigitByte(b byte) bool { return b-'0' < 10 }
func isAlnumByte(b byte) bool { return class[b]&isAlnum != 0 }

// byteAt returns the byte at i, or 0 if i is outside the text.
func byteAt(text []byte, i int) byte {
	if uint(i) < uint(len(text)) {
		return text[i]
	}
	return 0
}

// wordHash returns a case-insensitive hash of the word's first eight bytes and its length.
func wordHash(text []byte, start, end int) uint64 {
	if start+8 <= len(text) {
		return hashOf(binary.LittleEndian.Uint64(text[start:]), end-start)
	}
	return hashOf(tailBytes(text, start), end-start)
}

// hashOf computes wordHash for a word of n bytes, whose first eight bytes are in x in little-endian order.
func hashOf(x uint64, n int) uint64 {
	if n < 8 {
		x &= 1<<(8*uint(n)) - 1
	}
	return ((x | 0x2020202020202020) ^ uint64(n)) * 0x9E3779B97F4A7C15
}

// tailBytes returns the bytes from i to the end of the text in little-endian order. The text must have fewer than
// eight bytes left.
func tailBytes(text []byte, i int) (x uint64) {
	for j := len(text) - 1; j >= i; j-- {
		x = x<<8 | uint64(text[j])
	}
	return x
}

// asciiWord returns the number of ASCII letters and digits at the beginning of x, which holds eight bytes in
// little-endian order. It also returns the union of the classes of these bytes.
func asciiWord(x uint64) (n int, sort uint8) {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	y := x | 0x20*ones
	letters := (y + (0x80-'a')*ones) &^ (y + (0x80-'z'-1)*ones)
	digits := (x + (0x80-'0')*ones) &^ (x + (0x80-'9'-1)*ones)
	n = bits.TrailingZeros64((^(letters|digits)|x)&highs) / 8
	among := uint64(highs)
	if n < 8 {
		among &= 1<<(8*uint(n)) - 1
	}
	letters, digits = letters&among, digits&among
	if digits != 0 {
		sort = isDigit
	}
	if letters&(x<<2) != 0 {
		sort |= isLower
	}
	if letters&^(x<<2) != 0 {
		sort |= isUpper
	}
	return n, sort
}

// equalFold compares without regard to the case of ASCII and Latin-1 letters. lower must be in lower case.
func equalFold(text []byte, lower string) bool {
	if len(text) != len(lower) {
		return false
	}
	for i, b := range text {
		if b != lower[i] && !(b-'A' < 26 && b|0x20 == lower[i]) && !(i > 0 && text[i-1] == 0xC3 && b >= 0x80 && b < 0x9F && b|0x20 == lower[i]) {
			return false
		}
	}
	return true
}

// spanEnd returns the end of the run of bytes of the given class that begins at i.
func spanEnd(text []byte, i int, c uint8) int {
	for i < len(text) && class[text[i]]&c != 0 {
		i++
	}
	return i
}

// blanksEnd returns the offset after the spaces and tabs at i. It skips at most n of them.
func blanksEnd(text []byte, i, n int) int {
	for ; n > 0 && i < len(text) && (text[i] == ' ' || text[i] == '\t'); n-- {
		i++
	}
	return i
}

// foldCase converts s to the lower case that all word lists use. It changes only ASCII and Latin-1 letters.
func foldCase(s string) string {
	var room [64]byte
	return string(appendFolded(room[:0], []byte(s)))
}

// appendFolded appends the foldCase form of s to dst, which must be empty.
func appendFolded(dst, s []byte) []byte {
	b := append(dst, s...)
	for i, c := range b {
		switch {
		case c-'A' < 26:
			b[i] = c | 0x20
		case i > 0 && b[i-1] == 0xC3 && c >= 0x80 && c < 0x9F:
			b[i] = c | 0x20
		}
	}
	return b
}
