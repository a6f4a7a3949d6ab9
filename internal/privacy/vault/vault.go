// Package vault stores which token stands for which personal value, separately for each session. Within a session,
// equal values of a type have the same token, and numbers are never reused, even after a restart. The data on disk is
// encrypted with a key for each session. This key is stored in a separate file, encrypted with the user's key. To
// erase values, the remaining ones are encrypted with a new key and the old key is destroyed.
package vault

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"retort/internal/base/seal"
	"retort/internal/core"
	"retort/internal/privacy/offsets"
)

// TokenEntry represents a value for which a token stands, with its type, its number and the servers that it came
// from.
type TokenEntry struct {
	Type   string   // "email"
	Number int      // of the token among those of its type, from 1 on
	Value  string   // as a person would write it
	Digits bool     // it was a number of JSON
	From   []string // where it has come from: servers, and what else the caller tells apart
}

// TokenVault stores the tokens of all sessions in one directory. It is safe for concurrent use.
type TokenVault struct {
	dir    string // empty: memory only
	expiry time.Duration
	master func() ([]byte, error)
	limits sessionLimits

	mu       sync.Mutex
	sessions map[string]*TokenSession
}

// sessionLimits holds the limits that apply to each session. Tests use smaller ones.
type sessionLimits struct {
	entries int
	unsaved int // entries that are not on disk
	cache   int // bytes of frames in memory that are on disk too
	few     int // entries of a type whose index is a map
}

// Open returns a vault that keeps tokens in dir, or only in memory if dir is empty. It removes sessions that were not
// written for longer than expiry; 0 means 30 days. key returns the user's 32-byte key. It is called only when the key
// is first needed.
func Open(dir string, key func() ([]byte, error), expiry time.Duration) *TokenVault {
	s := &TokenVault{
		dir: dir, expiry: cmp.Or(expiry, core.DefaultPIIExpiry), master: sync.OnceValues(key),
		limits:   sessionLimits{entries: MaxEntries, unsaved: 2 * lastBlock, cache: 2 << 20, few: offsets.Few},
		sessions: map[string]*TokenSession{},
	}
	if dir != "" {
		s.removeExpired()
	}
	return s
}

// removeExpired removes expired sessions. It removes their keys first, so that the data cannot be read even if the
// removal is interrupted.
func (s *TokenVault) removeExpired() {
	keys, _ := filepath.Glob(filepath.Join(s.dir, "keys", "*.key"))
	for _, key := range keys {
		id := strings.TrimSuffix(filepath.Base(key), ".key")
		if time.Since(s.lastWritten(id)) > s.expiry && os.Remove(key) == nil {
			s.removeOrphans(id, "")
		}
	}
}

// lastWritten returns the time at which any file of a session was last written.
func (s *TokenVault) lastWritten(id string) (last time.Time) {
	for _, path := range append(s.dataFiles(id), s.keyPath(id)) {
		if info, err := os.Stat(path); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last
}

func (s *TokenVault) keyPath(id string) string { return filepath.Join(s.dir, "keys", id+".key") }

// dataPath returns the path of a session's data file. secret holds the file's key, followed by random bytes that
// become part of the file's name. A file with a new key therefore has a new name, too.
func (s *TokenVault) dataPath(id string, secret []byte) string {
	return filepath.Join(s.dir, id+"-"+hex.EncodeToString(secret[keySize:])+".vault")
}

func (s *TokenVault) dataFiles(id string) []string {
	paths, _ := filepath.Glob(filepath.Join(s.dir, id+"-*.vault"))
	return paths
}

// removeOrphans removes every data file of a session except the one at path. The removed files could not be read,
// because their keys are gone.
func (s *TokenVault) removeOrphans(id, path string) {
	for _, other := range s.dataFiles(id) {
		if other != path {
			_ = os.Remove(other)
		}
	}
}

func (s *TokenVault) lockSession(id string) (unlock func(), err error) {
	return seal.Lock(filepath.Join(s.dir, "keys", id+".lock"), lockTimeout)
}

// lockTimeout bounds the wait for a session's lock while another process is writing.
const lockTimeout = 10 * time.Second

// readKey reads the encrypted key of a session from disk. It returns nil if there is no key yet.
func (s *TokenVault) readKey(id string) ([]byte, error) {
	wrapped, err := seal.ReadFile(s.keyPath(id), 1<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return wrapped, err
}

// OpenSession returns the session with the given name. If its stored data cannot be read, the error is a *core.Error
// of kind internal. In that case no token may be created, because its number could already be in use.
func (s *TokenVault) OpenSession(name string) (*TokenSession, error) {
	return s.openSession(idOf(name))
}

// idOf returns the id under which a session is stored on disk: a hash of its name.
func idOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:12])
}

// TokensOf finds, in all sessions, the tokens of the values for which told returns true. The returned function
// reports whether a text contains such a token of the named session. Sessions that cannot be read are skipped, and
// the error names them.
func (s *TokenVault) TokensOf(told func(value string) bool) (mentioned func(name, text string) bool, err error) {
	tokens := map[string][]string{}
	var errs []error
	for _, id := range s.sessionIDs() {
		session, err := s.openSession(id)
		if err == nil {
			tokens[id], err = session.tokensOf(told)
		}
		errs = append(errs, err)
	}
	return func(name, text string) bool {
		return slices.ContainsFunc(tokens[idOf(name)], func(token string) bool { return strings.Contains(text, token) })
	}, errors.Join(errs...)
}

// ForgetValues erases the values for which told returns true from all sessions. It returns the number of erased
// values and of affected sessions. Sessions that cannot be read are skipped, and the error names them.
func (s *TokenVault) ForgetValues(told func(value string) bool) (values, sessions int, err error) {
	var errs []error
	for _, id := range s.sessionIDs() {
		session, err := s.openSession(id)
		n := 0
		if err == nil {
			n, err = session.ForgetValues(told)
		}
		if values += n; n > 0 {
			sessions++
		}
		errs = append(errs, err)
	}
	return values, sessions, errors.Join(errs...)
}

// sessionIDs returns the ids of all sessions.
func (s *TokenVault) sessionIDs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := slices.Collect(maps.Keys(s.sessions))
	if s.dir == "" {
		return ids
	}
	keys, _ := filepath.Glob(filepath.Join(s.dir, "keys", "*.key"))
	for _, key := range keys {
		ids = append(ids, strings.TrimSuffix(filepath.Base(key), ".key"))
	}
	return slices.Compact(slices.Sorted(slices.Values(ids)))
}

func (s *TokenVault) openSession(id string) (*TokenSession, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if open, ok := s.sessions[id]; ok {
		return open, nil
	}
	s.evictSession()
	open := &TokenSession{store: s, id: id, table: newTable(nil, s.limits)}
	open.table.volatile = s.dir == ""
	if s.dir != "" && s.hasSession(id) {
		if err := open.withExclusiveLock(func() error { return nil }); err != nil {
			open.closeFile()
			return nil, core.Errorf(core.KindInternal, "pii.vault", "the personal data stored for this session cannot be read: %w", err).
				WithHint("restore the key that the session was written with, or start a session with another name")
		}
	}
	s.sessions[id] = open
	return open, nil
}

// maxOpen bounds the number of sessions kept open. A bound is needed because callers choose the names of sessions.
const maxOpen = 128

// evictSession saves and closes a session if too many are open. A caller that still holds the closed session can go
// on using it: it then shares the file as another process would.
func (s *TokenVault) evictSession() {
	for id, old := range s.sessions {
		if s.dir == "" || len(s.sessions) < maxOpen {
			return
		}
		if old.saveAndClose() == nil {
			delete(s.sessions, id)
		}
	}
}

func (s *TokenVault) hasSession(id string) bool {
	_, err := os.Stat(s.keyPath(id))
	return err == nil
}

// Close saves and closes all open sessions.
func (s *TokenVault) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, session := range s.sessions {
		errs = append(errs, session.saveAndClose())
	}
	clear(s.sessions)
	return errors.Join(errs...)
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}
