package vault

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"retort/internal/core"
	"retort/internal/devel/testenv"
)

// small lowers the limits of a vault, so that a session keeps few entries in memory and must read the others from
// disk.
func small(s *TokenVault) *TokenVault {
	s.limits.cache, s.limits.unsaved, s.limits.few = 4<<10, 40, 50
	return s
}

// model predicts, with plain maps, how the sessions of several processes must behave. It compares the real sessions
// with these predictions.
type model struct {
	*testing.T
	r      *rand.Rand
	open   func() *TokenSession
	own    []*TokenSession
	values map[string]TokenEntry // by token, for ever
	gone   map[string]bool       // tokens that were erased
	loose  []map[string]bool     // tokens that a process has not made durable
	lost   map[string]bool       // tokens that may have died with a process
	told   []map[valued]string   // what a process was told of a value
	from   map[string][]string   // where a value comes from, by token
}

type valued struct{ typ, value string }

func newModel(t *testing.T, seed uint64, processes int, open func() *TokenSession) *model {
	m := &model{T: t, r: rand.New(rand.NewPCG(seed, 1)), open: open, values: map[string]TokenEntry{}, gone: map[string]bool{}, lost: map[string]bool{}, from: map[string][]string{}}
	for range processes {
		m.own = append(m.own, open())
		m.loose = append(m.loose, map[string]bool{})
		m.told = append(m.told, map[valued]string{})
	}
	return m
}

func (m *model) check(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

func (m *model) mint(p int) {
	at := valued{[]string{"email", "name", "phone"}[m.r.IntN(3)], fmt.Sprintf("%d %s", m.r.IntN(400), strings.Repeat("x", m.r.IntN(2)*m.r.IntN(600)))}
	from := [][]string{nil, {"crm"}, {"drive"}, {"mail", "crm"}}[m.r.IntN(4)]
	token, err := m.own[p].MintToken(TokenEntry{Type: at.typ, Value: at.value, Digits: len(at.value)%2 == 0, From: from})
	m.check(err)
	if known, ok := m.told[p][at]; ok && known != token {
		m.Fatalf("%v was %s and is %s", at, known, token)
	}
	if known, ok := m.values[token]; ok && (known.Value != at.value || known.Type != at.typ) || m.gone[token] {
		m.Fatalf("%s of %v stands for %+v, erased %v", token, at, known, m.gone[token])
	}
	if _, ok := m.values[token]; !ok {
		m.loose[p][token] = true
	}
	m.told[p][at] = token
	m.values[token] = TokenEntry{Type: at.typ, Value: at.value, Digits: len(at.value)%2 == 0}
	for _, server := range from {
		if !slices.Contains(m.from[token], server) {
			m.from[token] = append(m.from[token], server)
		}
	}
	e, ok := m.own[p].ResolveToken(token)
	if !ok || lacksServer(e.From, from) {
		m.Fatalf("%s of %v: %+v, from %v", token, at, e, from)
	}
}

func (m *model) resolve(p int) {
	tokens := slices.Collect(func(yield func(string) bool) {
		for token := range m.values {
			if !yield(token) {
				return
			}
		}
	})
	if len(tokens) == 0 {
		return
	}
	slices.Sort(tokens)
	for range 20 {
		m.resolves(p, tokens[m.r.IntN(len(tokens))])
	}
}

func (m *model) resolves(p int, token string) {
	e, ok := m.own[p].ResolveToken(token)
	want := m.values[token]
	if ok && (m.gone[token] || e.Value != want.Value || e.Type != want.Type || e.Digits != want.Digits || lacksServer(m.from[token], e.From)) {
		m.Fatalf("%s: %+v, want %+v from %v, erased: %v", token, e, want, m.from[token], m.gone[token])
	}
	if !ok && !m.gone[token] && !m.lost[token] && !m.elsewhere(p, token) {
		m.Fatalf("%s of %+v is lost", token, want)
	}
}

// elsewhere reports whether a process other than p holds the token but has not yet saved it to disk.
func (m *model) elsewhere(p int, token string) bool {
	for other := range m.loose {
		if other != p && m.loose[other][token] {
			return true
		}
	}
	return false
}

func (m *model) sync(p int) {
	m.check(m.own[p].SyncFile())
	clear(m.loose[p])
}

func (m *model) forget(p int) {
	for p := range m.own {
		m.sync(p)
	}
	digit := fmt.Sprint(10 + m.r.IntN(90))
	told := func(v string) bool { return strings.HasPrefix(v, digit) }
	n, err := m.own[p].ForgetValues(told)
	m.check(err)
	for token, e := range m.values {
		if !told(e.Value) || m.gone[token] {
			continue
		}
		m.gone[token] = true
		if !m.lost[token] {
			n--
		}
		for p := range m.told {
			delete(m.told[p], valued{e.Type, e.Value})
		}
	}
	if n != 0 && len(m.lost) == 0 {
		m.Fatalf("%d more were erased than there were", n)
	}
	for p := range m.own {
		m.check(m.own[p].RefreshTokens())
	}
}

// die simulates that process p crashes and is replaced by a new one, so that its unsaved tokens may be lost.
func (m *model) die(p int) {
	for token := range m.loose[p] {
		m.lost[token] = true
	}
	clear(m.loose[p])
	m.told[p] = map[valued]string{}
	m.own[p] = m.open()
}

// TestModel checks with random operations that processes which share a session behave as the type model predicts.
func TestModel(t *testing.T) {
	seeds := uint64(3)
	if testenv.Full() {
		seeds = 6
	}
	for seed := range seeds {
		for name, processes := range map[string]int{"memory": 0, "one": 1, "three": 3} {
			t.Run(fmt.Sprint(name, " ", seed), func(t *testing.T) {
				dir, memory := "", Open("", nil, 0)
				if processes > 0 {
					dir = t.TempDir()
				}
				m := newModel(t, seed, max(processes, 1), func() *TokenSession {
					if dir == "" {
						return session(t, memory, "default")
					}
					return session(t, small(Open(dir, fixed(1), 0)), "default")
				})
				for range 1500 {
					m.step(dir != "")
				}
				m.end()
			})
		}
	}
}

func (m *model) step(disk bool) {
	p := m.r.IntN(len(m.own))
	switch n := m.r.IntN(300); {
	case n < 240:
		m.mint(p)
	case n < 280:
		m.resolve(p)
	case n < 292:
		m.sync(p)
	case n < 297:
		m.forget(p)
	case disk:
		m.die(p)
	}
}

// end opens the session again and checks its tokens at the end of a test. Erased tokens must no longer exist, and all
// others must exist, except those that may have been lost in a crash.
func (m *model) end() {
	for p := range m.own {
		m.sync(p)
	}
	m.own[0] = m.open()
	left := map[string]TokenEntry{}
	for _, typ := range []string{"email", "name", "phone"} {
		last := 0
		m.check(m.own[0].EachOfType(typ, func(e TokenEntry) bool {
			if e.Number <= last {
				m.Errorf("%d after %d", e.Number, last)
			}
			last = e.Number
			left[fmt.Sprintf("[%s_%d]", strings.ToUpper(typ), e.Number)] = e
			return true
		}))
	}
	for token := range m.values {
		m.resolves(0, token)
		if _, ok := left[token]; ok == m.gone[token] && !m.lost[token] {
			m.Errorf("%s: there %v, erased %v", token, ok, m.gone[token])
		}
	}
	if len(left) < 100 {
		m.Errorf("%d are left, which says little", len(left))
	}
}

// TestConcurrentReads checks that several goroutines can mint and resolve tokens of one session while its frames are
// read from disk. The memory must stay within the limits.
func TestConcurrentReads(t *testing.T) {
	dir := t.TempDir()
	s := session(t, small(Open(dir, fixed(1), 0)), "default")
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 1))
			for range 5000 {
				n := r.IntN(3000)
				value := fmt.Sprint("user", n, "@x.org")
				token, err := s.MintToken(TokenEntry{Type: "email", Value: value, From: []string{"crm"}})
				if err != nil {
					t.Error(err)
					return
				}
				if e, ok := s.ResolveToken(token); !ok || e.Value != value {
					t.Errorf("%s: %+v, want %s", token, e, value)
				}
			}
		})
	}
	all.Wait()
	bytes := 0
	for i := range s.table.slots {
		if f := s.table.slots[i].frame.Load(); f != nil {
			bytes += f.memorySize()
		}
	}
	if bytes > s.store.limits.cache+s.store.limits.unsaved*100 || s.table.unsaved >= s.store.limits.unsaved {
		t.Errorf("%d bytes are in memory, %d entries not on disk", bytes, s.table.unsaved)
	}
}

// TestManyValues checks that 200,000 values get different tokens. The index stores only a part of each value's hash,
// and with so many values, some of these parts are equal.
func TestManyValues(t *testing.T) {
	s := session(t, Open("", nil, 0), "default")
	const n = 200_000
	for range 2 {
		for i := range n {
			if got, want := mint(t, s, "email", fmt.Sprint("user", i, "@x.org")), fmt.Sprintf("[EMAIL_%d]", i+1); got != want {
				t.Fatalf("%d: %s", i, got)
			}
		}
	}
	if e, ok := s.ResolveToken(fmt.Sprintf("[EMAIL_%d]", n)); !ok || e.Value != fmt.Sprint("user", n-1, "@x.org") {
		t.Errorf("%+v", e)
	}
}

// TestOriginsOfProcesses checks that the servers which two processes add to one value are merged, and are saved only
// once.
func TestOriginsOfProcesses(t *testing.T) {
	dir := t.TempDir()
	open := func() *TokenSession {
		store := small(Open(dir, fixed(1), 0))
		store.limits.few = 1
		return session(t, store, "default")
	}
	learn := func(s *TokenSession, server string) {
		if token, err := s.MintToken(TokenEntry{Type: "email", Value: "a@x.org", From: []string{server}}); token != "[EMAIL_1]" || err != nil {
			t.Fatal(token, err)
		}
	}
	a := open()
	learn(a, "crm")
	learn(a, "crm")
	learn(a, "crm")
	synced(t, a)
	b := open()
	learn(a, "drive")
	learn(b, "mail")
	synced(t, a)
	synced(t, b)
	synced(t, b)
	for range 10 {
		learn(b, "crm")
		learn(b, "drive")
		learn(b, "mail")
	}
	if b.table.unsaved != 0 {
		t.Errorf("%d entries are to be written", b.table.unsaved)
	}
	for name, s := range map[string]*TokenSession{"b": b, "again": open()} {
		if e, ok := s.ResolveToken("[EMAIL_1]"); !ok || !slices.Equal(e.From, []string{"crm", "drive", "mail"}) {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// TestErasedMeanwhile checks that a value which one process has erased does not come back when another process adds a
// server to the list of servers that have sent it.
func TestErasedMeanwhile(t *testing.T) {
	dir := t.TempDir()
	a, b := session(t, Open(dir, fixed(1), 0), "s"), session(t, Open(dir, fixed(1), 0), "s")
	mint(t, a, "email", "a@x.org")
	synced(t, a)
	if token, err := a.MintToken(TokenEntry{Type: "email", Value: "a@x.org", From: []string{"drive"}}); token != "[EMAIL_1]" || err != nil {
		t.Fatal(token, err)
	}
	if n, err := b.ForgetValues(func(string) bool { return true }); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	synced(t, a)
	if e, ok := session(t, Open(dir, fixed(1), 0), "s").ResolveToken("[EMAIL_1]"); ok {
		t.Errorf("%+v", e)
	}
}

// TestMintedByAnother checks that a process reuses the token that another process has saved for a value.
func TestMintedByAnother(t *testing.T) {
	dir := t.TempDir()
	a, b := session(t, Open(dir, fixed(1), 0), "s"), session(t, Open(dir, fixed(1), 0), "s")
	token := mint(t, a, "email", "a@x.org")
	synced(t, a)
	if got := mint(t, b, "email", "a@x.org"); got != token {
		t.Errorf("%s, and %s", token, got)
	}
}

// TestUnsaved checks that the number of unsaved entries stays below its limit even if SyncFile is not called.
func TestUnsaved(t *testing.T) {
	s := session(t, small(Open(t.TempDir(), fixed(1), 0)), "default")
	for _, server := range []string{"crm", "drive"} {
		for i := range 500 {
			if _, err := s.MintToken(TokenEntry{Type: "email", Value: fmt.Sprint(i, "@x.org"), From: []string{server}}); err != nil {
				t.Fatal(err)
			}
			if s.table.unsaved >= 40 {
				t.Fatalf("%d entries are not on disk", s.table.unsaved)
			}
		}
	}
}

// TestFull checks that a full session refuses new values with an error, keeps its tokens, and accepts new values
// after one was erased.
func TestFull(t *testing.T) {
	for name, dir := range map[string]string{"memory": "", "disk": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			store := Open(dir, fixed(1), 0)
			store.limits.entries = 100
			s := session(t, store, "default")
			for i := range 100 {
				mint(t, s, "email", fmt.Sprint(i, "@x.org"))
			}
			_, err := s.MintToken(TokenEntry{Type: "email", Value: "more@x.org"})
			if e := core.AsError(err); err == nil || e.Kind != core.KindLimit || !strings.Contains(e.Hint, "retort audit erase") {
				t.Fatalf("%v", err)
			}
			synced(t, s)
			if got := mint(t, s, "email", "99@x.org"); got != "[EMAIL_100]" {
				t.Error(got)
			}
			if e, ok := s.ResolveToken("[EMAIL_1]"); !ok || e.Value != "0@x.org" {
				t.Errorf("%+v", e)
			}
			if n, err := s.ForgetValues(func(v string) bool { return v == "0@x.org" }); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			if got := mint(t, s, "email", "more@x.org"); got == "[EMAIL_1]" {
				t.Errorf("%s is used again", got)
			}
		})
	}
}
