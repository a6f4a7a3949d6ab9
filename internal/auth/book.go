package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"retort/internal/base/seal"
	"retort/internal/core"
	"retort/internal/home"
)

const (
	maxTokens       = 1000
	maxFile         = 1 << 20
	lockTimeout     = 5 * time.Second
	expiredListTime = 30 * 24 * time.Hour // how long an expired token is still listed
)

// Token describes one of Retort's own tokens without its secret.
type Token struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"` // name of the principal
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"` // zero: never
	Used    string    `json:"used,omitempty"`   // day of the last use in UTC, in the form 2026-05-04
}

// Expired reports whether the token has expired at the time now.
func (t Token) Expired(now time.Time) bool { return !t.Expires.IsZero() && !now.Before(t.Expires) }

// storedToken represents a token as the file stores it, with a digest of the secret.
type storedToken struct {
	Token
	Digest []byte `json:"sha256"`
}

// TokenStore stores Retort's own tokens in a file. It is safe for concurrent use, and several processes may share the
// file.
//
// The file is sealed with a key that is stored elsewhere, and the number of writes is stored next to that key.
// Therefore an MCP server that can write to the file can neither add a token nor restore a revoked one. If the file
// was tampered with, no token is valid.
type TokenStore struct {
	path, key, countPath string // countPath is the file with the number of writes; the lock file is next to it
	now                  func() time.Time

	mu      sync.Mutex // protects the fields below
	state   storeState
	used    map[string]string // day of the last use by token ID, including days that are not written yet
	dirty   map[string]string // days of last use that must still be written, by token ID
	idle    sync.Cond         // signalled when writing becomes false
	writing bool              // a goroutine is writing days of last use
}

// storeState holds what the token file contained when it was last read.
type storeState struct {
	file, aside seal.FileStamp
	writes      uint64
	tokens      []storedToken
	err         error
}

// isUnchanged reports whether a file exists and has not changed since it was read. A missing file counts as changed,
// so that the next call looks for it again.
func isUnchanged(was seal.FileStamp, path string) bool {
	return was.FileExists() && was.IsSame(seal.StampOf(path))
}

// OpenBook returns the TokenStore for the tokens in the file at path. key is the path of the file with the key,
// which need not exist yet.
func OpenBook(path, key string) *TokenStore {
	sum := sha256.Sum256([]byte(path))
	b := &TokenStore{
		path: path, key: key,
		countPath: filepath.Join(home.User(filepath.Dir(key)).TokenCounts(), hex.EncodeToString(sum[:16])),
		now:       time.Now, used: map[string]string{}, dirty: map[string]string{},
	}
	b.idle.L = &b.mu
	return b
}

// Close waits until the pending dates of last use are written.
func (b *TokenStore) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.writing {
		b.idle.Wait()
	}
	return nil
}

// ListTokens returns all tokens in the order of their creation.
func (b *TokenStore) ListTokens() ([]Token, error) {
	s := b.currentState()
	return withoutSecrets(s.tokens), s.err
}

func withoutSecrets(all []storedToken) []Token {
	tokens := make([]Token, len(all))
	for i, k := range all {
		tokens[i] = k.Token
	}
	return tokens
}

// CreateToken creates a token and returns its text, which is not stored. It calls permit right before the token
// becomes valid. If permit fails, CreateToken returns that error and creates no token.
func (b *TokenStore) CreateToken(name string, life time.Duration, permit func(Token) error) (text string, made Token, err error) {
	if !ValidName(name) {
		return "", Token{}, core.Errorf(
			core.KindInvalidArguments, "token.create", "this is not a valid name for a principal",
		).WithHint("at most 128 characters, none of them invisible")
	}
	text = newToken()
	sum := digestOf(text)
	now := b.now().UTC().Truncate(time.Second)
	made = Token{ID: hex.EncodeToString(sum[:6]), Name: name, Created: now}
	if life > 0 {
		made.Expires = now.Add(life)
	}
	err = b.changeTokens(func(all []storedToken) ([]storedToken, error) {
		all = slices.DeleteFunc(all, func(k storedToken) bool { return k.Expired(now.Add(-expiredListTime)) })
		if len(all) >= maxTokens {
			return nil, core.Errorf(
				core.KindLimit, "token.create", "there are already %d tokens", len(all),
			).WithHint("remove one with retort token revoke")
		}
		return append(all, storedToken{made, sum[:]}), permit(made)
	})
	if err != nil {
		return "", Token{}, err
	}
	return text, made, nil
}

// RevokeTokens removes all tokens with the given name or ID. Running engines then refuse requests with these tokens,
// and end their requests in progress within a second.
func (b *TokenStore) RevokeTokens(which string) (gone []Token, err error) {
	err = b.changeTokens(func(all []storedToken) ([]storedToken, error) {
		left := slices.DeleteFunc(slices.Clone(all), func(k storedToken) bool {
			hit := k.Name == which || k.ID == which
			if hit {
				gone = append(gone, k.Token)
			}
			return hit
		})
		if len(gone) == 0 {
			return nil, core.Errorf(
				core.KindInvalidArguments, "token.revoke", "there is no token with this name or id",
			).WithHint("run retort token list to see all tokens")
		}
		return left, nil
	})
	if err != nil {
		return nil, err
	}
	return gone, nil
}

// RevokeAll replaces the file by one without tokens, even if it is damaged, and returns the removed tokens that it
// could read.
func (b *TokenStore) RevokeAll() (gone []Token, err error) {
	err = b.runLocked(func() error {
		s := b.readFile()
		gone = append([]Token{}, withoutSecrets(s.tokens)...)
		return b.writeFile(s.writes+1, nil)
	})
	return gone, err
}

func (b *TokenStore) authenticateToken(text string) (AuthenticatedPrincipal, error) {
	sum, err := parseToken(text)
	if err != nil {
		return AuthenticatedPrincipal{}, refusedError(ErrToken, "%w", err).WithHint("copy the complete token: %s and %d letters and digits", tokenPrefix, encodedSize)
	}
	s := b.currentState()
	if s.err != nil {
		return AuthenticatedPrincipal{}, refusedError(
			ErrToken, "no token is accepted, because the token file cannot be trusted",
		).WithHint("the person at the machine can run retort token list to see why")
	}
	found, now := findToken(s.tokens, sum), b.now()
	switch {
	case found == nil:
		return AuthenticatedPrincipal{}, refusedError(ErrToken, "the token was revoked, or belongs to another server").WithHint("ask for a new token: retort token create")
	case found.Expired(now):
		return AuthenticatedPrincipal{}, refusedError(
			ErrToken, "the token expired on %s", found.Expires.Format(time.DateOnly),
		).WithHint("ask for a new token: retort token create")
	}
	b.noteUse(found.Token, now)
	return AuthenticatedPrincipal{Name: found.Name, Expires: found.Expires, Token: found.ID}, nil
}

// HasValid reports whether the token with this ID exists and has not expired.
func (b *TokenStore) HasValid(id string) bool {
	now := b.now()
	return slices.ContainsFunc(b.currentState().tokens, func(k storedToken) bool { return k.ID == id && !k.Expired(now) })
}

// IsEmpty reports whether no token was ever created. As soon as one was created, all callers must present a token.
func (b *TokenStore) IsEmpty() bool {
	s := b.currentState()
	return s.writes == 0 && s.err == nil
}

// findToken returns the token with the given hash. The time that it takes does not reveal which token matches.
func findToken(all []storedToken, sum tokenDigest) (found *storedToken) {
	for i := range all {
		if subtle.ConstantTimeCompare(all[i].Digest, sum[:]) == 1 {
			found = &all[i]
		}
	}
	return found
}

// noteUse records the date of a token's last use. It causes at most one write a day for each token.
func (b *TokenStore) noteUse(t Token, now time.Time) {
	day := now.UTC().Format(time.DateOnly)
	b.mu.Lock()
	defer b.mu.Unlock()
	if t.Used >= day || b.used[t.ID] == day {
		return
	}
	b.used[t.ID], b.dirty[t.ID] = day, day
	if !b.writing {
		b.writing = true
		go b.writeUses()
	}
}

// writeUses writes the pending dates of last use to the file. It ignores failures, because then only a date is
// missing.
func (b *TokenStore) writeUses() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.dirty) > 0 {
		days := b.dirty
		b.dirty = map[string]string{}
		b.mu.Unlock()
		_ = b.changeTokens(func(all []storedToken) ([]storedToken, error) {
			for i := range all {
				if day := days[all[i].ID]; day > all[i].Used {
					all[i].Used = day
				}
			}
			return all, nil
		})
		b.mu.Lock()
	}
	b.writing = false
	b.idle.Broadcast()
}

// currentState returns the content of the token file. It reads the file again if the file has changed.
func (b *TokenStore) currentState() storeState {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state.err != nil || !isUnchanged(b.state.file, b.path) || !isUnchanged(b.state.aside, b.countPath) {
		b.state = b.readFile()
	}
	return b.state
}

// changeTokens applies f to the current tokens and writes the result, under the lock of the file.
func (b *TokenStore) changeTokens(f func([]storedToken) ([]storedToken, error)) error {
	return b.runLocked(func() error {
		s := b.readFile()
		if s.err != nil {
			return s.err
		}
		changed, err := f(s.tokens)
		if err != nil {
			return err
		}
		return b.writeFile(s.writes+1, changed)
	})
}

// runLocked runs f while it holds the lock that all processes share. The lock file is next to the key, so that no MCP
// server can hold the lock to prevent a person from revoking tokens.
func (b *TokenStore) runLocked(f func() error) error {
	unlock, err := seal.Lock(b.countPath+".lock", lockTimeout)
	if err != nil {
		return core.Errorf(core.KindInternal, "access.tokens", "the tokens cannot be locked: %w", err)
	}
	defer unlock()
	return f()
}

// tokensFile represents the JSON of the token file.
type tokensFile struct {
	Writes uint64          `json:"writes"`
	Tokens json.RawMessage `json:"tokens"`
	Seal   []byte          `json:"seal"`
}

func (b *TokenStore) sealedParts(f tokensFile) [][]byte {
	return [][]byte{[]byte("tokens"), []byte(b.path), strconv.AppendUint(nil, f.Writes, 10), f.Tokens}
}

func (b *TokenStore) readFile() storeState {
	s := storeState{file: seal.StampOf(b.path), aside: seal.StampOf(b.countPath)}
	seen, err := b.writeCount()
	if err == nil {
		err = b.loadFile(seen, &s)
	}
	if err != nil {
		s.tokens, s.writes = nil, max(s.writes, seen)
		s.err = core.Errorf(core.KindPolicy, "access.tokens", "no token is accepted, because %s %s", b.path, err).
			WithHint("find out who changed it; retort token revoke --all removes all tokens, so that you can create new ones")
	}
	return s
}

// writeCount returns how often the token file was written, according to the count that is stored next to the key.
func (b *TokenStore) writeCount() (uint64, error) {
	text, err := seal.ReadFile(b.countPath, 64)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	n, bad := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || bad != nil {
		return 0, fmt.Errorf("cannot be checked against its number of writes: %s cannot be read", b.countPath)
	}
	return n, nil
}

func (b *TokenStore) loadFile(seen uint64, s *storeState) error {
	text, err := seal.ReadFile(b.path, maxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist) && seen == 0:
		return nil // there were no tokens yet
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("is gone")
	case err != nil:
		return fmt.Errorf("is not a readable file of at most %d bytes: %w", maxFile, err)
	}
	key, err := seal.ReadKey(b.key)
	if err != nil {
		return errors.New("has no key: " + b.key + " cannot be read")
	}
	var f tokensFile
	if json.Unmarshal(text, &f) != nil || !seal.VerifyMAC(key, f.Seal, b.sealedParts(f)...) {
		return errors.New("was not written by Retort, or was moved: its authentication code is wrong")
	}
	if s.writes = f.Writes; f.Writes < seen {
		return errors.New("is older than the last version written: it was replaced by an older copy")
	}
	if err := json.Unmarshal(f.Tokens, &s.tokens); err != nil {
		return errors.New("has a format that this version of Retort does not write")
	}
	return nil
}

func (b *TokenStore) writeFile(writes uint64, tokens []storedToken) error {
	f := tokensFile{Writes: writes}
	var err error
	if f.Tokens, err = json.Marshal(append([]storedToken{}, tokens...)); err != nil {
		return err
	}
	key, err := seal.LoadOrCreateKey(b.key)
	if err == nil {
		f.Seal = seal.ComputeMAC(key, b.sealedParts(f)...)
		var text []byte
		if text, err = json.Marshal(f); err == nil {
			err = seal.ReplaceFile(b.path, append(text, '\n'))
		}
	}
	if err == nil {
		err = seal.ReplaceFile(b.countPath, strconv.AppendUint(nil, writes, 10))
	}
	if err != nil {
		return core.Errorf(core.KindInternal, "access.tokens", "the tokens cannot be written: %w", err)
	}
	return nil
}
