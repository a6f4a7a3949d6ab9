package tokens

import (
	"iter"
	"sort"
	"strings"
	"unicode/utf8"
)

// chunkBytes is the number of bytes that are tokenized at once. It limits the time for a very long word. It also
// limits the time of PrefixWithin, which looks for the end of the prefix within one chunk. Texts are split at white
// space, which adds at most a fraction of a percent to their numbers of tokens.
const chunkBytes = 4 << 10

// CountTokens returns the number of tokens of text in the encoding o200k_base.
func CountTokens(text string) int {
	n := 0
	for _, part := range chunksOf(text) {
		n += countTokens(part)
	}
	return n
}

// FitsLimit reports whether text has at most limit tokens, and returns their number if it does. It stops counting as soon
// as the limit is exceeded.
func FitsLimit(text string, limit int) (tokens int, ok bool) {
	for _, part := range chunksOf(text) {
		if tokens += countTokens(part); tokens > limit {
			return tokens, false
		}
	}
	return tokens, true
}

// PrefixWithin returns the longest prefix of text that consists of at most limit tokens and does not end within a
// character.
func PrefixWithin(text string, limit int) string {
	used := 0
	for start, part := range chunksOf(text) {
		n := countTokens(part)
		if used+n <= limit {
			used += n
			continue
		}
		fits := sort.Search(len(part), func(i int) bool { return countTokens(part[:i+1]) > limit-used })
		for fits > 0 && !utf8.RuneStart(part[fits]) {
			fits--
		}
		return text[:start+fits]
	}
	return text
}

// EstimateTokens returns the approximate number of tokens of text. For texts of up to limit bytes the number is
// exact. For longer texts it is extrapolated from samples of limit bytes in total.
func EstimateTokens(text string, limit int) int {
	if len(text) <= limit {
		return CountTokens(text)
	}
	const samples = 8
	size, counted, tokens := limit/samples, 0, 0
	for i := range samples {
		start := i * (len(text) - size) / (samples - 1)
		tokens += countTokens(text[start : start+size])
		counted += size
	}
	return int(float64(tokens) * float64(len(text)) / float64(counted))
}

// chunksOf splits text into parts of about chunkBytes and yields each with its offset. It splits at white space if
// possible, otherwise between two characters.
func chunksOf(text string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for start := 0; start < len(text); {
			end := cutAtSpace(text, start)
			if !yield(start, text[start:end]) {
				return
			}
			start = end
		}
	}
}

func cutAtSpace(text string, start int) int {
	end := start + chunkBytes
	if end >= len(text) {
		return len(text)
	}
	if space := strings.LastIndexAny(text[start:end], " \n\t"); space > chunkBytes/2 {
		return start + space
	}
	for end > start+1 && !utf8.RuneStart(text[end]) {
		end--
	}
	return end
}

func countTokens(text string) int {
	tokens := 0
	for len(text) > 0 {
		n := firstMatch(text)
		tokens += o200k.countPiece(text[:n])
		text = text[n:]
	}
	return tokens
}
