package pii

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base32"
	"strings"
)

// findWallet finds a cryptocurrency address that consists of the word w.
func (sc *textScan) findWallet(w textWord) int {
	id := sc.text[w.start:w.end]
	if byteAt(sc.text, w.start-1) == '/' && len(id) != 42 || byteAt(sc.text, w.end) == '_' || byteAt(sc.text, w.start-1) == '_' {
		return 0
	}
	ok := false
	switch n := len(id); {
	case id[0] == '0' && id[1] == 'x':
		ok = n == 42 && isHexText(id[2:]) && !isUniform(id[3:])
	case n >= 26 && n <= 35 && w.sort&isUpper != 0 && isBase58(id) && isBase58Check(id):
		ok = true
	case bech32Prefix(id):
		ok = isBech32(id)
	case n == 42 && (id[0] == 'q' || id[0] == 'p'):
		ok = isCashAddr(id)
	case n == 56 && id[0] == 'G':
		ok = isStellar(id)
	case n == 58 && w.sort&isLower == 0:
		ok = isAlgorand(id)
	case (n == 95 || n == 106) && (id[0] == '4' || id[0] == '8'): // Monero: its checksum needs Keccak
		ok = isBase58(id)
	case n == 59 && string(id[:10]) == "Ae2tdPwUPE", n == 104 && string(id[:10]) == "DdzFFzCqrh": // Cardano until 2020
		ok = isBase58(id)
	case n >= 32 && n <= 44:
		ok = isBase58(id) && sc.contextBefore(w.start)&sc.voc.wallet != 0 // Solana has no checksum
	}
	if !ok {
		return 0
	}
	return sc.addFinding(w.start, w.end, Wallet)
}

const (
	bitcoinAlphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
	rippleAlphabet  = "rpshnaf39wBUDNEGHJKLM4PQRST7VWXYZ2bcdeCg65jkm8oFqi1tuvAxyz"
)

var is58 = func() (is [256]bool) {
	for _, b := range []byte(bitcoinAlphabet) {
		is[b] = true
	}
	return is
}()

// isBase58 reports whether all characters are base-58 digits. Ripple uses the same digits in another order.
func isBase58(id []byte) bool {
	for _, b := range id {
		if !is58[b] {
			return false
		}
	}
	return true
}

// isBase58Check verifies a Base58Check address: 21 bytes, followed by the first four bytes of their double SHA-256
// hash.
func isBase58Check(id []byte) bool {
	alphabet := bitcoinAlphabet
	if id[0] == 'r' {
		alphabet = rippleAlphabet
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

const bech32Letters = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"

// bech32Prefix reports whether a word begins like the Bech32 addresses of a known network.
func bech32Prefix(id []byte) bool {
	one := bytes.IndexByte(id, '1')
	if one < 2 || one > 5 || len(id) < 38 || len(id) > 110 {
		return false
	}
	switch string(id[:one]) {
	case "bc", "BC", "ltc", "LTC", "vtc", "dgb", "addr", "cro", "bnb", "cosmos", "osmo":
		return true
	}
	return false
}

// isBech32 verifies the checksum of a Bech32 address. An address contains the version of its format, the witness
// version. Version 0 has the checksum of BIP 173, and later versions have the checksum of BIP 350.
func isBech32(id []byte) bool {
	const charset = bech32Letters
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
	if one <= 3 && s[one+1] != 'q' && !strings.HasPrefix(s, "cro") && !strings.HasPrefix(s, "bnb") {
		return sum == 0x2bc830a3
	}
	return sum == 1
}

// isCashAddr verifies a Bitcoin Cash address without the prefix "bitcoincash:".
func isCashAddr(id []byte) bool {
	sum := uint64(1)
	step := func(v byte) {
		top := sum >> 35
		sum = sum&0x07ffffffff<<5 ^ uint64(v)
		for i, g := range [5]uint64{0x98f2bc8e61, 0x79b76d99e2, 0xf33e5fb3c4, 0xae2eabe2a8, 0x1e4f43e470} {
			if top>>i&1 == 1 {
				sum ^= g
			}
		}
	}
	for _, b := range []byte("bitcoincash") {
		step(b & 31)
	}
	step(0)
	for _, b := range id {
		v := strings.IndexByte(bech32Letters, b)
		if v < 0 {
			return false
		}
		step(byte(v))
	}
	return sum == 1
}

// isStellar verifies a Stellar address: 33 bytes and their CRC-16, low byte first, in base 32.
func isStellar(id []byte) bool {
	var raw [35]byte
	if n, err := base32.StdEncoding.Decode(raw[:], id); err != nil || n != len(raw) {
		return false
	}
	crc := uint16(0)
	for _, b := range raw[:33] {
		crc ^= uint16(b) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc == uint16(raw[33])|uint16(raw[34])<<8
}

// isAlgorand verifies an Algorand address: 32 bytes and the last four bytes of their SHA-512/256 hash, in base 32.
func isAlgorand(id []byte) bool {
	var raw [36]byte
	if n, err := base32.StdEncoding.WithPadding(base32.NoPadding).Decode(raw[:], id); err != nil || n != len(raw) {
		return false
	}
	hash := sha512.Sum512_256(raw[:32])
	return [4]byte(hash[28:]) == [4]byte(raw[32:])
}
