package approval

import (
	"encoding/json"
	"slices"
	"sync"

	"retort/internal/base/seal"
)

// maxRules bounds the number of stored rules, which are approvals that a person has given with the scope always.
const maxRules = 10_000

// SealedRules stores rules (approvals that a person has given with the scope always) in a file that is authenticated
// with a key. The key is stored elsewhere, so that a server which can write only to the file's folder cannot approve
// anything. It is safe for concurrent use.
type SealedRules struct {
	path, keyPath string

	mu    sync.Mutex
	rules []AlwaysRule
}

type keptFile struct {
	Rules json.RawMessage `json:"rules"`
	Seal  []byte          `json:"seal"`
}

// OpenKept reads the kept approvals, which are rules about calls, from the file path. The file keyPath holds the key
// that authenticates them; it is created when a rule is first stored. OpenKept ignores a file with a wrong seal, and
// rules of another policy version. They are deleted when the next rule is stored.
func OpenKept(path, keyPath, policy string) *SealedRules {
	k := &SealedRules{path: path, keyPath: keyPath}
	text, err := seal.ReadFile(path, seal.MaxFile)
	if err != nil {
		return k // nothing was approved yet, or the file is unreadable
	}
	key, err := seal.ReadKey(keyPath)
	var file keptFile
	if err == nil && json.Unmarshal(text, &file) == nil && seal.VerifyMAC(key, file.Seal, []byte(path), file.Rules) {
		_ = json.Unmarshal(file.Rules, &k.rules)
	}
	k.rules = slices.DeleteFunc(k.rules, func(r AlwaysRule) bool { return r.Policy != policy })
	return k
}

// IsAllowed reports whether a person has approved the calls that r describes with the scope always.
func (k *SealedRules) IsAllowed(r AlwaysRule) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Contains(k.rules, r)
}

// AllowRule stores r. It removes stored rules for another definition of the same tool, and those for another version
// of the policy.
func (k *SealedRules) AllowRule(r AlwaysRule) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.rules = slices.DeleteFunc(k.rules, func(o AlwaysRule) bool {
		return o.Policy != r.Policy || o.Server == r.Server && o.Tool == r.Tool && (o.Pin != r.Pin || o == r)
	})
	k.rules = append(k.rules, r)
	k.rules = k.rules[max(0, len(k.rules)-maxRules):]
	rules, err := json.Marshal(k.rules)
	if err != nil {
		return err
	}
	key, err := seal.LoadOrCreateKey(k.keyPath)
	if err != nil {
		return err
	}
	text, err := json.Marshal(keptFile{rules, seal.ComputeMAC(key, []byte(k.path), rules)})
	if err != nil {
		return err
	}
	return seal.ReplaceFile(k.path, append(text, '\n'))
}
