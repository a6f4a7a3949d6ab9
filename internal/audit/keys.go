package audit

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

const keySize = 32

func encodeHex(b []byte) string { return hex.EncodeToString(b) }

// deriveKey derives a key from a master key. The argument use names the purpose of the derived key, so that each
// purpose has its own key.
func deriveKey(key []byte, use string) ([]byte, error) {
	if len(key) != keySize {
		return nil, fmt.Errorf("a key has %d bytes and needs %d", len(key), keySize)
	}
	return hkdf.Key(sha256.New, key, nil, "retort audit "+use, keySize)
}

// newAEAD returns an AES-256-GCM cipher with this key.
func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// sealText encrypts a text with AES-256-GCM. The result begins with the nonce. The argument place says where the
// ciphertext is stored, for example by the ID of its key. It is authenticated as additional data, so that a
// ciphertext that was moved to another place cannot be decrypted there.
func sealText(c cipher.AEAD, plain []byte, place string) []byte {
	out := make([]byte, c.NonceSize(), c.NonceSize()+len(plain)+c.Overhead())
	_, _ = rand.Read(out) // never fails
	return c.Seal(out, out, plain, []byte(place))
}

func openText(c cipher.AEAD, text []byte, place string) ([]byte, error) {
	n := c.NonceSize()
	if len(text) < n {
		return nil, errors.New("the encrypted text is too short")
	}
	return c.Open(nil, text[:n], text[n:], []byte(place))
}

// LogKeys provides the secret keys of the audit log's owner. Each key has 32 bytes and is read only when it is first
// needed.
type LogKeys struct {
	Bodies func() ([]byte, error) // encrypts the keys of bodies
	// Codes makes the MACs of hashes and signs checkpoints. It must be stored where upstream servers cannot write.
	Codes func() ([]byte, error)
}

// wrapCipher returns the cipher that encrypts the keys with which bodies are encrypted.
func (k LogKeys) wrapCipher() (cipher.AEAD, error) {
	master, err := k.Bodies()
	if err != nil {
		return nil, err
	}
	key, err := deriveKey(master, "bodies")
	if err != nil {
		return nil, err
	}
	return newAEAD(key)
}

// signingKeys holds three keys: for the MACs of entries, for signing checkpoints, and for keyed digests.
type signingKeys struct {
	mac    []byte
	sign   ed25519.PrivateKey
	digest []byte
}

func (k LogKeys) signingKeys() (signingKeys, error) {
	key, err := k.Codes()
	if err != nil {
		return signingKeys{}, err
	}
	mac, err := deriveKey(key, "codes")
	if err != nil {
		return signingKeys{}, err
	}
	seed, err := deriveKey(key, "checkpoints")
	if err != nil {
		return signingKeys{}, err
	}
	digest, err := deriveKey(key, "digests")
	return signingKeys{mac, ed25519.NewKeyFromSeed(seed), digest}, err
}

// publicKey returns the public key that verifies the signatures of checkpoints and archives.
func (c signingKeys) publicKey() ed25519.PublicKey { return c.sign.Public().(ed25519.PublicKey) }

// OwnerID returns an identifier of the audit log's owner. It is derived from the owner's key but does not reveal it.
func (k LogKeys) OwnerID() (string, error) {
	c, err := k.signingKeys()
	if err != nil {
		return "", err
	}
	return c.ownerID(), nil
}

func (c signingKeys) ownerID() string { return encodeHex(c.publicKey()[:8]) }
