// Package seal authenticates files of this user's Retort. Each file carries a MAC made with a key that is stored
// elsewhere. A server may be allowed to write to the folder of the files, for instance the folder of a project. It
// can neither forge such a file nor replace one with another.
package seal

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
)

const keySize = 32

// ReadKey returns the stored key. It returns an error if the file is missing or not a valid key.
func ReadKey(path string) ([]byte, error) {
	key, err := ReadFile(path, 1<<10)
	if err == nil && len(key) != keySize {
		err = errors.New("the key has a wrong length")
	}
	return key, err
}

// LoadOrCreateKey returns the stored key and creates it if it is missing. Processes that call it at the same time all
// get the same key.
func LoadOrCreateKey(path string) ([]byte, error) {
	if key, err := ReadKey(path); err == nil || !errors.Is(err, os.ErrNotExist) {
		return key, err
	}
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // never fails
	made, err := writeTemp(path, key)
	if err != nil {
		return nil, err
	}
	defer os.Remove(made)
	if err := os.Link(made, path); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	return ReadKey(path)
}

// ComputeMAC returns the MAC of the parts.
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

// VerifyMAC reports whether code is the MAC of the parts.
func VerifyMAC(key, code []byte, parts ...[]byte) bool {
	return hmac.Equal(code, ComputeMAC(key, parts...))
}

// Replace writes a file atomically, readable only by its owner. After a crash there is either the old or the new
// file.
func Replace(path string, data []byte) error {
	made, err := writeTemp(path, data)
	if err != nil {
		return err
	}
	if err = os.Rename(made, path); err != nil {
		_ = os.Remove(made)
		return err
	}
	_ = SyncDir(filepath.Dir(path)) // not every system has it
	return nil
}

// writeTemp writes a temporary file in the same directory as path and returns its name.
func writeTemp(path string, data []byte) (string, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".tmp-*") // 0600
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		_ = os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}
