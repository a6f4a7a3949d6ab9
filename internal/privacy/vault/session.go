package vault

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"sync"

	"retort/internal/core"
)

// TokenSession maps the values of one session to tokens. It is safe for concurrent use, even by several processes,
// because each process reserves its own blocks of numbers.
type TokenSession struct {
	store *TokenVault
	id    string

	mu      sync.RWMutex
	table   *entryTable
	wrapped []byte      // the session's key, as it is on disk; nil before there is one
	stamp   os.FileInfo // of the key, as it was last read
}

const (
	// MaxEntries bounds the number of entries in a session.
	MaxEntries = 2_000_000
	maxNumber  = 100 * MaxEntries
	firstBlock = 16
	lastBlock  = 4096
)

// errFull returns the error for a session that is full, because it has MaxEntries entries. The error is of kind
// limit.
func errFull() error {
	return core.Errorf(core.KindLimit, "pii.vault", "the session already has %d personal values, which is the maximum", MaxEntries).
		WithHint(
			"request less data, for example without the columns that contain personal data; or use another session; or ask a person to erase this one with `retort audit erase`",
		)
}

// MintToken returns the token of a value, and creates one for a new value. It adds the servers in e.From to those
// that the value came from before. The token's number is reserved on disk before the token is returned, so it never
// stands for another value. If the session is full, the error is a *core.Error of kind limit.
func (s *TokenSession) MintToken(e TokenEntry) (token string, err error) {
	s.mu.RLock()
	token, changes, err := s.mintToken(&e)
	s.mu.RUnlock()
	if token != "" || err != nil {
		return token, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.table.changes != changes {
		if token, err := s.knownToken(&e); token != "" || err != nil {
			return token, err
		}
	}
	if s.table.count >= s.store.limits.entries {
		return "", errFull()
	}
	c := s.table.columnOf(e.Type)
	if c.ours.next > c.ours.last || c.ours.next == 0 {
		if err := s.reserveNumbers(e.Type); err != nil {
			return "", err
		}
		if token, err := s.knownToken(&e); token != "" || err != nil { // by another process
			return token, err
		}
		c = s.table.columnOf(e.Type)
	}
	e.Number = c.ours.next
	if err := s.table.addEntry(c, c.hashValue(e.Value), &e, false); err != nil {
		return "", err
	}
	c.ours.next++
	return c.tokenText(e.Number), s.saveIfLarge()
}

// mintToken looks up the token of a value without changing the table. It returns the token only if the value has come
// from all the servers in e.From before. Otherwise it returns "" and, in changes, why: the table's count of changes
// if the value is unknown, or 0 if only servers are missing.
func (s *TokenSession) mintToken(e *TokenEntry) (token string, changes int, err error) {
	c := s.table.types[e.Type]
	if c == nil {
		return "", s.table.changes, nil
	}
	h := c.hashValue(e.Value)
	if t := c.recent.findToken(h, e.Value); t != nil && !lacksServer(t.from, e.From) {
		return t.token, 0, nil
	}
	known, at, err := s.table.findValue(c, h, e.Value)
	if err != nil || at == 0 {
		return "", s.table.changes, err
	}
	if lacksServer(known.from, e.From) {
		return "", 0, nil
	}
	token = c.tokenText(known.number)
	c.recent.rememberToken(h, &known, token)
	return token, 0, nil
}

// findEntry returns the entry of a value, and the place (number) that refers to the entry in the table. The place is
// 0 if the value is unknown.
func (s *TokenSession) findEntry(typ, value string) (c *typeColumn, h uint64, known frameRecord, at uint32, err error) {
	if c = s.table.types[typ]; c == nil {
		return nil, 0, frameRecord{}, 0, nil
	}
	h = c.hashValue(value)
	known, at, err = s.table.findValue(c, h, value)
	return c, h, known, at, err
}

// knownToken returns the token of a known value and adds the servers in e.From to its entry. It returns "" if the
// value is unknown.
func (s *TokenSession) knownToken(e *TokenEntry) (string, error) {
	c, h, known, at, err := s.findEntry(e.Type, e.Value)
	if err != nil || at == 0 {
		return "", err
	}
	if lacksServer(known.from, e.From) {
		if err := s.table.addServers(c, h, &known, e.From); err != nil {
			return "", err
		}
	}
	return c.tokenText(known.number), s.saveIfLarge()
}

// saveIfLarge saves the entries that are not on disk yet if there are many of them. While a large result is
// processed, it may take long until SyncFile is called.
func (s *TokenSession) saveIfLarge() error {
	if s.table.unsaved < s.store.limits.unsaved {
		return nil
	}
	return s.savePending()
}

// reserveNumbers reserves a block of numbers for this process and saves it to disk together with the pending entries.
// The more entries the type has, the larger the block.
func (s *TokenSession) reserveNumbers(typ string) error {
	if s.store.dir == "" {
		c := s.table.columnOf(typ)
		c.ours = numberBlock{c.top + 1, c.top + lastBlock}
		return nil
	}
	return s.withExclusiveLock(func() error {
		c := s.table.columnOf(typ) // the table may have been replaced
		size := min(max(firstBlock, c.count), lastBlock)
		b := numberBlock{c.top + 1, c.top + size}
		if _, err := s.table.putEntry(&TokenEntry{Type: typ, Number: b.last}, false); err != nil {
			return err
		}
		if err := s.table.saveFrames(); err != nil {
			return err
		}
		c.top, c.ours = b.last, b
		return nil
	})
}

// ResolveToken returns the entry that a token stands for, and false if the token does not exist in this session.
func (s *TokenSession) ResolveToken(token string) (TokenEntry, bool) {
	typ, number, ok := parseToken(token)
	if !ok {
		return TokenEntry{}, false
	}
	s.mu.RLock()
	e := s.entryByNumber(typ, number)
	s.mu.RUnlock()
	if e == nil && s.store.dir != "" {
		s.mu.Lock()
		_ = s.withExclusiveLock(func() error { return nil }) // another process may have minted it
		e = s.entryByNumber(typ, number)
		s.mu.Unlock()
	}
	if e == nil {
		return TokenEntry{}, false
	}
	return *e, true
}

// entryByNumber returns the entry with the number, or nil if it does not exist or cannot be read.
func (s *TokenSession) entryByNumber(typ string, number int) *TokenEntry {
	c := s.table.types[typ]
	if c == nil || number > maxNumber {
		return nil
	}
	place := c.numbers.OffsetAt(number)
	if place == 0 {
		return nil
	}
	r, err := s.table.recordAt(place)
	if err != nil || r.number != number || r.typ != typ {
		return nil
	}
	return r.toEntry()
}

// parseToken splits a token such as [EMAIL_1] into its type and number. It accepts only the exact spelling that
// MintToken returns.
func parseToken(token string) (typ string, number int, ok bool) {
	inner, open := strings.CutPrefix(token, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	cut := strings.LastIndexByte(inner, '_')
	if !open || !closed || cut < 1 {
		return "", 0, false
	}
	number, err := strconv.Atoi(inner[cut+1:])
	if err != nil || number < 1 || strconv.Itoa(number) != inner[cut+1:] || strings.ToUpper(inner[:cut]) != inner[:cut] {
		return "", 0, false
	}
	return strings.ToLower(inner[:cut]), number, true
}

// FindValue returns the entry of a value with this type, and false if the value is unknown.
func (s *TokenSession) FindValue(typ, value string) (TokenEntry, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, _, r, at, err := s.findEntry(typ, value)
	if err != nil || at == 0 {
		return TokenEntry{}, false
	}
	return *r.toEntry(), true
}

// EachOfType calls do with the entries of a type, in the order of their numbers, until do returns false. do must not
// use the session. It returns an error if an entry could not be read.
func (s *TokenSession) EachOfType(typ string, do func(TokenEntry) bool) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.table.eachOfType(typ, func(r *frameRecord) bool { return do(*r.toEntry()) })
}

// tokensOf returns the tokens of all values that the given function accepts.
func (s *TokenSession) tokensOf(told func(value string) bool) (tokens []string, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	err = s.table.eachLive(func(r *frameRecord) error {
		if told(string(r.value)) {
			tokens = append(tokens, s.table.columnOf(r.typ).tokenText(r.number))
		}
		return nil
	})
	return tokens, err
}

// SyncFile saves new tokens to disk. It must be called before a token is sent out, because a token that is lost
// afterwards could not be resolved.
func (s *TokenSession) SyncFile() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.savePending()
}

func (s *TokenSession) savePending() error {
	if len(s.table.pending) == 0 {
		return nil
	}
	return s.withExclusiveLock(func() error { return s.table.saveFrames() })
}

// RefreshTokens removes values from memory that another process has erased from disk. If nothing was erased, this
// takes only one stat call.
func (s *TokenSession) RefreshTokens() error {
	if s.store.dir == "" {
		return nil
	}
	now, err := os.Stat(s.store.keyPath(s.id))
	if err != nil {
		return nil // there is nothing yet
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stamp != nil && os.SameFile(now, s.stamp) && now.ModTime().Equal(s.stamp.ModTime()) {
		return nil
	}
	return s.withExclusiveLock(func() error { return nil })
}

// EraseTokens erases all values of the session.
func (s *TokenSession) EraseTokens() error {
	_, err := s.ForgetValues(func(string) bool { return true })
	return err
}

// ForgetValues erases the values of all types for which told returns true, and returns how many it erased. The
// remaining values are encrypted with a new key, and the old key is destroyed. Numbers are not reused. told may be
// called twice with the same value.
func (s *TokenSession) ForgetValues(told func(value string) bool) (erased int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.store.dir == "" || !s.store.hasSession(s.id) {
		next := s.table.newSuccessor(nil)
		erased, err = s.table.copyExcept(told, next.insertEntry)
		if err == nil {
			s.table = next
		}
		return erased, err
	}
	err = s.withExclusiveLock(func() error {
		if some, err := s.table.hasMatch(told); !some || err != nil {
			return err
		}
		return s.rewriteFile(func(put func(*TokenEntry) error) (err error) {
			erased, err = s.table.copyExcept(told, put)
			return err
		})
	})
	return erased, err
}

// rewriteFile replaces the session's file by one with a new key. The new file contains the entries that the function
// source supplies, and the highest reserved number of each type. Afterwards no entry is waiting to be saved.
func (s *TokenSession) rewriteFile(source func(put func(*TokenEntry) error) error) error {
	f, wrapped, err := s.createFile(func(put func(*TokenEntry) error) error {
		for typ, c := range s.table.types {
			if c.top > 0 {
				if err := put(&TokenEntry{Type: typ, Number: c.top}); err != nil {
					return err
				}
			}
		}
		return source(put)
	})
	if err != nil {
		return err
	}
	next := s.table.newSuccessor(f)
	s.closeFile()
	s.table, s.wrapped = next, wrapped
	return f.readFrames(next.addFrame)
}

// switchFile opens the data file of a key that another process has created. It keeps the pending entries, except
// additions to values that may have been erased.
func (s *TokenSession) switchFile(wrapped []byte) error {
	pending := s.table.unsavedEntries()
	next := s.table.newSuccessor(nil)
	for _, e := range pending {
		if err := next.insertEntry(e); err != nil {
			return err
		}
	}
	s.closeFile()
	s.table = next
	f, wrapped, err := s.openFile(wrapped)
	if err != nil {
		return err
	}
	s.table.file, s.wrapped = f, wrapped
	return nil
}

// saveAndClose saves the pending entries and closes the file.
func (s *TokenSession) saveAndClose() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.savePending()
	if err == nil {
		s.closeFile()
	}
	return err
}

// closeFile closes the file and removes the entries from memory. When the session is used again, it reads the file
// again and reserves another block of numbers.
func (s *TokenSession) closeFile() {
	if s.table.file == nil {
		return
	}
	_ = s.table.file.Close()
	s.table, s.wrapped, s.stamp = s.table.newSuccessor(nil), nil, nil
	for _, c := range s.table.types {
		c.ours = numberBlock{}
	}
}

// withExclusiveLock calls the given function while it holds the session's lock file. Before that, it reads what other
// processes have written, and creates the data file if it does not exist.
func (s *TokenSession) withExclusiveLock(do func() error) error {
	unlock, err := s.store.lockSession(s.id)
	if err != nil {
		return err
	}
	defer unlock()
	defer func() { s.stamp, _ = os.Stat(s.store.keyPath(s.id)) }()
	wrapped, err := s.store.readKey(s.id)
	if err != nil {
		return err
	}
	switch {
	case wrapped == nil:
		everything := func(put func(*TokenEntry) error) error {
			_, err := s.table.copyExcept(func(string) bool { return false }, put)
			return err
		}
		if err := s.rewriteFile(everything); err != nil {
			return err
		}
	case s.table.file == nil || !bytes.Equal(wrapped, s.wrapped):
		if err := s.switchFile(wrapped); err != nil {
			return err
		}
		fallthrough
	default:
		if err := s.table.file.readFrames(s.table.addFrame); err != nil {
			return err
		}
	}
	return do()
}
