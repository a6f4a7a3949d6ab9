package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/user"
	"slices"
	"strings"
	"time"

	"retort/internal/audit"
	"retort/internal/core"
)

// auditTrail holds the audit log and the parts that work on it while the engine runs: its maintenance and the
// anomaly monitor. Without an audit log all fields are nil.
type auditTrail struct {
	closeStack
	log     *audit.Log
	monitor *anomalyMonitor
}

// openAuditTrail opens the audit log, starts its maintenance and the anomaly monitor, and records the start of the
// engine. It opens nothing if the settings disable the log or there is no data directory.
func openAuditTrail(ctx context.Context, c *configuration) (_ *auditTrail, err error) {
	s := c.config.Settings
	if !s.AuditLogging.IsOn() || c.config.Home == "" {
		return &auditTrail{}, nil
	}
	var opened closeStack
	defer opened.closeOnError(&err)
	alerts, err := openAlertQueue(c)
	if err != nil {
		return nil, err
	}
	if alerts != nil {
		opened.push(alerts.Close)
	}
	tell, stopCheckpoints := startCheckpointCommand(c, s.Audit.Checkpoint)
	opened.push(stopCheckpoints)
	events := &handoff[core.AuditEvent]{}
	o := c.auditOptions()
	o.Tell, o.Mask, o.Seen = tell, c.secrets.Mask, events.send
	log, before, err := openOrRestart(ctx, c.Stores, o, opened.push)
	if err != nil {
		return nil, err
	}
	opened.push(log.Close)
	opened.push(startAuditMaintenance(c.Stores, log))
	monitor := newAnomalyMonitor(c.Stores, log, alerts)
	opened.push(monitor.Close)
	events.deliverTo(monitor.observe)
	if err := recordStart(c, log, before); err != nil {
		return nil, err
	}
	return &auditTrail{opened, log, monitor}, nil
}

// openOrRestart opens the audit log. If the log was tampered with, it starts a new chain of entries and keeps the
// old one unchanged as evidence. It calls hold with functions that must be called when the engine is closed.
func openOrRestart(ctx context.Context, st *Stores, o audit.Options, hold func(func() error)) (*audit.Log, *startRecord, error) {
	log, before, err := st.openAudit(ctx, o, false, hold)
	if !errors.Is(err, audit.ErrCut) {
		return log, before, err
	}
	st.log.Error("the audit log was tampered with or restored from a copy; a new chain is started", "error", err)
	if log, before, err = st.openAudit(ctx, o, false, hold); err == nil {
		_ = log.Record(
			core.AuditEvent{
				Kind: core.EventGap, Status: "cut",
				Facts: map[string]any{"cause": "another chain in this data directory ends before its checkpoint"},
			},
			false,
		)
	}
	return log, before, err
}

// systemUserName returns the name of the operating system's user, or the numeric id if the system has no name for it.
func systemUserName() string {
	const most = 128 // bytes
	name := fmt.Sprintf("uid %d", os.Getuid())
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	return core.LegibleLine(name[:min(len(name), most)])
}

// startCheckpointCommand returns a function that passes checkpoints of the audit log to a command, one at a time. The
// function is nil if there is no command. Of the checkpoints that arrive while the command runs, only the newest is
// kept. stop waits until the command has ended.
func startCheckpointCommand(c *configuration, command []string) (pass func([]byte), stop func() error) {
	if len(command) == 0 {
		return nil, func() error { return nil }
	}
	checkpoints := make(chan []byte, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for checkpoint := range checkpoints {
			runCheckpointCommand(c, command, checkpoint)
		}
	}()
	pass = func(checkpoint []byte) {
		select {
		case <-checkpoints:
		default:
		}
		checkpoints <- checkpoint
	}
	return pass, func() error { close(checkpoints); <-done; return nil }
}

func runCheckpointCommand(c *configuration, command []string, checkpoint []byte) {
	const timeout = 30 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdin = strings.NewReader(string(checkpoint) + "\n")
	if said, err := cmd.CombinedOutput(); err != nil {
		c.log.Warn("audit.checkpoint failed", "error", err, "said", string(said[:min(len(said), 500)]))
	}
}

// startRecord holds what an engine records about itself when it opens the audit log: its version, a digest of each
// setting by its key, and a digest of each server by its name.
type startRecord struct {
	Version  string            `json:"version"`
	Settings map[string]string `json:"settings"`
	Servers  map[string]string `json:"servers"`
}

// readLastStart returns the start record of the last engine that wrote to the store, or nil.
func readLastStart(ctx context.Context, rows audit.LogStore) *startRecord {
	for row, err := range rows.Find(ctx, audit.Filter{Kinds: []string{string(core.EventStart)}, Limit: 1}) {
		var last startRecord
		if err == nil && json.Unmarshal(row.Facts, &last) == nil {
			return &last
		}
	}
	return nil
}

// recordStart records that this engine has started, and how its configuration differs from that of the previous
// engine. before is the start record of that engine, or nil if no engine wrote to the log before.
func recordStart(c *configuration, log *audit.Log, before *startRecord) error {
	now, err := newStartRecord(c, log)
	if err != nil {
		return err
	}
	start := core.AuditEvent{
		Kind:  core.EventStart,
		Facts: map[string]any{"version": now.Version, "settings": now.Settings, "servers": now.Servers},
	}
	if refused := log.Record(start, false); refused != nil {
		return refused
	}
	if before == nil {
		return nil
	}
	facts := now.compare(before)
	if len(facts) == 0 {
		return nil
	}
	if refused := log.Record(core.AuditEvent{Kind: core.EventSettings, Facts: facts}, false); refused != nil {
		return refused
	}
	return nil
}

// newStartRecord describes the engine that is being opened. The digests are keyed with the audit log's key.
func newStartRecord(c *configuration, log *audit.Log) (startRecord, error) {
	r := startRecord{Version: Version, Settings: map[string]string{}, Servers: map[string]string{}}
	settings, err := json.Marshal(c.config.Settings)
	if err != nil {
		return r, err
	}
	var each map[string]json.RawMessage
	if err := json.Unmarshal(settings, &each); err != nil {
		return r, err
	}
	for name, value := range each {
		r.Settings[name] = log.Digest(value)
	}
	for _, s := range c.activeConfig().servers {
		entry, err := json.Marshal([]any{s.Command, s.Args, s.Env, s.Dir, s.URL, s.Headers, s.Transport})
		if err != nil {
			return r, err
		}
		r.Servers[s.Name] = log.Digest(entry)
	}
	return r, nil
}

// compare returns how r differs from the start record of an earlier engine, before, as additional data for the
// audit log: the names of the settings and servers that differ, and both versions if they differ.
func (r startRecord) compare(before *startRecord) map[string]any {
	facts := map[string]any{}
	for what, names := range map[string][]string{
		"settings": differingNames(before.Settings, r.Settings), "servers": differingNames(before.Servers, r.Servers),
	} {
		if len(names) > 0 {
			facts[what] = names
		}
	}
	if before.Version != r.Version {
		facts["version"] = []string{before.Version, r.Version}
	}
	return facts
}

// differingNames compares two maps. It returns the names whose values differ, and the names that only one of the maps
// has.
func differingNames(a, b map[string]string) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if a[name] != b[name] {
			names = append(names, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b)) {
		if _, there := a[name]; !there {
			names = append(names, name)
		}
	}
	return names
}
