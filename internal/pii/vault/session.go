package vault

import (
	"bytes"
	"errors"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Session is the tokens of one session. It is safe for concurrent use, also by several
// processes: each takes blocks of numbers for itself.
type Session struct {
	store *Store
	id    string

	mu       sync.RWMutex
	byValue  map[string]map[string]*Entry // by type and value
	byNumber map[string][]*Entry          // by type, that with number n at n; nil where there is none
	count    int                          // of entries
	top      map[string]int               // the highest number of a type that anybody has, or has taken
	ours     map[string]block             // numbers that only this process uses
	pending  []*Entry                     // not on disk yet
	wrapped  []byte                       // the session's key, as it is on disk; nil before there is one
	file     *file                        // nil without a key
	stamp    os.FileInfo                  // of the key, as it was last read
}

// block is numbers that have been taken: from next to last.
type block struct{ next, last int }

const (
	// MaxEntries bounds a session.
	MaxEntries = 2_000_000
	firstBlock = 16
	lastBlock  = 4096
)

// ErrFull says that a session has as many values as it can have.
var ErrFull = errors.New("the session holds more personal values than it can")

func (s *Session) clear() {
	s.byValue, s.byNumber, s.top, s.count = map[string]map[string]*Entry{}, map[string][]*Entry{}, map[string]int{}, 0
}

// Mint is the token of a value, the same as before if there was one; new servers that it
// comes from are added then. A number that is given out was taken durably, so that it
// never stands for anything else.
func (s *Session) Mint(e Entry) (token string, err error) {
	s.mu.RLock()
	known := s.byValue[e.Type][e.Value]
	if known != nil && !known.lacks(e.From) {
		s.mu.RUnlock()
		return known.token, nil
	}
	s.mu.RUnlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.known(e); known != nil {
		return known.token, nil
	}
	if s.count >= MaxEntries {
		return "", ErrFull
	}
	if b := s.ours[e.Type]; b.next > b.last || b.next == 0 {
		if err := s.reserve(e.Type); err != nil {
			return "", err
		}
		if known := s.known(e); known != nil { // by another process
			return known.token, nil
		}
	}
	b := s.ours[e.Type]
	e.Number = b.next
	s.ours[e.Type] = block{b.next + 1, b.last}
	s.add(&e)
	if s.store.dir != "" {
		s.pending = append(s.pending, &e)
	}
	return e.token, nil
}

// known is the entry of a value, with the servers that it comes from now.
func (s *Session) known(e Entry) *Entry {
	known := s.byValue[e.Type][e.Value]
	if known != nil {
		s.learn(known, e.From)
	}
	return known
}

// lacks reports whether there is a server that an entry is not known to come from.
func (e *Entry) lacks(from []string) bool {
	return slices.ContainsFunc(from, func(server string) bool { return !slices.Contains(e.From, server) })
}

// learn adds servers to an entry.
func (s *Session) learn(e *Entry, from []string) {
	if !e.lacks(from) {
		return
	}
	more := *e
	more.From = slices.Compact(slices.Sorted(slices.Values(slices.Concat(e.From, from))))
	s.add(&more)
	if s.store.dir != "" {
		s.pending = append(s.pending, &more)
	}
}

// reserve takes a block of numbers; the more were needed, the larger it is.
func (s *Session) reserve(typ string) error {
	if s.store.dir == "" {
		s.ours[typ] = block{1, math.MaxInt}
		return nil
	}
	return s.alone(func() error {
		size := min(max(firstBlock, len(s.byValue[typ])), lastBlock)
		b := block{s.top[typ] + 1, s.top[typ] + size}
		if err := s.file.append([]*Entry{{Type: typ, Number: b.last}}); err != nil {
			return err
		}
		s.top[typ], s.ours[typ] = b.last, b
		return nil
	})
}

func (s *Session) add(e *Entry) {
	e.token = "[" + strings.ToUpper(e.Type) + "_" + strconv.Itoa(e.Number) + "]"
	numbers := s.byNumber[e.Type]
	if len(numbers) <= e.Number {
		numbers = append(numbers, make([]*Entry, e.Number+1-len(numbers))...)
		s.byNumber[e.Type] = numbers
	}
	if old := numbers[e.Number]; old == nil {
		s.count++
	} else {
		e.From = slices.Compact(slices.Sorted(slices.Values(slices.Concat(old.From, e.From))))
	}
	numbers[e.Number] = e
	values := s.byValue[e.Type]
	if values == nil {
		values = map[string]*Entry{}
		s.byValue[e.Type] = values
	}
	if old := values[e.Value]; old == nil || old.Number == e.Number { // two processes can have met it at once
		values[e.Value] = e
	}
	s.top[e.Type] = max(s.top[e.Type], e.Number)
}

// at is the entry with a number; nil if there is none.
func (s *Session) at(typ string, number int) *Entry {
	if numbers := s.byNumber[typ]; number < len(numbers) {
		return numbers[number]
	}
	return nil
}

// take takes in what was read. Without a value it says that the numbers up to its own
// are taken.
func (s *Session) take(e *Entry) error {
	if e.Number < 1 || e.Number > 100*MaxEntries {
		return errors.New("a number is none")
	}
	if e.Value != "" {
		s.add(e)
	}
	s.top[e.Type] = max(s.top[e.Type], e.Number)
	return nil
}

// Resolve is what a token stands for, if it was minted in this session.
func (s *Session) Resolve(token string) (Entry, bool) {
	typ, number, ok := parse(token)
	if !ok {
		return Entry{}, false
	}
	s.mu.RLock()
	e := s.at(typ, number)
	s.mu.RUnlock()
	if e == nil && s.store.dir != "" {
		s.mu.Lock()
		_ = s.alone(func() error { return nil }) // another process may have minted it
		e = s.at(typ, number)
		s.mu.Unlock()
	}
	if e == nil {
		return Entry{}, false
	}
	return *e, true
}

// parse reads [EMAIL_1]. Only the one spelling that Token writes is one.
func parse(token string) (typ string, number int, ok bool) {
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

// Find is the entry of a value of a type.
func (s *Session) Find(typ, value string) (Entry, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	e := s.byValue[typ][value]
	if e == nil {
		return Entry{}, false
	}
	return *e, true
}

// All is every entry, by type and number.
func (s *Session) All() []Entry {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make([]Entry, 0, s.count)
	for _, typ := range slices.Sorted(maps.Keys(s.byNumber)) {
		for _, e := range s.byNumber[typ] {
			if e != nil {
				all = append(all, *e)
			}
		}
	}
	return all
}

// Sync makes durable what was minted. Before it has, no token should leave: one that is
// told and forgotten means nothing later.
func (s *Session) Sync() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) == 0 {
		return nil
	}
	now := time.Now().UTC()
	for _, e := range s.pending {
		if e.Seen.IsZero() {
			e.Seen = now
		}
	}
	return s.alone(func() error {
		if err := s.file.append(s.pending); err != nil {
			return err
		}
		s.pending = nil
		return nil
	})
}

// Forget erases values, of whatever type, and reports how many there were. What is left
// gets a new key, and the old one is destroyed. Numbers are not used again.
func (s *Session) Forget(told func(value string) bool) (int, error) {
	return s.forget(func(e *Entry) bool { return told(e.Value) })
}

// Refresh forgets what another process has erased. Where none has, it looks at a file.
func (s *Session) Refresh() error {
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
	return s.alone(func() error { return nil })
}

// Erase erases everything.
func (s *Session) Erase() error {
	_, err := s.forget(func(*Entry) bool { return true })
	return err
}

func (s *Session) forget(told func(*Entry) bool) (erased int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	drop := func() {
		for _, numbers := range s.byNumber {
			for n, e := range numbers {
				if e != nil && told(e) {
					numbers[n] = nil
					delete(s.byValue[e.Type], e.Value)
					erased++
				}
			}
		}
		s.pending = slices.DeleteFunc(s.pending, told)
		s.count -= erased
	}
	if s.store.dir == "" || !s.store.has(s.id) {
		drop()
		return erased, nil
	}
	err = s.alone(func() error {
		if drop(); erased == 0 {
			return nil
		}
		return s.rewrite()
	})
	return erased, err
}

// kept is everything, with the numbers that are taken.
func (s *Session) kept() []*Entry {
	var all []*Entry
	for typ, top := range s.top {
		all = append(all, &Entry{Type: typ, Number: top})
	}
	for _, numbers := range s.byNumber {
		for _, e := range numbers {
			if e != nil {
				all = append(all, e)
			}
		}
	}
	return all
}

// rewrite writes everything anew, with a new key.
func (s *Session) rewrite() error {
	f, wrapped, err := s.create(s.kept())
	if err != nil {
		return err
	}
	s.close()
	s.file, s.wrapped, s.pending = f, wrapped, nil
	return nil
}

// renewed begins anew with what is on disk, after another process has given it another
// key; what that has erased is erased here too. What is pending stays.
func (s *Session) renewed() {
	s.close()
	s.clear()
	for _, e := range s.pending {
		s.add(e)
	}
}

func (s *Session) close() {
	if s.file != nil {
		_ = s.file.Close()
		s.file, s.wrapped = nil, nil
	}
}

// alone does something while no other process writes, after what others have written
// was read. There is a file then.
func (s *Session) alone(do func() error) error {
	unlock, err := s.store.lock(s.id)
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
		s.close()
		if err := s.rewrite(); err != nil {
			return err
		}
	case s.file == nil || !bytes.Equal(wrapped, s.wrapped):
		s.renewed()
		if err := s.open(wrapped); err != nil {
			return err
		}
		fallthrough
	default:
		if err := s.file.read(s.take); err != nil {
			return err
		}
	}
	return do()
}
