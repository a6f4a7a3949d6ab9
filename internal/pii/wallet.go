package pii

import (
	"crypto/sha256"
	"strings"
)

// wallet looks at a long word for an address of a crypto currency.
func (sc *scan) wallet(w word) int {
	id := sc.text[w.start:w.end]
	if at(sc.text, w.start-1) == '/' && len(id) != 42 || at(sc.text, w.end) == '_' || at(sc.text, w.start-1) == '_' {
		return 0
	}
	ok := false
	switch n := len(id); {
	case id[0] == '0' && id[1] == 'x':
		ok = n == 42 && hex(id[2:]) && !same(id[3:])
	case n <= 35 && strings.IndexByte("123LMDTr9A", id[0]) >= 0:
		ok = base58check(id)
	case n <= 110 && (id[0] == 'b' && id[1] == 'c' && id[2] == '1' || id[0] == 'l' && id[1] == 't' && id[2] == 'c' || string(id[:5]) == "addr1"):
		ok = bech32(id)
	case n == 95 && (id[0] == '4' || id[0] == '8'): // Monero: its checksum needs Keccak
		ok = base58(id)
	case n >= 32 && n <= 44:
		ok = base58(id) && sc.vouched(w.start)&sc.voc.wallet != 0 // Solana has no checksum
	}
	if !ok {
		return 0
	}
	return sc.found(w.start, w.end, Wallet)
}

const (
	bitcoin58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
	ripple58  = "rpshnaf39wBUDNEGHJKLM4PQRST7VWXYZ2bcdeCg65jkm8oFqi1tuvAxyz"
)

func base58(id []byte) bool {
	for _, b := range id {
		if strings.IndexByte(bitcoin58, b) < 0 {
			return false
		}
	}
	return true
}

// base58check: 21 bytes and the first four of the hash of their hash.
func base58check(id []byte) bool {
	alphabet := bitcoin58
	if id[0] == 'r' {
		alphabet = ripple58
	}
	var raw [25]byte
	for _, b := range id {
		carry := strings.IndexByte(alphabet, b)
		if carry < 0 {
			return false
		}
		for i := len(raw) - 1; i >= 0; i-- {
			carry += 58 * int(raw[i])
			raw[i], carry = byte(carry), carry>>8
		}
		if carry != 0 {
			return false
		}
	}
	once := sha256.Sum256(raw[:21])
	twice := sha256.Sum256(once[:])
	return [4]byte(twice[:4]) == [4]byte(raw[21:])
}

// bech32 checks BIP 173 and BIP 350.
func bech32(id []byte) bool {
	const charset = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
	s := strings.ToLower(string(id))
	one := strings.LastIndexByte(s, '1')
	if one < 1 || len(s)-one < 7 {
		return false
	}
	sum := uint32(1)
	step := func(v byte) {
		top := sum >> 25
		sum = sum&0x1ffffff<<5 ^ uint32(v)
		for i, g := range [5]uint32{0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3} {
			if top>>i&1 == 1 {
				sum ^= g
			}
		}
	}
	for i := range one {
		step(s[i] >> 5)
	}
	step(0)
	for i := range one {
		step(s[i] & 31)
	}
	for i := one + 1; i < len(s); i++ {
		v := strings.IndexByte(charset, s[i])
		if v < 0 {
			return false
		}
		step(byte(v))
	}
	return sum == 1 || sum == 0x2bc830a3
}
