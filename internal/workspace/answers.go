package workspace

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"retort/internal/base/seal"
)

// AnswerCache caches results of tools for a limited time. Each result is a file in its server's folder. A file that is
// damaged, too old or dated in the future counts as missing. The cache is safe for concurrent use, also by several
// processes.
type AnswerCache struct {
	dir  string
	life time.Duration
	most int64 // maximum size of the cache in bytes
	now  func() time.Time

	mu    sync.Mutex
	added int64 // bytes added since the size was last measured; negative before the first measurement
}

// maxAnswer bounds the size of one cached result, in bytes. It must be small, because nothing else limits the memory
// for reading cached results.
const maxAnswer = 1 << 20

// NewAnswers returns a cache in the folder dir. life is the time for which each result is kept. most is the maximum
// size of the cache in bytes. Each result counts entryCost bytes in addition to its size.
func NewAnswers(dir string, life time.Duration, most int64) *AnswerCache {
	return &AnswerCache{dir: dir, life: life, most: most, now: time.Now, added: -1}
}

// answerHeader is the first line of a cached result's file.
type answerHeader struct {
	At  time.Time `json:"at"`
	Sum string    `json:"sum"` // SHA-256 hash of the rest of the file
}

func (a *AnswerCache) filePath(server, key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(a.dir, folderName(server), hex.EncodeToString(sum[:16]))
}

// Get returns the cached result of a server for a key. Its second result is false if the cache has no such result.
func (a *AnswerCache) Get(server, key string) (json.RawMessage, bool) {
	data, err := seal.ReadFile(a.filePath(server, key), maxAnswer+1<<10)
	if err != nil {
		return nil, false
	}
	line, value, _ := bytes.Cut(data, []byte("\n"))
	var head answerHeader
	if json.Unmarshal(line, &head) != nil || head.Sum != checksumHex(value) {
		return nil, false
	}
	age := a.now().Sub(head.At)
	return value, age >= 0 && age < a.life
}

func checksumHex(value []byte) string {
	s := sha256.Sum256(value)
	return hex.EncodeToString(s[:])
}

// Put stores a result. It ignores errors: the result is then not cached.
func (a *AnswerCache) Put(server, key string, value json.RawMessage) {
	if len(value) > maxAnswer || int64(len(value)) > a.most {
		return
	}
	head, err := json.Marshal(answerHeader{At: a.now(), Sum: checksumHex(value)})
	if err != nil {
		return
	}
	if seal.ReplaceFile(a.filePath(server, key), slices.Concat(head, []byte("\n"), value)) == nil {
		a.trimIfGrown(int64(len(value)) + entryCost)
	}
}

// Forget removes all cached results of a server.
func (a *AnswerCache) Forget(server string) {
	dir := filepath.Join(a.dir, folderName(server))
	if _, err := os.Stat(dir); err == nil {
		_ = os.RemoveAll(dir)
	}
}

// trimIfGrown adds the argument bytes to the estimated growth of the cache. If the cache has grown much, it measures
// the cache. It then removes expired results and, while the cache is too large, the oldest results.
func (a *AnswerCache) trimIfGrown(bytes int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.added >= 0 && a.added+bytes < a.most/16 {
		a.added += bytes
		return
	}
	a.added = 0
	var all []agedFile
	var total int64
	_ = filepath.WalkDir(a.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil
		}
		if info, err := e.Info(); err == nil {
			all, total = append(all, agedFile{path, info.Size() + entryCost, info.ModTime()}), total+info.Size()+entryCost
		}
		return nil
	})
	slices.SortFunc(all, func(a, b agedFile) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.path, b.path)) })
	for _, f := range all {
		if total <= a.most*7/8 && a.now().Sub(f.at) < a.life {
			return
		}
		if os.Remove(f.path) == nil {
			total -= f.size
		}
	}
}
