package approval

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// maxRules bounds what can be approved for always.
const maxRules = 10_000

// Kept are Rules in a file, sealed with a key that lies elsewhere: a server that
// may write where the file is, as one for the files of a project may, can't approve
// with it. It is safe for concurrent use.
type Kept struct {
	path, keyPath string

	mu    sync.Mutex
	rules []Rule
}

type keptFile struct {
	Rules json.RawMessage `json:"rules"`
	Seal  []byte          `json:"seal"`
}

// OpenKept reads what was approved for always; keyPath is where the key is, or will
// be. A file whose seal is not right counts for nothing, nor do rules of another
// version of the policy; they are gone with the next that is approved.
func OpenKept(path, keyPath, policy string) *Kept {
	k := &Kept{path: path, keyPath: keyPath}
	text, err := os.ReadFile(path)
	if err != nil {
		return k // nothing was approved yet, or nobody can read it
	}
	key, err := os.ReadFile(keyPath)
	var file keptFile
	if err == nil && len(key) == keySize && json.Unmarshal(text, &file) == nil && hmac.Equal(file.Seal, k.seal(key, file.Rules)) {
		_ = json.Unmarshal(file.Rules, &k.rules)
	}
	k.rules = slices.DeleteFunc(k.rules, func(r Rule) bool { return r.Policy != policy })
	return k
}

const keySize = 32

// key is the key that is there, or a new one.
func (k *Kept) key() ([]byte, error) {
	if key, err := os.ReadFile(k.keyPath); err == nil && len(key) == keySize {
		return key, nil
	}
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // never fails
	return key, replace(k.keyPath, key)
}

// replace writes a file that only its owner can read, whole or not at all.
func replace(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

func (k *Kept) seal(key, rules []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(k.path))
	h.Write([]byte{0})
	h.Write(rules)
	return h.Sum(nil)
}

// Allows reports whether r was approved.
func (k *Kept) Allows(r Rule) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Contains(k.rules, r)
}

// Allow keeps r, in place of what was approved for another definition of the tool.
func (k *Kept) Allow(r Rule) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.rules = slices.DeleteFunc(k.rules, func(o Rule) bool {
		return o.Server == r.Server && o.Tool == r.Tool && (o.Pin != r.Pin || o == r)
	})
	k.rules = append(k.rules, r)
	k.rules = k.rules[max(0, len(k.rules)-maxRules):]
	rules, err := json.Marshal(k.rules)
	if err != nil {
		return err
	}
	key, err := k.key()
	if err != nil {
		return err
	}
	text, err := json.Marshal(keptFile{rules, k.seal(key, rules)})
	if err != nil {
		return err
	}
	return replace(k.path, append(text, '\n'))
}
