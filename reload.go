package retort

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

// reloader applies changes of the configuration's files while the engine serves clients. It trusts the files as a
// start does, and takes no change in part: where one is wrong, everything stays as it is.
type reloader struct {
	p     *parts
	c     Config
	files *config.Watch
	once  sync.Once
	ctx   context.Context
	stop  context.CancelFunc
	work  sync.WaitGroup

	before effects // when the files were last as they are known

	mu      sync.Mutex
	refused string // why the files are not in force; "" if they are
	waiting string // what takes effect at the next start; "" if nothing does
}

// effects counts calls that may have effects.
type effects struct{ began, ended uint64 }

func newReloader(p *parts, c Config, files *config.Watch) *reloader {
	r := &reloader{p: p, c: c, files: files}
	r.ctx, r.stop = context.WithCancel(context.Background())
	return r
}

// start begins to look at the files. It may be called again.
func (r *reloader) start() {
	r.once.Do(func() {
		if !r.c.NoFiles && !r.c.NoReload {
			r.work.Go(r.look)
		}
	})
}

// Close ends that, and returns when nothing is being applied.
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

// poll looks at the files once. It reports whether they had something new.
func (r *reloader) poll() (news bool) {
	var now effects
	now.began, now.ended = r.p.pipeline.Relay.CountEffects()
	u, news := r.files.Poll()
	if news {
		r.take(u)
	}
	if r.files.Quiet() {
		r.before = now
	}
	return news
}

// doubtful reports whether a call that may have effects was under way since the files were last as they are known. The
// call may have changed them: a program must not give itself more by a server that writes files.
func (r *reloader) doubtful() bool {
	began, _ := r.p.pipeline.Relay.CountEffects()
	return r.before.began != r.before.ended || began != r.before.began
}

// take applies what the files say, or refuses it.
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

// refuse leaves everything as it is, and says why.
func (r *reloader) refuse(u config.Update, err error) {
	e := core.AsError(masked(r.p.secrets, err))
	text := e.Message
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	r.say(&r.refused, text)
	r.p.log.Warn("the changed configuration is wrong; the settings of before stay in force", "error", text)
	if unrecorded := r.record(u, "refused", map[string]any{"cause": e.Kind}); unrecorded != nil {
		r.p.log.Warn("a refused change of the configuration could not be recorded", "error", unrecorded.Message)
	}
}

// unrecorded leaves everything as it is until the change can be recorded.
func (r *reloader) unrecorded(why *core.Error) {
	r.files.Retry()
	text := "the change could not be recorded: " + why.Message
	if r.say(&r.refused, text) {
		r.p.log.Warn("the changed configuration is not applied; the settings of before stay in force", "error", text)
	}
}

// applied says what the files came to.
func (r *reloader) applied(u config.Update, d difference) {
	for _, w := range u.Config.Warnings {
		r.p.log.Warn("the changed configuration has something odd", "warning", w)
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
			"a principal was removed from the settings; nothing more is done for it until it is named again, or the next start",
			"principal", name,
		)
	}
	if text := d.outstanding(); r.say(&r.waiting, text) && text != "" {
		r.p.log.Warn(text)
	}
}

// say keeps what Outstanding says. It reports whether that is something else than before.
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

// record records what became of a change, with a digest of each file that only the audit log's key can make.
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

// shown is a path without what only this machine has.
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

// apply puts a configuration in force. Servers that go, go before their rules, and those that come, come after
// theirs: at no moment is there a server without the rules on it.
func (p *parts) apply(next *inForce, rules *policy.Policy, d difference) {
	ended := p.pool.Drop(d.dropReasons())
	before := p.current.Swap(next)
	if rules.For("").Version() != p.policy.For("").Version() || before.config.Settings.Enabled != next.config.Settings.Enabled {
		p.policy.Replace(rules)
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
		p.pool.Put(s)
	}
	p.catalog.KeepServers(namesOf(next.servers)) // this tells clients, also of what the rules show or hide now
	for _, name := range come {
		p.live.Add(name)
	}
}

// waitBriefly calls f and returns when it does, or after a while: a server that does not want to end keeps no rule waiting.
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

// categories has the catalogue look at all tools anew by the settings in force.
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
