package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"
)

// memory is a LogStore in memory for tests. It can simulate the faults of a disk or a network.
type memory struct {
	mu     sync.Mutex
	chain  string
	rows   map[string][]LogRow
	bases  map[string]int64
	open   []string
	keys   map[string]BodyKey
	size   func() int64             // returns the size of the store; nil: the size of the rows
	fails  func(b WriteBatch) error // returns an error to fail a write before anything is written
	lies   func(b WriteBatch) error // returns an error to fail a write after everything is written
	blind  func() error             // returns an error to fail Head
	slow   func()                   // is called within Append, to delay it
	drops  func() error             // is called before rows are dropped
	walks  func()                   // is called once, before rows are walked
	groups [][]LogRow               // the batches in the order in which they were written
}

var errFull = errors.New("no space left on device")

func newMemory(chain string) *memory {
	return &memory{chain: chain, rows: map[string][]LogRow{}, bases: map[string]int64{}, keys: map[string]BodyKey{}}
}

// afterPowerLoss returns a copy of what would be on disk if the machine lost power now.
func (m *memory) afterPowerLoss() *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	left := newMemory(m.chain)
	for chain, rows := range m.rows {
		left.rows[chain], left.bases[chain] = slices.Clone(rows), m.bases[chain]
	}
	for id, k := range m.keys {
		left.keys[id] = k
	}
	left.open = slices.Clone(m.open)
	return left
}

func (m *memory) set(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

func (m *memory) head(chain string) ChainHead {
	h := ChainHead{Chain: chain, Base: m.bases[chain], Seq: m.bases[chain]}
	if rows := m.rows[chain]; len(rows) > 0 {
		h.Seq, h.Hash = rows[len(rows)-1].Seq, rows[len(rows)-1].Hash
	}
	return h
}

func (m *memory) Head(context.Context) (ChainHead, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.blind != nil {
		if err := m.blind(); err != nil {
			return ChainHead{}, err
		}
	}
	return m.head(m.chain), nil
}

func (m *memory) Append(_ context.Context, b WriteBatch) error {
	m.mu.Lock()
	slow := m.slow
	m.mu.Unlock()
	if slow != nil {
		slow()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fails != nil {
		if err := m.fails(b); err != nil {
			return err
		}
	}
	head := m.head(m.chain)
	for i, r := range b.Rows {
		if r.Chain != m.chain || r.Seq != head.Seq+int64(i)+1 {
			return fmt.Errorf("row %d of %s does not follow %d", r.Seq, r.Chain, head.Seq)
		}
	}
	m.rows[m.chain] = append(m.rows[m.chain], b.Rows...)
	m.groups = append(m.groups, b.Rows)
	for _, k := range b.Keys {
		if _, there := m.keys[k.ID]; !there {
			m.keys[k.ID] = k
		}
	}
	m.open = append(m.open, b.Opened...)
	m.open = slices.DeleteFunc(m.open, func(id string) bool { return slices.Contains(b.Closed, id) })
	if m.lies != nil {
		return m.lies(b)
	}
	return nil
}

func (m *memory) Open(context.Context) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.open), nil
}

func (m *memory) Chains(context.Context) ([]ChainHead, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []ChainHead
	for chain := range m.rows {
		all = append(all, m.head(chain))
	}
	return all, nil
}

func (m *memory) Find(_ context.Context, f Filter) iter.Seq2[LogRow, error] {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []LogRow
	for _, rows := range m.rows {
		for _, r := range rows {
			if f.matchesRow(&r) {
				all = append(all, r)
			}
		}
	}
	slices.SortFunc(all, func(a, b LogRow) int { return placeOf(&b).compareTo(placeOf(&a)) })
	if f.Limit > 0 {
		all = all[:min(f.Limit, len(all))]
	}
	return func(yield func(LogRow, error) bool) {
		for _, r := range all {
			if f.Bare {
				r.Facts, r.Body = nil, nil
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (m *memory) Walk(_ context.Context, chain string, from int64) iter.Seq2[LogRow, error] {
	m.mu.Lock()
	if walks := m.walks; walks != nil {
		m.walks = nil
		m.mu.Unlock()
		walks()
		m.mu.Lock()
	}
	rows := slices.Clone(m.rows[chain])
	m.mu.Unlock()
	return func(yield func(LogRow, error) bool) {
		for _, r := range rows {
			if r.Seq >= from && !yield(r, nil) {
				return
			}
		}
	}
}

// Groups returns a UsageGroup for each row. Other stores return one for all rows that have the same day, kind,
// server, tool and status.
func (m *memory) Groups(ctx context.Context, f Filter) ([]UsageGroup, error) {
	var all []UsageGroup
	for r := range m.Find(ctx, f) {
		all = append(all, UsageGroup{
			Day: time.Unix(0, r.At).UTC().Format(time.DateOnly), Kind: r.Kind, Server: r.Server, Tool: r.Tool, Status: r.Status,
			Count: 1, Micros: r.Micros, Bytes: r.Bytes, Returned: r.Returned, Avoided: r.Avoided, MaxRisk: r.Risk,
		})
	}
	return all, nil
}

func (m *memory) Keys(_ context.Context, ids []string) (map[string]BodyKey, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := map[string]BodyKey{}
	for _, id := range ids {
		if k, ok := m.keys[id]; ok {
			found[id] = k
		}
	}
	return found, nil
}

func (m *memory) KeysOf(_ context.Context, principal, session string) (ids []string, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, k := range m.keys {
		if k.Principal == principal && k.Session == session {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

func (m *memory) Forget(_ context.Context, ids []string) (n int, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		if _, ok := m.keys[id]; ok {
			delete(m.keys, id)
			n++
		}
	}
	return n, nil
}

func (m *memory) Drop(_ context.Context, chain string, upTo int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.drops != nil {
		if err := m.drops(); err != nil {
			return err
		}
	}
	m.rows[chain] = slices.DeleteFunc(slices.Clone(m.rows[chain]), func(r LogRow) bool { return r.Seq <= upTo })
	m.bases[chain] = max(m.bases[chain], upTo)
	return nil
}

func (m *memory) Size(context.Context) (n int64, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.size != nil {
		return m.size(), nil
	}
	for _, rows := range m.rows {
		for _, r := range rows {
			n += sizeOf(&r)
		}
	}
	return n, nil
}

func (m *memory) Close() error { return nil }

// all returns the rows of the store's own chain.
func (m *memory) all() []LogRow {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.rows[m.chain])
}

// testKeys returns the keys of a fictitious owner.
func testKeys() LogKeys {
	key := func(b byte) func() ([]byte, error) {
		return func() ([]byte, error) { return bytes.Repeat([]byte{b}, keySize), nil }
	}
	return LogKeys{Bodies: key(1), Codes: key(2)}
}

// clock is a clock that changes only when a test sets it.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func newClock() *clock { return &clock{at: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)} }

func kindsOf(rows []LogRow) (kinds []string) {
	for _, r := range rows {
		kinds = append(kinds, r.Kind)
	}
	return kinds
}
