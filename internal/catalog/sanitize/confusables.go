package sanitize

import "slices"

// confusables lists runs of characters that resemble Latin letters: accented, mathematical, circled, full-width,
// small or raised letters, and letters of other scripts. Each entry has the first character of a run and, for each
// character of the run, the letter that it resembles or "." for none. Signs that are usual in prose, such as "©", are
// left out.
var confusables = []struct {
	first   rune
	letters string
}{
	{0xa1, "i.l"},
	{0xc0, "aaaaa..ceeeeiiii.nooooo.ouuuuy.baaaaaa.ceeeeiiiidnooooo.ouuuuypyaaaaaaccccccccddddeeeeeeeeeegggggggghhhhiiiiiiiiii..jjkkkllllll..llnnnnnn...oooooo..rrrrrrssssssssttttttuuuuuuuuuuuuwwyyyzzzzzzsb"},
	{0x192, "f"},
	{0x199, "k"},
	{0x1a0, "oo...p"},
	{0x1af, "uu...y.z"},
	{0x1cd, "aaiioouuuuuuuuuueaaaa...gggkkoooo..j...gg..nnaa"},
	{0x200, "aaaaeeeeiiiioooorrrruuuusstt..hh"},
	{0x226, "aaeeooooooooyy"},
	{0x23c, "c"},
	{0x247, "e.j...r.yaa.bc..d.e.e...fggg..h..iiil...m..n.no..or"},
	{0x280, "r.s"},
	{0x287, "tt..vvwyyz"},
	{0x299, "b..h.kl"},
	{0x2b0, "h.jrr..wy"},
	{0x2e1, "lsx"},
	{0x395, "e..o..a"},
	{0x3b5, "e"},
	{0x3be, "e...s"},
	{0x3d0, "bo"},
	{0x3d6, "n"},
	{0x3f1, "pcjoe...e"},
	{0x404, "es"},
	{0x417, "en"},
	{0x42f, "r"},
	{0x437, "eu"},
	{0x44f, "r"},
	{0x454, "e"},
	{0x461, "w"},
	{0x474, "vv"},
	{0x4ae, "yy"},
	{0x4c0, "i"},
	{0x4cf, "l"},
	{0x501, "d"},
	{0x561, "w...tqt"},
	{0x570, "h"},
	{0x578, "n...nu.s.g..fo"},
	{0x13a0, "d.t..i"},
	{0x13aa, "aje"},
	{0x13b7, "m...h.yo.g..z"},
	{0x13cb, "e"},
	{0x13d2, "r.w"},
	{0x13d9, "vs...lc..p...k"},
	{0x13ec, "o"},
	{0x13f4, "b"},
	{0x1455, "c"},
	{0x15b4, "f"},
	{0x15c5, "a"},
	{0x15de, "d"},
	{0x15f4, "e..b"},
	{0x1d00, "a...cd.e..jk.m.o"},
	{0x1d18, "p..tu...vwz"},
	{0x1d2c, "a.b.de.ghijklmn.o.prtuwaaa.bdeee.g.km.oc..ptu.mv.b.d..iruvb"},
	{0x1d9c, "c.d.ffghiii"},
	{0x1dab, "l..n.noos"},
	{0x1db8, "uvvzz..o"},
	{0x1e00, "aabbbbbbccddddddddddeeeeeeeeeeffgghhhhhhhhhhiiiikkkkkkllllllllmmmmmmnnnnnnnnoooooooopppprrrrrrrrssssssssssttttttttuuuuuuuuuuvvvvwwwwwwwwwwxxxxyyzzzzzzhtwy.s"},
	{0x1ea0, "aaaaaaaaaaaaaaaaaaaaaaaaeeeeeeeeeeeeeeeeiiiioooooooooooooooooooooooouuuuuuuuuuuuuuyyyyyyyy"},
	{0x2071, "i"},
	{0x207f, "n"},
	{0x2090, "aeoxehklmnpst"},
	{0x20ac, "e"},
	{0x2102, "c"},
	{0x210a, "ghhhhhiill.n...pqrrr"},
	{0x2124, "z...z.kabceeef.mo"},
	{0x2139, "i..n"},
	{0x2145, "ddeij"},
	{0x2160, "i...v"},
	{0x2169, "x..lcdmi...v"},
	{0x2179, "x..lcdm"},
	{0x249c, "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"},
	{0x2c81, "a"},
	{0x2c89, "e"},
	{0x2c93, "i.k...m.n...o...p.c.t.y...x"},
	{0xa730, "fs"},
	{0xa7af, "q"},
	{0xa7f2, "cfq...h"},
	{0xab5e, "l"},
	{0xab69, "w"},
	{0xab72, "i..i"},
	{0xabaa, "s"},
	{0xff21, "abcdefghijklmnopqrstuvwxyz"},
	{0xff41, "abcdefghijklmnopqrstuvwxyz"},
	{0x1d400, "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefg.ijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyza.cd..g..jk..nopq.stuvwxyzabcd.f.hijklmn.pqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzab.defg..jklmnopq.stuvwxy.abcdefghijklmnopqrstuvwxyzab.defg.ijklm.o...stuvwxy.abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzi"},
	{0x1d6ac, "e..o..a"},
	{0x1d6b9, "oe"},
	{0x1d6c3, "b.de..o..l..e.n.so"},
	{0x1d6da, "w.eo...n"},
	{0x1d6e6, "e..o..a"},
	{0x1d6f3, "oe"},
	{0x1d6fd, "b.de..o..l..e.n.so"},
	{0x1d714, "w.eo...n"},
	{0x1d720, "e..o..a"},
	{0x1d72d, "oe"},
	{0x1d737, "b.de..o..l..e.n.so"},
	{0x1d74e, "w.eo...n"},
	{0x1d75a, "e..o..a"},
	{0x1d767, "oe"},
	{0x1d771, "b.de..o..l..e.n.so"},
	{0x1d788, "w.eo...n"},
	{0x1d794, "e..o..a"},
	{0x1d7a1, "oe"},
	{0x1d7ab, "b.de..o..l..e.n.so"},
	{0x1d7c2, "w.eo...n"},
	{0x1f110, "abcdefghijklmnopqrstuvwxyz.cr...abcdefghijklmnopqrstuvwxyz"},
	{0x1f150, "abcdefghijklmnopqrstuvwxyz"},
	{0x1f170, "abcdefghijklmnopqrstuvwxyz"},
	{0x1f1e6, "abcdefghijklmnopqrstuvwxyz"},
}

// resembles returns the lower-case Latin letter that a character resembles according to confusables, or 0.
func resembles(r rune) byte {
	i, exact := slices.BinarySearchFunc(confusables, r, func(run struct {
		first   rune
		letters string
	}, r rune) int {
		return int(run.first - r)
	})
	if !exact {
		i--
	}
	if i < 0 || int(r-confusables[i].first) >= len(confusables[i].letters) {
		return 0
	}
	if c := confusables[i].letters[r-confusables[i].first]; c != '.' {
		return c
	}
	return 0
}
