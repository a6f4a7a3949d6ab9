package engine

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"sync"
	"time"

	"retort/internal/anomaly"
	"retort/internal/audit"
	"retort/internal/base/webhook"
	"retort/internal/core"
	"retort/internal/pipeline"
)

// anomalyMonitor passes the events of the audit log to the anomaly watcher. When the first execution begins, it also
// replays the entries of earlier engines, so that the watcher learns what is usual.
type anomalyMonitor struct {
	stores  *Stores
	log     *audit.Log
	watcher *anomaly.AnomalyWatcher
	begin   sync.Once
	ready   chan struct{} // closed when past entries are replayed
	ctx     context.Context
	cancel  context.CancelFunc
	work    sync.WaitGroup

	mu       sync.Mutex
	replayed bool
	queued   []core.AuditEvent // events that arrived during the replay
	urgent   bool              // a queued event must be reported even if nothing is known about the past
}

// Limits for the audit log entries from which the engine learns usual activity when it starts.
const (
	replayAge       = 30 * 24 * time.Hour // age of the oldest entry to replay
	maxReplayed     = 100_000             // entries of one chain
	maxQueuedEvents = 20_000              // queued events during the replay
	replayTimeout   = 5 * time.Second     // how long the first calls of an engine wait for the replay
)

// openAlertQueue returns the queue of messages to the webhook for anomalies; nil if the settings name no address.
func openAlertQueue(c *configuration) (*webhook.MessageQueue, error) {
	s := c.config.Settings.Anomalies.Webhook
	if s.URL == "" {
		return nil, nil
	}
	to, err := webhook.New(s.URL, s.Secret)
	if err != nil {
		return nil, core.Errorf(core.KindInvalidArguments, "anomalies.webhook", "anomalies.webhook: %w", err)
	}
	return webhook.NewQueue(to, c.log), nil
}

// newAnomalyMonitor returns the monitor of an audit log. alerts may be nil.
func newAnomalyMonitor(st *Stores, log *audit.Log, alerts *webhook.MessageQueue) *anomalyMonitor {
	ctx, cancel := context.WithCancel(context.Background())
	actions := map[anomaly.Kind]anomaly.AnomalyAction{}
	for _, kind := range anomaly.AllKinds() {
		actions[kind] = anomaly.AnomalyAction(st.config.Settings.Anomalies.ActionFor(string(kind)))
	}
	report := func(f anomaly.AnomalyFinding) { reportAnomaly(st, log, alerts, f) }
	return &anomalyMonitor{
		stores: st, log: log, ready: make(chan struct{}), ctx: ctx, cancel: cancel,
		watcher: anomaly.New(anomaly.Options{Zone: time.Local, Actions: actions}, report),
	}
}

// Close stops reading the audit log and waits until running work has ended. It does not close the log itself.
func (m *anomalyMonitor) Close() error {
	m.begin.Do(func() { close(m.ready) })
	m.cancel()
	m.work.Wait()
	return nil
}

// observe receives each event that the audit log records. The first request starts the replay of past entries. Events
// that arrive before the replay is done are queued.
func (m *anomalyMonitor) observe(e core.AuditEvent) {
	if e.Kind == core.EventRequest {
		m.begin.Do(func() { m.work.Go(m.replay) })
	}
	m.mu.Lock()
	if !m.replayed && len(m.queued) < maxQueuedEvents {
		m.queued = append(m.queued, e)
		listed, _ := e.Facts["blacklist"].(bool)
		m.urgent = m.urgent || listed
		m.mu.Unlock()
		return
	}
	m.mu.Unlock()
	m.watcher.ObserveEvent(e)
}

// replay replays the entries of earlier engines into the watcher, and then the events that were queued during the
// replay.
func (m *anomalyMonitor) replay() {
	defer close(m.ready)
	start, n := time.Now(), 0
	others := m.stores.openAuditFiles(m.ctx)
	defer func() {
		for _, s := range others {
			_ = s.Close()
		}
	}()
	for e, err := range m.log.ReplayEvents(m.ctx, start.Add(-replayAge), maxReplayed, others...) {
		if err != nil {
			m.stores.log.Warn("usual behaviour cannot be learned from the complete audit log", "error", err)
			continue
		}
		m.watcher.ReplayEvent(e)
		n++
	}
	m.stores.log.Debug("usual behaviour was learned from the audit log", "entries", n, "ms", time.Since(start).Milliseconds())
	for {
		m.mu.Lock()
		batch := m.queued
		m.queued, m.replayed = nil, len(batch) == 0
		m.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		for _, e := range batch {
			m.watcher.ObserveEvent(e)
		}
	}
}

// Judge implements pipeline.AnomalyWatch. After a start, the first calls wait up to 5 s until the audit log is
// replayed. Until then it is unknown which executions an earlier engine has stopped.
func (m *anomalyMonitor) Judge(ctx context.Context, call core.AuditEvent) (pipeline.AnomalyVerdict, *core.Error) {
	select {
	case <-m.ready:
	default:
		m.waitForReplay(ctx)
	}
	j := m.watcher.Judge(call)
	return pipeline.AnomalyVerdict{Kinds: j.Kinds, Rule: j.Rule}, j.Refused
}

func (m *anomalyMonitor) waitForReplay(ctx context.Context) {
	timer := time.NewTimer(replayTimeout)
	defer timer.Stop()
	select {
	case <-m.ready:
	case <-ctx.Done():
	case <-timer.C:
	}
}

func (m *anomalyMonitor) Stopped(execution string) *core.Error { return m.watcher.Stopped(execution) }

// Warnings returns the anomaly warnings about an execution. Events that arrive during the replay of past entries
// are queued. If one of them shows access to a blacklisted host, Warnings waits for the replay, because such
// access is always reported.
func (m *anomalyMonitor) Warnings(execution string) []string {
	m.mu.Lock()
	urgent := m.urgent
	m.urgent = false
	m.mu.Unlock()
	if urgent {
		m.waitForReplay(m.ctx)
	}
	return m.watcher.Warnings(execution)
}

// AnomalyAlert is the body of the request that reports an anomaly to the webhook. Text describes the finding in
// full for a person.
type AnomalyAlert struct {
	Type      string                 `json:"type"` // always "anomaly.found"
	Timestamp time.Time              `json:"timestamp"`
	Data      anomaly.AnomalyFinding `json:"data"`
	Text      string                 `json:"text"`
}

// reportAnomaly logs a finding and records it in the audit log. If the settings ask for more than a note, it also
// queues an alert for the webhook. alerts may be nil.
func reportAnomaly(st *Stores, log *audit.Log, alerts *webhook.MessageQueue, f anomaly.AnomalyFinding) {
	st.log.Warn(
		"unusual", "kind", f.Kind, "action", f.Action, "severity", f.Severity, "principal", f.Principal,
		"id", f.Execution, "words", f.Words,
	)
	if refused := log.Record(f.ToEvent(), false); refused != nil {
		st.log.Warn("an anomaly could not be recorded", "error", refused)
	}
	if alerts == nil || f.Action == anomaly.Note {
		return
	}
	body, err := json.Marshal(AnomalyAlert{"anomaly.found", f.At.UTC(), f, f.Words})
	if err == nil && !alerts.QueueMessage("anomaly_"+rand.Text(), st.secrets.Mask(body)) {
		st.log.Warn("there are too many alerts for the webhook; this one was dropped", "kind", f.Kind)
	}
}
