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

	mu      sync.RWMutex
	types   map[string]*column
	count   int         // of entries
	changes int         // how often entries came or went
	pending []*Entry    // not on disk yet
	wrapped []byte      // the session's key, as it is on disk; nil before there is one
	file    *file       // nil without a key
	stamp   os.FileInfo // of the key, as it was last read
}

// column is what there is of one type.
type column struct {
	prefix  string            // of its tokens
	values  map[string]*Entry // by value
	numbers []*Entry          // that with number n at n; nil where there is none
	top     int               // the highest number that anybody has, or has taken
	ours    block             // numbers that only this process uses
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
	for _, c := range s.types {
		c.values, c.numbers, c.top = map[string]*Entry{}, nil, 0
	}
	s.count, s.changes = 0, s.changes+1
}

// column is that of a type; one is made if there is none.
func (s *Session) column(typ string) *column {
	c := s.types[typ]
	if c == nil {
		c = &column{prefix: "[" + strings.ToUpper(typ) + "_", values: map[string]*Entry{}}
		s.types[typ] = c
	}
	return c
}

// find is the entry of a value; nil if there is none.
func (s *Session) find(typ, value string) *Entry {
	if c := s.types[typ]; c != nil {
		return c.values[value]
	}
	return nil
}

// Mint is the token of a value, the same as before if there was one; new servers that it
// comes from are added then. A number that is given out was taken durably, so that it
// never stands for anything else.
func (s *Session) Mint(e Entry) (token string, err error) {
	s.mu.RLock()
	known, changes := s.find(e.Type, e.Value), s.changes
	s.mu.RUnlock()
	if known != nil && !known.lacks(e.From) {
		return known.token, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known != nil || s.changes != changes {
		if known := s.known(e); known != nil {
			return known.token, nil
		}
	}
	if s.count >= MaxEntries {
		return "", ErrFull
	}
	c := s.column(e.Type)
	if c.ours.next > c.ours.last || c.ours.next == 0 {
		if err := s.reserve(e.Type, c); err != nil {
			return "", err
		}
		if known := s.known(e); known != nil { // by another process
			return known.token, nil
		}
	}
	entry := e
	entry.Number = c.ours.next
	c.ours.next++
	s.add(&entry)
	if s.store.dir != "" {
		s.pending = append(s.pending, &entry)
	}
	return entry.token, nil
}

// known is the entry of a value, with the servers that it comes from now.
func (s *Session) known(e Entry) *Entry {
	known := s.find(e.Type, e.Value)
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
func (s *Session) reserve(typ string, c *column) error {
	if s.store.dir == "" {
		c.ours = block{1, math.MaxInt}
		return nil
	}
	return s.alone(func() error {
		size := min(max(firstBlock, len(c.values)), lastBlock)
		b := block{c.top + 1, c.top + size}
		if err := s.file.append([]*Entry{{Type: typ, Number: b.last}}); err != nil {
			return err
		}
		c.top, c.ours = b.last, b
		return nil
	})
}

func (s *Session) add(e *Entry) {
	c := s.column(e.Type)
	var room [32]byte
	e.token = string(append(strconv.AppendInt(append(room[:0], c.prefix...), int64(e.Number), 10), ']'))
	s.changes++
	if len(c.numbers) <= e.Number {
		c.numbers = append(c.numbers, make([]*Entry, e.Number+1-len(c.numbers))...)
	}
	if old := c.numbers[e.Number]; old == nil {
		s.count++
	} else {
		e.From = slices.Compact(slices.Sorted(slices.Values(slices.Concat(old.From, e.From))))
	}
	c.numbers[e.Number] = e
	if old := c.values[e.Value]; old == nil || old.Number == e.Number { // two processes can have met it at once
		c.values[e.Value] = e
	}
	c.top = max(c.top, e.Number)
}

// at is the entry with a number; nil if there is none.
func (s *Session) at(typ string, number int) *Entry {
	if c := s.types[typ]; c != nil && number < len(c.numbers) {
		return c.numbers[number]
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
	c := s.column(e.Type)
	c.top = max(c.top, e.Number)
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
	e := s.find(typ, value)
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
	for _, typ := range slices.Sorted(maps.Keys(s.types)) {
		for _, e := range s.types[typ].numbers {
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
		for _, c := range s.types {
			for n, e := range c.numbers {
				if e != nil && told(e) {
					c.numbers[n] = nil
					delete(c.values, e.Value)
					erased++
				}
			}
		}
		s.changes++
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
	for typ, c := range s.types {
		if c.top > 0 {
			all = append(all, &Entry{Type: typ, Number: c.top})
		}
	}
	for _, c := range s.types {
		for _, e := range c.numbers {
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
