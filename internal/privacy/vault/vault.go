// Package vault remembers which token stands for which value, for each session by
// itself: the same value of the same type has the same token, numbers are never used
// twice, and both outlive the engine.
//
// What is kept on disk is encrypted with a key of the session, which is kept apart from
// it, encrypted with the key of the person. To erase values is to give the others a new
// key, and to destroy the old one.
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

// Entry represents a value that a token stands for.
type Entry struct {
	Type   string   // "email"
	Number int      // of the token among those of its type, from 1 on
	Value  string   // as a person would write it
	Digits bool     // it was a number of JSON
	From   []string // where it has come from: servers, and what else the caller tells apart
}

// Store holds the sessions' tokens below one directory. It is safe for concurrent use.
type Store struct {
	dir    string // empty: memory only
	expiry time.Duration
	master func() ([]byte, error)
	limits sessionLimits

	mu       sync.Mutex
	sessions map[string]*Session
}

// sessionLimits holds those of each session. Tests have smaller ones.
type sessionLimits struct {
	entries int
	unsaved int // entries that are not on disk
	cache   int // bytes of frames in memory that are on disk too
	few     int // entries of a type whose index is a map
}

// Open keeps tokens in dir, or in memory if it is empty. What nobody has used for so long
// as expiry is gone; 0 means 30 days. key is asked for the person's key, of 32 bytes, when
// it is first needed.
func Open(dir string, key func() ([]byte, error), expiry time.Duration) *Store {
	s := &Store{
		dir: dir, expiry: cmp.Or(expiry, 30*24*time.Hour), master: sync.OnceValues(key),
		limits: sessionLimits{entries: MaxEntries, unsaved: 2 * lastBlock, cache: 2 << 20, few: offsets.Few}, sessions: map[string]*Session{},
	}
	if dir != "" {
		s.removeExpired()
	}
	return s
}

// removeExpired removes the sessions that have expired, their keys first.
func (s *Store) removeExpired() {
	keys, _ := filepath.Glob(filepath.Join(s.dir, "keys", "*.key"))
	for _, key := range keys {
		id := strings.TrimSuffix(filepath.Base(key), ".key")
		if time.Since(s.lastWritten(id)) > s.expiry && os.Remove(key) == nil {
			s.removeOrphans(id, "")
		}
	}
}

// lastWritten is when something of a session was last written.
func (s *Store) lastWritten(id string) (last time.Time) {
	for _, path := range append(s.dataFiles(id), s.keyPath(id)) {
		if info, err := os.Stat(path); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last
}

func (s *Store) keyPath(id string) string { return filepath.Join(s.dir, "keys", id+".key") }

// dataPath returns where what the key in secret fits is kept.
func (s *Store) dataPath(id string, secret []byte) string {
	return filepath.Join(s.dir, id+"-"+hex.EncodeToString(secret[keySize:])+".vault")
}

func (s *Store) dataFiles(id string) []string {
	paths, _ := filepath.Glob(filepath.Join(s.dir, id+"-*.vault"))
	return paths
}

// removeOrphans removes the data of a session for which there is no key any more: all but that
// at a path.
func (s *Store) removeOrphans(id, path string) {
	for _, other := range s.dataFiles(id) {
		if other != path {
			_ = os.Remove(other)
		}
	}
}

func (s *Store) lockSession(id string) (unlock func(), err error) {
	return seal.Lock(filepath.Join(s.dir, "keys", id+".lock"), patience)
}

// patience sets how long another process may take to write.
const patience = 10 * time.Second

// readKey returns a session's key as it is on disk; nil if there is none.
func (s *Store) readKey(id string) ([]byte, error) {
	wrapped, err := seal.ReadFile(s.keyPath(id), 1<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return wrapped, err
}

// Session returns that of a name. The error is a *core.Error of kind internal: what is kept of it cannot be read, and
// nothing may be minted then, since numbers could be used twice.
func (s *Store) Session(name string) (*Session, error) { return s.openSession(idOf(name)) }

// idOf returns what a session is called on disk.
func idOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:12])
}

// TokensOf finds the tokens of values in all sessions. The function that it returns reports whether a text has
// one of them as a token of the session of a name. It goes on where a session cannot be read, and
// says so.
func (s *Store) TokensOf(told func(value string) bool) (mentioned func(name, text string) bool, err error) {
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

// Forget erases values, of whatever type, from all sessions, and reports how many there
// were in how many. It goes on where a session cannot be read, and says so.
func (s *Store) Forget(told func(value string) bool) (values, sessions int, err error) {
	var errs []error
	for _, id := range s.sessionIDs() {
		session, err := s.openSession(id)
		n := 0
		if err == nil {
			n, err = session.Forget(told)
		}
		if values += n; n > 0 {
			sessions++
		}
		errs = append(errs, err)
	}
	return values, sessions, errors.Join(errs...)
}

// sessionIDs returns the ids of all sessions.
func (s *Store) sessionIDs() []string {
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

func (s *Store) openSession(id string) (*Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if open, ok := s.sessions[id]; ok {
		return open, nil
	}
	s.evictSession()
	open := &Session{store: s, id: id, table: newTable(nil, s.limits)}
	open.table.volatile = s.dir == ""
	if s.dir != "" && s.hasSession(id) {
		if err := open.withExclusiveLock(func() error { return nil }); err != nil {
			open.closeFile()
			return nil, core.Errorf(core.KindInternal, "pii.vault", "what is kept of personal data in this session cannot be read: %w", err).
				WithHint("give back the key that it was written with, or begin a session with another name")
		}
	}
	s.sessions[id] = open
	return open, nil
}

// maxOpen bounds the sessions that are open: whoever asks chooses their names.
const maxOpen = 128

// evictSession closes a session where there are too many. Whoever still uses it is to it what
// another process is.
func (s *Store) evictSession() {
	for id, old := range s.sessions {
		if s.dir == "" || len(s.sessions) < maxOpen {
			return
		}
		if old.saveAndClose() == nil {
			delete(s.sessions, id)
		}
	}
}

func (s *Store) hasSession(id string) bool {
	_, err := os.Stat(s.keyPath(id))
	return err == nil
}

// Close closes what is open.
func (s *Store) Close() error {
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
