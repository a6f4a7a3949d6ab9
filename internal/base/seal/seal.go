// Package seal authenticates files of the data directory and opens them safely. A sealed file has a MAC (message
// authentication code) made with a key that is stored elsewhere. An MCP server may be able to write to the file's
// folder, for example to a project folder. The MAC keeps it from forging such a file or replacing it by another one.
package seal

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
)

const keySize = 32

// ReadKey returns the key stored at path. It returns an error if the file is missing or does not contain a valid key.
func ReadKey(path string) ([]byte, error) {
	key, err := ReadFile(path, 1<<10)
	if err == nil && len(key) != keySize {
		err = errors.New("the key has the wrong length")
	}
	return key, err
}

// LoadOrCreateKey returns the key stored at path. If the key is missing, it creates one. Processes that call it at the
// same time all get the same key.
func LoadOrCreateKey(path string) ([]byte, error) {
	if key, err := ReadKey(path); err == nil || !errors.Is(err, os.ErrNotExist) {
		return key, err
	}
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // never fails
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	made, err := writeTemp(path, ReplaceOptions{}, func(w io.Writer) error { _, err := w.Write(key); return err })
	if err != nil {
		return nil, err
	}
	defer os.Remove(made)
	if err := os.Link(made, path); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	_ = SyncDir(filepath.Dir(path)) // not every system has it; what the key seals is of no use without it
	return ReadKey(path)
}

// ComputeMAC returns the MAC (message authentication code) of a list of parts. Lists that only divide the same bytes
// differently have different MACs.
func ComputeMAC(key []byte, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, key)
	for _, part := range parts {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write(part)
	}
	return h.Sum(nil)
}

// VerifyMAC reports whether code is the MAC of the parts under the given key.
func VerifyMAC(key, code []byte, parts ...[]byte) bool {
	return hmac.Equal(code, ComputeMAC(key, parts...))
}
