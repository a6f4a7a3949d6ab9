package sanitize

import (
	"math/bits"
	"strings"
	"unicode/utf8"
)

// minShifted is the minimum number of letters of a word that is searched for in every shifted alphabet (Caesar
// cipher). Shorter words are searched for only in rot13.
const minShifted = 6

// letterCodes lists the ways in which words of the rules may be disguised in a text: in shifted alphabets, in the
// mirrored alphabet or backwards.
type letterCodes struct {
	shifts   uint32 // bit n is set for the alphabet shifted by n letters
	mirrored bool   // a is written as z, b as y, and so on
	reversed bool   // words are written backwards
}

func (c letterCodes) any() bool { return c.shifts != 0 || c.mirrored || c.reversed }

// addDisguises makes the scanner also notice a word in disguise: written backwards, in the mirrored alphabet or in a
// shifted alphabet. It is called for each word that a pattern requires.
func (s *TextScanner) addDisguises(word string) {
	if strings.Trim(word, "abcdefghijklmnopqrstuvwxyz") != "" {
		return
	}
	s.exact[word] = true
	rot13 := mapBytes(word, func(c byte) byte { return shiftLetter(c, 13) })
	for _, other := range []string{rot13, mapBytes(word, mirrorLetter), reverseText(word), reverseText(rot13)} {
		hash := uint32(fnvOffset)
		for i := range len(other) {
			hash = (hash ^ uint32(other[i])) * fnvPrime
		}
		s.addHint(hash)
	}
	if len(word) >= minShifted {
		s.shapes[shapeOf(word)] = word[0]
		s.addHint(shapeOf(word))
	}
}

func (s *TextScanner) addHint(hash uint32) { s.hints[hash>>6&(1<<12-1)] |= 1 << (hash & 63) }

func (s *TextScanner) hasHint(hash uint32) bool {
	return s.hints[hash>>6&(1<<12-1)]&(1<<(hash&63)) != 0
}

// shapeOf hashes the differences between the letters of a word, which are the same in every shifted alphabet.
func shapeOf(word string) uint32 {
	hash := uint32(fnvOffset)
	for i := 1; i < len(word); i++ {
		hash = (hash ^ letterStep(word[i-1]|0x20, word[i]|0x20)) * fnvPrime
	}
	return hash
}

// letterStep returns the number of letters from one lower-case letter forward to another in the alphabet, in which
// a follows z.
func letterStep(from, to byte) uint32 {
	step := int(to) - int(from)
	if step < 0 {
		step += 26
	}
	return uint32(step)
}

// findCodes returns the ways in which words of the rules may be disguised in a text, such as a shifted alphabet.
func (s *TextScanner) findCodes(text string) (c letterCodes) {
	for i := 0; i < len(text); {
		if !isLetter(text[i]) {
			i++
			continue
		}
		start := i
		for i < len(text) && isLetter(text[i]) {
			i++
		}
		s.addCodes(&c, text[start:i])
	}
	c.shifts &^= 1
	return c
}

func (s *TextScanner) addCodes(c *letterCodes, word string) {
	word = strings.ToLower(word)
	back := reverseText(word)
	rot13 := func(c byte) byte { return shiftLetter(c, 13) }
	c.reversed = c.reversed || s.exact[back]
	c.mirrored = c.mirrored || s.exact[mapBytes(word, mirrorLetter)]
	if s.exact[mapBytes(word, rot13)] || s.exact[mapBytes(back, rot13)] {
		c.shifts |= 1 << 13
	}
	if len(word) < minShifted {
		return
	}
	if first, ok := s.shapes[shapeOf(word)]; ok {
		c.shifts |= 1 << ((26 + int(first) - int(word[0])) % 26)
	}
}

func shiftLetter(c byte, by int) byte {
	switch {
	case 'a' <= c && c <= 'z':
		return 'a' + byte((int(c-'a')+by)%26)
	case 'A' <= c && c <= 'Z':
		return 'A' + byte((int(c-'A')+by)%26)
	}
	return c
}

func mirrorLetter(c byte) byte {
	switch {
	case 'a' <= c && c <= 'z':
		return 'z' - (c - 'a')
	case 'A' <= c && c <= 'Z':
		return 'Z' - (c - 'A')
	}
	return c
}

// findDisguised finds instructions that are written in a substituted alphabet or backwards. Letters that resemble
// Latin ones are read as these.
func (s *TextScanner) findDisguised(text string) (found []TextFinding) {
	plain, places := foldText(text)
	codes := s.findCodes(plain)
	if !codes.any() {
		return nil
	}
	add := func(list []TextFinding) {
		for _, f := range list {
			found = append(found, newFinding(encodedRule, places(f.Start), places(f.End)))
		}
	}
	readings := []string{plain}
	if codes.mirrored {
		readings = append(readings, mapBytes(plain, mirrorLetter))
	}
	for shifts := codes.shifts; shifts != 0; shifts &= shifts - 1 {
		by := bits.TrailingZeros32(shifts)
		readings = append(readings, mapBytes(plain, func(c byte) byte { return shiftLetter(c, by) }))
	}
	for i, reading := range readings {
		if i > 0 {
			add(s.findSentences(reading))
		}
		if i == 0 && codes.reversed || i > 0 && s.findCodes(reading).reversed {
			add(s.findBackwards(reading))
		}
	}
	return found
}

// findBackwards finds instructions in a text that is written backwards as a whole or word by word.
func (s *TextScanner) findBackwards(text string) []TextFinding {
	whole := reverseText(text)
	found := s.findSentences(whole)
	for i, f := range found {
		found[i].Start, found[i].End = len(text)-f.End, len(text)-f.Start
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		start := i
		for i < len(text) && isLetter(text[i]) {
			i++
		}
		b.WriteString(reverseText(text[start:i]))
		if i < len(text) {
			b.WriteByte(text[i])
			i++
		}
	}
	return append(found, s.findSentences(b.String())...)
}

func reverseText(text string) string {
	back := make([]byte, 0, len(text))
	for end := len(text); end > 0; {
		_, size := utf8.DecodeLastRuneInString(text[:end])
		back = append(back, text[end-size:end]...)
		end -= size
	}
	return string(back)
}

func mapBytes(text string, f func(byte) byte) string {
	other := []byte(text)
	for i, c := range other {
		other[i] = f(c)
	}
	return string(other)
}

// foldText returns text with lookalike letters replaced by Latin ones and without invisible characters. places
// converts offsets in the result to offsets in text.
func foldText(text string) (plain string, places func(int) int) {
	if !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return text, func(at int) int { return at }
	}
	var b strings.Builder
	var starts []int
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		part := text[i : i+size]
		switch f := foldLetter(r); {
		case f != 0:
			part = string(rune(f))
		case isInvisible(r):
			part = ""
		}
		b.WriteString(part)
		for j := range len(part) {
			starts = append(starts, i+min(j, size-1))
		}
		i += size
	}
	starts = append(starts, len(text))
	return b.String(), func(at int) int { return starts[at] }
}

// splitHumps calls f for each part of a word like ignorePreviousRules, with the offsets at which the part starts and
// ends. It returns false if the word has only one part.
func splitHumps(word string, f func(start, end int)) bool {
	start := 0
	for i := 1; i < len(word); i++ {
		lower := 'a' <= word[i-1] && word[i-1] <= 'z'
		before := 'A' <= word[i-1] && word[i-1] <= 'Z' && i+1 < len(word) && 'a' <= word[i+1] && word[i+1] <= 'z'
		if 'A' <= word[i] && word[i] <= 'Z' && (lower || before) {
			f(start, i)
			start = i
		}
	}
	if start > 0 {
		f(start, len(word))
	}
	return start > 0
}
