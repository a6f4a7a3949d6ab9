package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"strings"
)

// A token consists of the prefix and 56 letters and digits, which encode 32 random bytes and a checksum of three
// bytes. A double click selects the whole token, and its form makes it easy to find in texts.
const (
	tokenPrefix = "rtk_"
	randomSize  = 32
	sumSize     = 3
	encodedSize = (randomSize + sumSize) * 8 / 5
)

var tokenEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// tokenDigest is the SHA-256 hash of a token, which is stored instead of the token. A fast hash is enough, because a
// token has 256 random bits and cannot be guessed.
type tokenDigest [sha256.Size]byte

var errTypo = errors.New("the token is incomplete, or has a typo: its checksum is wrong")

// newToken returns a new random token.
func newToken() string {
	var secret [randomSize + sumSize]byte
	_, _ = rand.Read(secret[:randomSize]) // never fails
	sum := checksumOf(secret[:randomSize])
	copy(secret[randomSize:], sum[:])
	return tokenPrefix + tokenEncoding.EncodeToString(secret[:])
}

// parseToken returns the digest of a token. It returns an error if the checksum shows that the token is mistyped, so
// that it is not reported as unknown.
func parseToken(text string) (tokenDigest, error) {
	encoded, ok := strings.CutPrefix(text, tokenPrefix)
	if !ok || len(encoded) != encodedSize {
		return tokenDigest{}, errTypo
	}
	var secret [randomSize + sumSize]byte
	if _, err := tokenEncoding.Decode(secret[:], []byte(encoded)); err != nil || tokenEncoding.EncodeToString(secret[:]) != encoded {
		return tokenDigest{}, errTypo
	}
	if checksumOf(secret[:randomSize]) != [sumSize]byte(secret[randomSize:]) {
		return tokenDigest{}, errTypo
	}
	return digestOf(text), nil
}

func digestOf(token string) tokenDigest { return sha256.Sum256([]byte("retort token\x00" + token)) }

func checksumOf(random []byte) [sumSize]byte {
	sum := sha256.Sum256(append([]byte("retort token checksum\x00"), random...))
	return [sumSize]byte(sum[:])
}
