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
	"retort/internal/policy"
)

// reloader applies changes of the configuration files while the engine serves clients. It applies the same checks to
// the files as a start. A change is applied completely or not at all: an error in one file leaves everything as it
// was.
type reloader struct {
	p     *parts
	c     Config
	files *config.Watcher
	once  sync.Once
	ctx   context.Context
	stop  context.CancelFunc
	work  sync.WaitGroup

	before effects // when the files were last as they are known

	mu      sync.Mutex
	refused string // why the files are not in force; "" if they are
	waiting string // what takes effect at the next start; "" if nothing does
}

// effects counts calls that may have side effects.
type effects struct{ began, ended uint64 }

func newReloader(p *parts, c Config, files *config.Watcher) *reloader {
	r := &reloader{p: p, c: c, files: files}
	r.ctx, r.stop = context.WithCancel(context.Background())
	return r
}

// start starts watching the files. Further calls do nothing.
func (r *reloader) start() {
	r.once.Do(func() {
		if !r.c.NoFiles && !r.c.NoReload {
			r.work.Go(r.look)
		}
	})
}

// Close stops watching the files. It returns when no change is being applied.
func (r *reloader) Close() error {
	r.stop()
	r.work.Wait()
	return nil
}

func (r *reloader) look() {
	tick := time.NewTicker(config.PollInterval)
	defer tick.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-tick.C:
			r.poll()
		}
	}
}

// poll checks the files once. It reports whether they had changed.
func (r *reloader) poll() (news bool) {
	var now effects
	now.began, now.ended = r.p.pipeline.Relay.CountEffects()
	u, news := r.files.PollChanges()
	if news {
		r.take(u)
	}
	if r.files.IsQuiet() {
		r.before = now
	}
	return news
}

// doubtful reports whether a call that may have side effects was running since the files were last unchanged. Such a
// call may have changed the files: a program must not extend its own rights through a server that writes files.
func (r *reloader) doubtful() bool {
	began, _ := r.p.pipeline.Relay.CountEffects()
	return r.before.began != r.before.ended || began != r.before.began
}

// take applies a change of the files, in full or only its restrictions, or refuses it.
func (r *reloader) take(u config.Update) {
	if u.Err != nil {
		r.refuse(u, u.Err)
		return
	}
	next, rules, d, err := r.p.reconfigured(r.c, u.Config)
	if err == nil && r.p.now().doubted == next.meaning() {
		r.files.Accept() // they say what they said when it could not be told who had changed them
		r.say(&r.refused, "")
		return
	}
	if err == nil && !d.empty() && r.doubtful() {
		next, rules, d, err = r.p.narrowed(next, rules)
	}
	if err != nil {
		r.refuse(u, err)
		return
	}
	if !d.empty() {
		if unrecorded := r.record(u, "applied", d.facts()); unrecorded != nil {
			r.unrecorded(unrecorded)
			return
		}
		r.p.apply(next, rules, d)
	}
	r.files.Accept()
	r.applied(u, d)
}

// refuse keeps the current configuration, and logs and records the reason.
func (r *reloader) refuse(u config.Update, err error) {
	e := core.AsError(masked(r.p.secrets, err))
	text := e.Message
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	r.say(&r.refused, text)
	r.p.log.Warn("the changed configuration is invalid; the previous settings stay in force", "error", text)
	if unrecorded := r.record(u, "refused", map[string]any{"cause": e.Kind}); unrecorded != nil {
		r.p.log.Warn("a rejected change of the configuration could not be recorded", "error", unrecorded.Message)
	}
}

// unrecorded keeps the current configuration until the change can be recorded in the audit log.
func (r *reloader) unrecorded(why *core.Error) {
	r.files.RetryNext()
	text := "the change could not be recorded: " + why.Message
	if r.say(&r.refused, text) {
		r.p.log.Warn("the changed configuration is not applied; the previous settings stay in force", "error", text)
	}
}

// applied logs the result of a change that was accepted.
func (r *reloader) applied(u config.Update, d difference) {
	for _, w := range u.Config.Warnings {
		r.p.log.Warn("the changed configuration has a warning", "warning", w)
	}
	if !d.empty() || r.say(&r.refused, "") {
		r.p.log.Info(
			"the changed configuration is in force", "settings", d.settings, "added", d.added, "changed", d.changed,
			"removed", d.removed,
		)
	}
	r.say(&r.refused, "")
	for _, name := range d.principals {
		r.p.log.Warn(
			"a principal was removed from the settings; all its calls are refused until it is added again or Retort restarts",
			"principal", name,
		)
	}
	if text := d.outstanding(); r.say(&r.waiting, text) && text != "" {
		r.p.log.Warn(text)
	}
}

// say stores a text for Outstanding. It reports whether the text differs from the one before.
func (r *reloader) say(what *string, text string) (news bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	news = *what != text
	*what = text
	return news
}

func (r *reloader) outstanding() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(slices.DeleteFunc([]string{r.refused, r.waiting}, func(s string) bool { return s == "" }), "; ")
}

// record records the result of a change in the audit log, with a digest of each file. The digests are keyed with the
// audit log's key.
func (r *reloader) record(u config.Update, status string, facts map[string]any) *core.Error {
	if r.p.audit == nil {
		return nil
	}
	files := map[string]string{}
	for _, path := range u.Files {
		digest := "gone"
		if sum, ok := u.Digests[path]; ok {
			digest = r.p.audit.Digest([]byte(sum))
		}
		files[r.shown(path)] = digest
	}
	facts["files"] = files
	event := core.AuditEvent{Kind: core.EventSettings, Status: status, Facts: facts}
	return r.p.audit.Record(event, true)
}

// shown returns a path relative to the configuration's directory or to the user's home, if it is inside one of them.
func (r *reloader) shown(path string) string {
	if dir, err := filepath.Abs(r.c.Dir); err == nil {
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

// apply puts a configuration in force. It removes servers before their rules, and adds servers after their rules: no
// server is ever reachable without its rules.
func (p *parts) apply(next *inForce, rules *policy.Policy, d difference) {
	ended := p.pool.DropServers(d.dropReasons())
	before := p.current.Swap(next)
	if rules.ViewFor("").PolicyVersion() != p.policy.ViewFor("").PolicyVersion() || before.config.Settings.Enabled != next.config.Settings.Enabled {
		p.policy.ReplacePolicy(rules)
	}
	gone := slices.Concat(d.removed, d.changed)
	come := slices.Concat(d.added, d.changed)
	p.catalog.KeepServers(slices.DeleteFunc(namesOf(next.servers), func(name string) bool { return slices.Contains(come, name) }))
	waitBriefly(ended)
	for _, name := range gone {
		p.live.DropServer(name)
		p.pipeline.Relay.ForgetServer(name)
	}
	for _, name := range d.changed {
		p.catalog.UnlistServer(name)
	}
	p.categories(before, next)
	for _, name := range come {
		s, _ := next.server(name)
		p.pool.PutServer(s)
	}
	p.catalog.KeepServers(namesOf(next.servers)) // this tells clients, also of what the rules show or hide now
	for _, name := range come {
		p.live.Add(name)
	}
}

// waitBriefly calls f and returns when f does, at the latest after half a second: a server that does not stop must
// not delay new rules.
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

// categories updates the categories of servers in the catalog. If the setting for changed tools differs, the catalog
// judges all tools again.
func (p *parts) categories(before, next *inForce) {
	for _, s := range next.config.Servers {
		i := slices.IndexFunc(before.config.Servers, func(o config.Server) bool { return o.Name == s.Name })
		if i < 0 || before.config.Servers[i].Category != s.Category {
			p.catalog.SetCategory(s.Name, s.Category)
		}
	}
	for _, name := range namesOf(next.servers) {
		if before.config.Settings.ChangesOf(name) != next.config.Settings.ChangesOf(name) {
			p.catalog.RejudgeAll()
			return
		}
	}
}
