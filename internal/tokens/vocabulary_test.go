package tokens

import (
	"encoding/binary"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
	"github.com/tiktoken-go/tokenizer/codec"
)

var update = flag.Bool("update", false, "write o200k_base.table from the library that the tests compare with")

// TestVocabulary checks that the vocabulary file and every token in it agree with github.com/tiktoken-go/tokenizer,
// which contains the same vocabulary. With -update it writes the file.
func TestVocabulary(t *testing.T) {
	library := codec.NewO200kBase()
	var list []string
	for rank := range uint(vocabularySize) {
		token, err := library.Decode([]uint{rank})
		if err != nil {
			t.Fatal(rank, err)
		}
		list = append(list, token)
	}
	file := tableOf(list)
	if *update {
		if err := os.WriteFile("o200k_base.table", []byte(file), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if file != vocabularyFile {
		t.Error("o200k_base.table differs from the library's tokens; write it with -update")
	}
	read := newVocabulary(file)
	for rank, want := range list {
		if read.tokenOf(uint32(rank)) != want || read.rankOf(want) != uint32(rank) {
			t.Fatalf("token %d is %q, want %q", rank, read.tokenOf(uint32(rank)), want)
		}
	}
}

// tableOf returns a vocabulary file for tokens, which are given in the order of their ranks.
func tableOf(list []string) string {
	table := make([]uint32, hashSlots)
	for rank, token := range list {
		slot := slotOf(token)
		for table[slot] != 0 {
			slot = (slot + 1) % hashSlots
		}
		table[slot] = uint32(rank) + 1
	}
	var file []byte
	for _, rank := range table {
		file = binary.LittleEndian.AppendUint32(file, rank)
	}
	end := uint32(0)
	for _, token := range list {
		end += uint32(len(token))
		file = binary.LittleEndian.AppendUint32(file, end)
	}
	return string(file) + strings.Join(list, "")
}

// pattern is the regular expression with which o200k_base splits text. It is enclosed in a group, so that regexp2
// does not recognise it. For the expression without the group, regexp2 would use a matcher generated in advance,
// which splits "\n \n" into two pieces and omits "\x7f".
var pattern = regexp2.MustCompile(`(?:[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)`, regexp2.None)

// FuzzCount checks the pieces into which a text is split against the matches of pattern. It also checks the number of
// tokens in each piece against the result of the function merged.
func FuzzCount(f *testing.F) {
	for _, text := range []string{
		"", "hello world", "It's, they'RE; we'Ll 'd '5 'S", "don't'll", "\u017fx'\u017f it'\u017f",
		"CamelCaseHTTPServer v1.26.8 1234567890 ½²", "  two  spaces \n\n  \r\n\tand\u00a0\u2003tabs \u0085\u001c\u001f ",
		"東京タワー、Straße, ǅ, ʰʰ, naïve e\u0301A \u0301A \u0301a \u0301", "path/to//\n/x ///\r\n/", "{\"a\":[1,2,{\"b\":null}]}\n",
		"\n  \n", "🙂🙂‍🔥 مرحبا नमस्ते", "<|endoftext|>", strings.Repeat("ab", 300), strings.Repeat(" ", 200) + "x", strings.Repeat("=", 500), "\ufffd",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			if got := countTokens(text); (got == 0) != (text == "") || got > len(text) {
				t.Fatalf("%q has %d tokens", text, got)
			}
			return
		}
		match, err := pattern.FindStringMatch(text)
		for rest := text; rest != ""; match, err = pattern.FindNextMatch(match) {
			piece := rest[:firstMatch(rest)]
			if err != nil || match == nil || match.String() != piece {
				t.Fatalf("piece %q of %q, want %v (%v)", piece, text, match, err)
			}
			if got, want := o200k.countPiece(piece), merged(piece); got != want {
				t.Errorf("%q has %d tokens, want %d", piece, got, want)
			}
			rest = rest[len(piece):]
		}
	})
}

// merged returns the number of tokens of a piece. It applies the definition of byte pair encoding: as long as two
// neighbouring parts together are a token, the pair with the lowest rank is merged, the leftmost first.
func merged(piece string) int {
	var parts []string
	for i := range len(piece) {
		parts = append(parts, piece[i:i+1])
	}
	for {
		best, at := uint32(noRank), 0
		for i := range len(parts) - 1 {
			if rank := o200k.rankOf(parts[i] + parts[i+1]); rank < best {
				best, at = rank, i
			}
		}
		if best == noRank {
			return len(parts)
		}
		parts = slices.Replace(parts, at, at+2, parts[at]+parts[at+1])
	}
}

func BenchmarkCount(b *testing.B) {
	rows := strings.Repeat(`{"id":48213,"name":"Ana Pérez","email":"ana.perez@example.com","total":12.50}`+"\n", 1000)
	library := codec.NewO200kBase()
	for name, count := range map[string]func(string) int{"own": CountTokens, "library": func(s string) int {
		n := 0
		for _, part := range chunksOf(s) {
			k, _ := library.Count(part)
			n += k
		}
		return n
	}} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(rows)))
			for range b.N {
				count(rows)
			}
		})
	}
}
