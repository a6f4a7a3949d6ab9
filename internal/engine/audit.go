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
	"sync"
	"time"

	"retort/internal/audit"
	"retort/internal/core"
)

// record opens the audit log. It leaves p.audit nil if the settings disable the log or there is no data directory. If
// the log was tampered with, it starts a new chain and leaves the old one unchanged as evidence.
func (p *parts) record(ctx context.Context) error {
	s := p.config.Settings
	if !s.AuditLogging.IsOn() || p.config.Home == "" {
		return nil
	}
	watch, err := p.watched()
	if err != nil {
		return err
	}
	p.watch = watch
	o := p.recordOptions()
	o.Tell, o.Mask, o.Seen = p.checkpointed(s.Audit.Checkpoint), p.secrets.Mask, watch.seen
	log, before, err := p.openAudit(ctx, o, false, p.onClose)
	if errors.Is(err, audit.ErrCut) { // what is there stays as it is, for whoever looks into it
		p.log.Error("the audit log was tampered with or restored from a copy; a new chain is started", "error", err)
		if log, before, err = p.openAudit(ctx, o, false, p.onClose); err == nil {
			_ = log.Record(
				core.AuditEvent{
					Kind: core.EventGap, Status: "cut",
					Facts: map[string]any{"cause": "another chain in this data directory ends before its checkpoint"},
				},
				false,
			)
		}
	}
	if err != nil {
		return err
	}
	p.audit, p.before = log, before
	p.onClose(log.Close)
	p.retains()
	p.onClose(watch.Close)
	return p.began()
}

// systemUser returns the name of the operating system's user, or the numeric id if the system has no name for it.
func systemUser() string {
	const most = 128 // bytes
	name := fmt.Sprintf("uid %d", os.Getuid())
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	return core.LegibleLine(name[:min(len(name), most)])
}

// checkpointed returns a function that passes checkpoints to a command, one at a time; nil without a command. While
// the command runs, only the newest checkpoint is kept.
func (p *parts) checkpointed(command []string) func([]byte) {
	if len(command) == 0 {
		return nil
	}
	lines := make(chan []byte, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for line := range lines {
			p.tell(command, line)
		}
	}()
	p.onClose(func() error { close(lines); <-done; return nil })
	return func(line []byte) {
		select {
		case <-lines:
		default:
		}
		lines <- line
	}
}

func (p *parts) tell(command []string, line []byte) {
	const patience = 30 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Stdin = strings.NewReader(string(line) + "\n")
	if said, err := c.CombinedOutput(); err != nil {
		p.log.Warn("audit.checkpoint failed", "error", err, "said", string(said[:min(len(said), 500)]))
	}
}

// started describes an engine in the audit log when it opens the log: its version, and digests of settings and
// servers by name.
type started struct {
	Version  string            `json:"version"`
	Settings map[string]string `json:"settings"`
	Servers  map[string]string `json:"servers"`
}

// lastStart returns the start record of the engine that wrote the store before, or nil.
func lastStart(ctx context.Context, rows audit.LogStore) *started {
	for row, err := range rows.Find(ctx, audit.Filter{Kinds: []string{string(core.EventStart)}, Limit: 1}) {
		var last started
		if err == nil && json.Unmarshal(row.Facts, &last) == nil {
			return &last
		}
	}
	return nil
}

// began records that this engine has started, and which parts of its configuration differ from those of the engine
// before.
func (p *parts) began() error {
	now := started{Version: Version, Settings: map[string]string{}, Servers: map[string]string{}}
	settings, err := json.Marshal(p.config.Settings)
	if err != nil {
		return err
	}
	var each map[string]json.RawMessage
	if err := json.Unmarshal(settings, &each); err != nil {
		return err
	}
	for name, value := range each {
		now.Settings[name] = p.audit.Digest(value)
	}
	for _, s := range p.now().servers {
		line, err := json.Marshal([]any{s.Command, s.Args, s.Env, s.Dir, s.URL, s.Headers, s.Transport})
		if err != nil {
			return err
		}
		now.Servers[s.Name] = p.audit.Digest(line)
	}
	start := core.AuditEvent{
		Kind:  core.EventStart,
		Facts: map[string]any{"version": now.Version, "settings": now.Settings, "servers": now.Servers},
	}
	if refused := p.audit.Record(start, false); refused != nil {
		return refused
	}
	if p.before == nil {
		return nil
	}
	changed := core.AuditEvent{Kind: core.EventSettings, Facts: map[string]any{}}
	for what, names := range map[string][]string{
		"settings": differ(p.before.Settings, now.Settings), "servers": differ(p.before.Servers, now.Servers),
	} {
		if len(names) > 0 {
			changed.Facts[what] = names
		}
	}
	if p.before.Version != now.Version {
		changed.Facts["version"] = []string{p.before.Version, now.Version}
	}
	if len(changed.Facts) == 0 {
		return nil
	}
	if refused := p.audit.Record(changed, false); refused != nil {
		return refused
	}
	return nil
}

// differ returns the names whose values differ between a and b, or that only one of them has.
func differ(a, b map[string]string) (names []string) {
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

// pins records each tool whose definition differs from the trusted one, once for each new definition.
func (p *parts) pins() {
	var mu sync.Mutex
	known := map[string]string{}
	stop := p.catalog.OnChange(func(tools *core.Toolset) {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range p.catalog.ListChanges() {
			if name := c.Server + "\x00" + c.Tool; known[name] != c.Pin {
				known[name] = c.Pin
				_ = p.audit.Record(
					core.AuditEvent{Kind: core.EventPin, Server: c.Server, Tool: c.Tool, Status: "changed", Facts: map[string]any{"pin": c.Pin}},
					false,
				)
			}
		}
	})
	p.onClose(func() error { stop(); return nil })
}
