// Package seal keeps files that only this user's Retort can have written: they carry
// a code made with a key that lies elsewhere. A server that may write where the files
// are, as one for the files of a project may, can neither forge them nor put one in
// the place of another.
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

// ReadKey returns the key that is there; an error is also a file that is none.
func ReadKey(path string) ([]byte, error) {
	key, err := ReadFile(path, 1<<10)
	if err == nil && len(key) != keySize {
		err = errors.New("the key has a wrong length")
	}
	return key, err
}

// LoadOrCreateKey returns the key that is there, or a new one. Of several processes that make one at once, all get the same.
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

// ComputeMAC returns what parts are sealed with.
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

// VerifyMAC reports whether code is that of the parts.
func VerifyMAC(key, code []byte, parts ...[]byte) bool {
	return hmac.Equal(code, ComputeMAC(key, parts...))
}

// Replace writes a file that only its owner can read, whole or not at all. After a
// crash there is the old one or the new one.
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

// writeTemp makes a file beside path and returns its name.
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
