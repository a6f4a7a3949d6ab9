// Package tokens counts executions and model tokens: the tokens that were sent to the model, and those that would
// have been sent to it without Retort.
package tokens

import (
	"maps"
	"slices"
	"sync"
	"time"

	"retort/internal/core"
)

// sampledBytes bounds how many bytes of an execution's data are tokenized, so that counting takes at most a few
// milliseconds. The number of tokens in larger data is extrapolated.
const sampledBytes = 16 << 10

// TokenLedger counts tokens and executions per session. It is safe for concurrent use.
type TokenLedger struct {
	mu       sync.Mutex
	sessions map[string]*sessionTotals
	all      sessionTotals
}

type sessionTotals struct {
	active      int
	executions  int
	byStatus    map[core.OutcomeStatus]int
	durations   []float64 // milliseconds of the last maxDurations executions
	tokens      core.TokenStats
	definitions bool // the definitions were counted for this session
	toolCalls   int
	cacheHits   int
}

// maxDurations bounds the number of durations from which percentiles are computed.
const maxDurations = 1000

func New() *TokenLedger { return &TokenLedger{sessions: map[string]*sessionTotals{}} }

// LedgerEntry counts the tokens of one execution. It is safe for concurrent use.
type LedgerEntry struct {
	ledger  *TokenLedger
	session string
	start   time.Time

	mu    sync.Mutex
	bytes int
	data  messageSample
	once  sync.Once
}

// Open begins counting one execution of a session. The caller must call CloseOnce on the LedgerEntry.
func (l *TokenLedger) Open(session string) *LedgerEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.totalsOf(session).active++
	l.all.active++
	return &LedgerEntry{ledger: l, session: session, start: time.Now()}
}

func (l *TokenLedger) totalsOf(name string) *sessionTotals {
	t, ok := l.sessions[name]
	if !ok {
		if len(l.sessions) >= maxSessions {
			maps.DeleteFunc(l.sessions, func(_ string, t *sessionTotals) bool { return t.active == 0 })
		}
		t = &sessionTotals{}
		l.sessions[name] = t
	}
	return t
}

// maxSessions bounds the number of sessions for which counts are kept. Beyond it, sessions without a running
// execution are dropped.
const maxSessions = 1000

// AddCarried counts the tokens in the arguments or the result of a tool call that a program made. The program handles
// this data itself, so the model never receives these tokens.
func (e *LedgerEntry) AddCarried(data []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.bytes += len(data)
	e.data.addMessage(data)
}

// SinceStart returns the time since the entry was opened.
func (e *LedgerEntry) SinceStart() time.Duration { return time.Since(e.start) }

// CloseOnce ends the entry and sets Stats.Tokens and Stats.DurationMS of the execution's Outcome o. returned is the
// number of tokens sent to the model. definitions is the number of tokens in the definitions of all tools; it is
// counted once per session. Only the first call has an effect.
func (e *LedgerEntry) CloseOnce(o *core.Outcome, returned, definitions int) {
	e.once.Do(func() { e.closeWithTotals(o, returned, definitions) })
}

func (e *LedgerEntry) closeWithTotals(o *core.Outcome, returned, definitions int) {
	e.mu.Lock()
	data := e.data.estimateTokens(e.bytes)
	e.mu.Unlock()

	l := e.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	session := l.totalsOf(e.session)
	tokens := core.TokenStats{Returned: returned, AvoidedData: max(0, data-returned)}
	if !session.definitions {
		session.definitions = true
		tokens.AvoidedDefinitions = definitions
	}
	tokens.Avoided = tokens.AvoidedData + tokens.AvoidedDefinitions
	o.Stats.Tokens = &tokens
	o.Stats.DurationMS = float64(e.SinceStart().Microseconds()) / 1000
	session.addOutcome(o)
	l.all.addOutcome(o)
}

func (t *sessionTotals) addOutcome(o *core.Outcome) {
	t.active--
	t.executions++
	if t.byStatus == nil {
		t.byStatus = map[core.OutcomeStatus]int{}
	}
	t.byStatus[o.Status]++
	if len(t.durations) == maxDurations {
		t.durations = t.durations[1:]
	}
	t.durations = append(t.durations, o.Stats.DurationMS)
	t.toolCalls += o.Stats.ToolCalls
	t.cacheHits += o.Stats.CacheHits
	t.tokens.Returned += o.Stats.Tokens.Returned
	t.tokens.Avoided += o.Stats.Tokens.Avoided
	t.tokens.AvoidedData += o.Stats.Tokens.AvoidedData
	t.tokens.AvoidedDefinitions += o.Stats.Tokens.AvoidedDefinitions
}

// LedgerSummary holds the statistics about executions that the tool get_execution_stats returns.
type LedgerSummary struct {
	Session    string                     `json:"session,omitempty"`
	Active     int                        `json:"active"`
	Total      int                        `json:"total"`
	ByStatus   map[core.OutcomeStatus]int `json:"by_status,omitempty"`
	ToolCalls  int                        `json:"tool_calls"`
	CacheHits  int                        `json:"cache_hits,omitempty"` // results that came from the cache
	DurationMS *Percentiles               `json:"duration_ms,omitempty"`
	Tokens     core.TokenStats            `json:"tokens"`
}

// Percentiles holds percentiles of the durations of recent executions, in milliseconds.
type Percentiles struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	Max float64 `json:"max"`
}

// SummaryOf returns the statistics of one session, or of all sessions if session is empty.
func (l *TokenLedger) SummaryOf(session string) LedgerSummary {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := &l.all
	if session != "" {
		if t = l.sessions[session]; t == nil {
			t = &sessionTotals{}
		}
	}
	s := LedgerSummary{
		Session: session, Active: t.active, Total: t.executions, ToolCalls: t.toolCalls, CacheHits: t.cacheHits, Tokens: t.tokens,
		ByStatus: map[core.OutcomeStatus]int{}, DurationMS: percentilesOf(t.durations),
	}
	for status, n := range t.byStatus {
		s.ByStatus[status] = n
	}
	return s
}

func percentilesOf(durations []float64) *Percentiles {
	if len(durations) == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(durations))
	rank := func(p float64) float64 { return sorted[int(p*float64(len(sorted)-1)+0.5)] }
	return &Percentiles{P50: rank(0.5), P95: rank(0.95), Max: sorted[len(sorted)-1]}
}
