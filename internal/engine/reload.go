package engine

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"retort/internal/config"
	"retort/internal/core"
	"retort/internal/pipeline/relay"
	"retort/internal/policy"
)

// configReloader applies changes of the configuration files while the engine serves clients. It applies the same checks
// to the files as a start. A change is applied completely or not at all: an error in one file leaves everything as it
// was.
type configReloader struct {
	settings *configuration
	data     *dataAssembly
	tools    *toolAssembly
	relay    *relay.Relay
	files    *config.Watcher
	once     sync.Once
	ctx      context.Context
	stop     context.CancelFunc
	work     sync.WaitGroup

	before effectCounts // counts at the last time when no change of the files was pending

	mu       sync.Mutex
	refused  string // why the files are not in force; "": they are
	deferred string // what takes effect at the next start; "": nothing
}

// effectCounts counts the calls that may have side effects.
type effectCounts struct{ began, ended uint64 }

func newConfigReloader(
	c *configuration, data *dataAssembly, tools *toolAssembly, calls *relay.Relay, files *config.Watcher,
) *configReloader {
	ctx, stop := context.WithCancel(context.Background())
	return &configReloader{settings: c, data: data, tools: tools, relay: calls, files: files, ctx: ctx, stop: stop}
}

// start starts watching the configuration files. Further calls do nothing.
func (r *configReloader) start() {
	r.once.Do(func() {
		if !r.settings.source.NoFiles && !r.settings.source.NoReload {
			r.work.Go(r.pollRepeatedly)
		}
	})
}

// Close stops watching the configuration files. If a change is being applied, Close waits until it is applied.
func (r *configReloader) Close() error {
	r.stop()
	r.work.Wait()
	return nil
}

func (r *configReloader) pollRepeatedly() {
	tick := time.NewTicker(config.PollInterval)
	defer tick.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-tick.C:
			r.pollOnce()
		}
	}
}

// pollOnce checks the configuration files once. It reports whether they had changed.
func (r *configReloader) pollOnce() (changed bool) {
	var now effectCounts
	now.began, now.ended = r.relay.CountEffects()
	u, changed := r.files.PollChanges()
	if changed {
		r.applyUpdate(u)
	}
	if r.files.IsQuiet() {
		r.before = now
	}
	return changed
}

// isSuspect reports whether a call that may have side effects was running at some time since the configuration files
// were last seen unchanged. Such a call may have changed the files, and a program must not be able to extend its own
// rights through a server that writes files.
func (r *configReloader) isSuspect() bool {
	began, _ := r.relay.CountEffects()
	return r.before.began != r.before.ended || began != r.before.began
}

// applyUpdate applies a change of the configuration files. If a running call may have made the change, only what the
// new configuration forbids takes effect. A change with an error is refused.
func (r *configReloader) applyUpdate(u config.Update) {
	if u.Err != nil {
		r.refuseUpdate(u, u.Err)
		return
	}
	next, rules, d, err := r.settings.prepareReload(u.Config)
	if err == nil && r.settings.activeConfig().restrictingText == next.effectText() {
		r.files.Accept() // the restrictions of this change are in force already
		r.setText(&r.refused, "")
		return
	}
	if err == nil && !d.isEmpty() && r.isSuspect() {
		next, rules, d, err = r.settings.narrowReload(next, rules)
	}
	if err != nil {
		r.refuseUpdate(u, err)
		return
	}
	if !d.isEmpty() {
		if unrecorded := r.recordUpdate(u, "applied", d.facts()); unrecorded != nil {
			r.retryUnrecorded(unrecorded)
			return
		}
		r.apply(next, rules, d)
	}
	r.files.Accept()
	r.logUpdate(u, d)
}

// refuseUpdate keeps the current configuration, and logs and records the reason.
func (r *configReloader) refuseUpdate(u config.Update, err error) {
	e := core.AsError(maskError(r.settings.secrets, err))
	text := e.Message
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	r.setText(&r.refused, text)
	r.settings.log.Warn("the changed configuration is invalid; the previous settings stay in force", "error", text)
	if unrecorded := r.recordUpdate(u, "refused", map[string]any{"cause": e.Kind}); unrecorded != nil {
		r.settings.log.Warn("a rejected change of the configuration could not be recorded", "error", unrecorded.Message)
	}
}

// retryUnrecorded keeps the current configuration until the change can be recorded in the audit log.
func (r *configReloader) retryUnrecorded(why *core.Error) {
	r.files.RetryNext()
	text := "the change could not be recorded: " + why.Message
	if r.setText(&r.refused, text) {
		r.settings.log.Warn("the changed configuration is not applied; the previous settings stay in force", "error", text)
	}
}

// logUpdate logs the result of a change that was accepted.
func (r *configReloader) logUpdate(u config.Update, d configDifference) {
	for _, w := range u.Config.Warnings {
		r.settings.log.Warn("the changed configuration has a warning", "warning", w)
	}
	if !d.isEmpty() || r.setText(&r.refused, "") {
		r.settings.log.Info(
			"the changed configuration is in force", "settings", d.settings, "added", d.added, "changed", d.changed,
			"removed", d.removed,
		)
	}
	r.setText(&r.refused, "")
	for _, name := range d.principals {
		r.settings.log.Warn(
			"a principal was removed from the settings; all its calls are refused until it is added again or Retort restarts",
			"principal", name,
		)
	}
	if r.settings.changesGroupClaim(u.Config) {
		r.settings.log.Warn("the change of http.oauth.groups takes effect when Retort restarts; until then the old value decides which entries for groups apply")
	}
	if text := d.describeOutstanding(); r.setText(&r.deferred, text) && text != "" {
		r.settings.log.Warn(text)
	}
}

// setText sets one of the texts that Outstanding returns. It reports whether the text has changed.
func (r *configReloader) setText(field *string, text string) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed = *field != text
	*field = text
	return changed
}

func (r *configReloader) outstanding() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(slices.DeleteFunc([]string{r.refused, r.deferred}, func(s string) bool { return s == "" }), "; ")
}

// recordUpdate records the result of a change in the audit log, with a digest of each file. The digests are keyed with
// the audit log's key.
func (r *configReloader) recordUpdate(u config.Update, status string, facts map[string]any) *core.Error {
	if r.data.audit == nil {
		return nil
	}
	files := map[string]string{}
	for _, path := range u.Files {
		digest := "gone"
		if sum, ok := u.Digests[path]; ok {
			digest = r.data.audit.Digest([]byte(sum))
		}
		files[r.displayPath(path)] = digest
	}
	facts["files"] = files
	event := core.AuditEvent{Kind: core.EventSettings, Status: status, Facts: facts}
	return r.data.audit.Record(event, true)
}

// displayPath returns a path relative to the configuration's directory or to the user's home, if it is inside one of
// them.
func (r *configReloader) displayPath(path string) string {
	if dir, err := filepath.Abs(r.settings.source.Dir); err == nil {
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel)
		}
	}
	if home, err := os.UserHomeDir(); err == nil {
		if rel, err := filepath.Rel(home, path); err == nil && filepath.IsLocal(rel) {
			return "~/" + filepath.ToSlash(rel)
		}
	}
	return path
}

// apply makes a configuration the one in force. It removes servers before it changes the rules, and adds servers
// afterwards, so that no server can be reached without its rules.
func (r *configReloader) apply(next *activeConfig, rules *policy.Policy, d configDifference) {
	ended := r.tools.pool.DropServers(d.dropReasons())
	before := r.settings.current.Swap(next)
	if rules.ViewFor("").PolicyVersion() != r.settings.policy.ViewFor("").PolicyVersion() || before.config.Settings.Enabled != next.config.Settings.Enabled {
		r.settings.policy.ReplacePolicy(rules)
	}
	stopped := slices.Concat(d.removed, d.changed)
	started := slices.Concat(d.added, d.changed)
	r.tools.catalog.KeepServers(slices.DeleteFunc(serverNames(next.servers), func(name string) bool { return slices.Contains(started, name) }))
	waitBriefly(ended)
	for _, name := range stopped {
		r.tools.live.DropServer(name)
		r.relay.ForgetServer(name)
	}
	for _, name := range d.changed {
		r.tools.catalog.UnlistServer(name)
	}
	r.updateCategories(before, next)
	for _, name := range started {
		s, _ := next.findServer(name)
		r.tools.pool.PutServer(s)
	}
	r.tools.catalog.KeepServers(serverNames(next.servers)) // this tells clients, also of what the rules show or hide now
	for _, name := range started {
		r.tools.live.Add(name)
	}
}

// waitBriefly calls f and returns when f has returned, or after half a second. A server that does not stop must not
// delay new rules.
func waitBriefly(f func()) {
	const patience = 500 * time.Millisecond
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
	}
}

// updateCategories updates the categories of servers in the catalog after a reload. If a server's setting for changed
// tool definitions differs between the old and the new configuration, the catalog decides again what to do with all
// changed tools.
func (r *configReloader) updateCategories(before, next *activeConfig) {
	for _, s := range next.config.Servers {
		i := slices.IndexFunc(before.config.Servers, func(o config.Server) bool { return o.Name == s.Name })
		if i < 0 || before.config.Servers[i].Category != s.Category {
			r.tools.catalog.SetCategory(s.Name, s.Category)
		}
	}
	for _, name := range serverNames(next.servers) {
		if before.config.Settings.ChangesOf(name) != next.config.Settings.ChangesOf(name) {
			r.tools.catalog.RejudgeAll()
			return
		}
	}
}
