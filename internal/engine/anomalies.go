package engine

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"sync"
	"time"

	"retort/internal/anomaly"
	"retort/internal/base/webhook"
	"retort/internal/core"
	"retort/internal/pipeline"
)

// watching feeds the anomaly watch from the audit log. It reads past entries when the first execution begins.
type watching struct {
	p      *parts
	watch  *anomaly.AnomalyWatcher
	alerts *webhook.MessageQueue // nil: there is no address
	begin  sync.Once
	ready  chan struct{} // closed once what happened before is known
	ctx    context.Context
	end    context.CancelFunc
	work   sync.WaitGroup

	mu     sync.Mutex
	known  bool
	queued []core.AuditEvent // what happens meanwhile
	urgent bool              // some of it is told without a comparison
}

// Bounds of learning from the audit log: how far back it is read, how many entries and events it may have, and how
// long the first call of an engine waits for it.
const (
	lookback    = 30 * 24 * time.Hour
	maxReplayed = 100_000 // entries of a chain
	maxMeantime = 20_000  // events
	meantime    = 5 * time.Second
)

// watched creates the anomaly monitor. The audit log is opened with it and passes it each event.
func (p *parts) watched() (*watching, error) {
	s := p.config.Settings.Anomalies
	w := &watching{p: p, ready: make(chan struct{})}
	w.ctx, w.end = context.WithCancel(context.Background())
	if s.Webhook.URL != "" {
		to, err := webhook.New(s.Webhook.URL, s.Webhook.Secret)
		if err != nil {
			return nil, core.Errorf(core.KindInvalidArguments, "anomalies.webhook", "anomalies.webhook: %w", err)
		}
		w.alerts = webhook.NewQueue(to, p.log)
		p.onClose(w.alerts.Close)
	}
	actions := map[anomaly.Kind]anomaly.AnomalyAction{}
	for _, kind := range anomaly.AllKinds() {
		actions[kind] = anomaly.AnomalyAction(s.ActionFor(string(kind)))
	}
	w.watch = anomaly.New(anomaly.Options{Zone: time.Local, Actions: actions}, w.found)
	return w, nil
}

// Close stops reading the audit log. The log itself is closed afterwards.
func (w *watching) Close() error {
	w.begin.Do(func() { close(w.ready) })
	w.end()
	w.work.Wait()
	return nil
}

// seen receives each event that the audit log records. The first request starts the replay of past entries. Events
// that arrive before the replay is done are queued.
func (w *watching) seen(e core.AuditEvent) {
	if e.Kind == core.EventRequest {
		w.begin.Do(func() { w.work.Go(w.recall) })
	}
	w.mu.Lock()
	if !w.known && len(w.queued) < maxMeantime {
		w.queued = append(w.queued, e)
		listed, _ := e.Facts["blacklist"].(bool)
		w.urgent = w.urgent || listed
		w.mu.Unlock()
		return
	}
	w.mu.Unlock()
	w.watch.ObserveEvent(e)
}

// recall replays the entries of earlier engines into the watch, and then the events that were queued during the
// replay.
func (w *watching) recall() {
	defer close(w.ready)
	start, n := time.Now(), 0
	others := w.p.others(w.ctx)
	defer func() {
		for _, s := range others {
			_ = s.Close()
		}
	}()
	for e, err := range w.p.audit.ReplayEvents(w.ctx, start.Add(-lookback), maxReplayed, others...) {
		if err != nil {
			w.p.log.Warn("usual behaviour cannot be learned from the complete audit log", "error", err)
			continue
		}
		w.watch.ReplayEvent(e)
		n++
	}
	w.p.log.Debug("usual behaviour was learned from the audit log", "entries", n, "ms", time.Since(start).Milliseconds())
	for {
		w.mu.Lock()
		some := w.queued
		w.queued, w.known = nil, len(some) == 0
		w.mu.Unlock()
		if len(some) == 0 {
			return
		}
		for _, e := range some {
			w.watch.ObserveEvent(e)
		}
	}
}

// Judge implements pipeline.AnomalyWatch. After a start, the first calls wait up to 5 s until the audit log is
// replayed. Only then it is known which executions were stopped before the previous engine ended.
func (w *watching) Judge(ctx context.Context, call core.AuditEvent) (pipeline.AnomalyVerdict, *core.Error) {
	select {
	case <-w.ready:
	default:
		w.wait(ctx)
	}
	j := w.watch.Judge(call)
	return pipeline.AnomalyVerdict{Kinds: j.Kinds, Rule: j.Rule}, j.Refused
}

func (w *watching) wait(ctx context.Context) {
	timer := time.NewTimer(meantime)
	defer timer.Stop()
	select {
	case <-w.ready:
	case <-ctx.Done():
	case <-timer.C:
	}
}

func (w *watching) Stopped(execution string) *core.Error { return w.watch.Stopped(execution) }

// Warnings returns the warnings about an execution. It waits for the replay first if a queued event needs no
// comparison with the past to be reported.
func (w *watching) Warnings(execution string) []string {
	w.mu.Lock()
	urgent := w.urgent
	w.urgent = false
	w.mu.Unlock()
	if urgent {
		w.wait(w.ctx)
	}
	return w.watch.Warnings(execution)
}

// AnomalyAlert is the request body sent to the webhook for anomalies. Text is a full description for a person.
type AnomalyAlert struct {
	Type      string                 `json:"type"` // "anomaly.found"
	Timestamp time.Time              `json:"timestamp"`
	Data      anomaly.AnomalyFinding `json:"data"`
	Text      string                 `json:"text"`
}

// found logs and records a finding, and queues an alert for the webhook unless the action is only to note it.
func (w *watching) found(f anomaly.AnomalyFinding) {
	w.p.log.Warn(
		"unusual", "kind", f.Kind, "action", f.Action, "severity", f.Severity, "principal", f.Principal,
		"id", f.Execution, "words", f.Words,
	)
	if refused := w.p.audit.Record(f.ToEvent(), false); refused != nil {
		w.p.log.Warn("an anomaly could not be recorded", "error", refused)
	}
	if w.alerts == nil || f.Action == anomaly.Note {
		return
	}
	body, err := json.Marshal(AnomalyAlert{"anomaly.found", f.At.UTC(), f, f.Words})
	if err == nil && !w.alerts.QueueMessage("anomaly_"+rand.Text(), w.p.secrets.Mask(body)) {
		w.p.log.Warn("there are too many alerts for the webhook; this one was dropped", "kind", f.Kind)
	}
}
