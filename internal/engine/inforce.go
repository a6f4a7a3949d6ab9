package engine

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"

	"retort/internal/config"
	"retort/internal/core"
	"retort/internal/policy"
)

// inForce is the configuration that the engine currently applies. It is immutable: a reload replaces it as a whole.
// Settings that take effect at the next start keep the values with which the engine was opened.
type inForce struct {
	config  *config.Config
	servers []Server             // with their logins
	clients map[string]*personal // of servers that may want a login
	removed []string             // principals whom earlier settings named, sorted
	levels  levelRules           // that permission_levels has now, if others were there when the engine was opened
	ruled   *config.Config       // by which the rules were narrowed further than by config; nil if they were not
	doubted string               // the meaning of the files then
}

// levelRules is the settings block permission_levels.
type levelRules map[config.PermissionLevel]config.LevelRules

// replaceable points to the configuration in force. All copies of parts share one.
type replaceable = atomic.Pointer[inForce]

func newReplaceable(c *config.Config) *replaceable {
	r := &replaceable{}
	r.Store(&inForce{config: c})
	return r
}

// now returns the configuration in force.
func (p *parts) now() *inForce { return p.current.Load() }

func (f *inForce) server(name string) (Server, bool) {
	i := slices.IndexFunc(f.servers, func(s Server) bool { return s.Name == name })
	if i < 0 {
		return Server{}, false
	}
	return f.servers[i], true
}

// entry returns a text that encodes how a server is reached and how its instances are shared. If it changes, the
// server must be restarted. Rules on the server's tools are not part of it. The text contains secrets.
func (f *inForce) entry(s Server) string {
	of := f.config.Settings.Servers[s.Name]
	of.ToolRules, of.Trusted, of.Changes, of.Category, of.Disabled = config.ToolRules{}, false, "", "", false
	wrong := ""
	if s.Err != nil {
		wrong = s.Err.Error()
	}
	text, err := json.Marshal([]any{
		s.Command, s.Args, s.Env, s.Dir, s.URL, s.Headers, s.Transport, s.CallTimeout, s.Client, s.Isolation, s.Stateful, s.Idle, s.Instances,
		wrong, of, oauthOf(f.config, s.Name),
	})
	if err != nil {
		panic(err) // they are made of strings, numbers and maps of them
	}
	return string(text)
}

// ruling returns the configuration that the policy rules come from.
func (f *inForce) ruling() *config.Config { return cmp.Or(f.ruled, f.config) }

// rulingWithLevels returns the settings of ruling, with the most recently read block permission_levels.
func (f *inForce) rulingWithLevels() config.Settings {
	s := f.ruling().Settings
	if f.levels != nil {
		s.Levels = f.levels
	}
	return s
}

// meaning returns a text that encodes everything in a configuration that takes effect while the engine runs. The text
// contains secrets.
func (f *inForce) meaning() string {
	entries := map[string]string{}
	for _, s := range f.servers {
		entries[s.Name] = f.entry(s)
	}
	text, err := json.Marshal([]any{f.config.Settings, entries, f.levels})
	if err != nil {
		panic(err) // it is made of strings, numbers and maps of them
	}
	return string(text)
}

// rules returns the policy of this configuration. If the block permission_levels has changed, its restrictions take
// effect now and what it allows in addition at the next start.
func (f *inForce) rules() (*policy.Policy, error) {
	s := f.ruling().Settings
	started, err := f.rulesWith(s)
	if err != nil || f.levels == nil {
		return started, err
	}
	s.Levels = f.levels
	changed, err := f.rulesWith(s)
	if err != nil {
		return nil, err
	}
	both, _ := started.RestrictedBy(changed) // two policies are never too many
	return both, nil
}

func (f *inForce) rulesWith(s config.Settings) (*policy.Policy, error) {
	r := rulesOf(s)
	r.Removed = f.removed
	return policy.New(r)
}

// difference lists what a new configuration changes.
type difference struct {
	settings                []string // that take effect at once
	added, changed, removed []string // servers
	principals              []string // that are named no more
	restart                 []string // what takes effect at the next start
	narrowed                bool     // only what forbids something takes effect
	restored                bool     // an earlier narrowing has ended
}

// reconfigured returns the inForce of a newly loaded configuration, its policy, and the difference from the current
// one.
func (p *parts) reconfigured(c Config, loaded *config.Config) (*inForce, *policy.Policy, difference, error) {
	var d difference
	if err := c.strangers(loaded); err != nil {
		return nil, nil, d, err
	}
	before := p.now()
	merged, restart := p.merge(loaded)
	next, err := p.prepare(c, merged, before)
	if err != nil {
		return nil, nil, d, err
	}
	next.removed = before.removedPrincipals(merged)
	if !reflect.DeepEqual(loaded.Settings.Levels, merged.Settings.Levels) {
		next.levels = loaded.Settings.Levels
	}
	rules, err := next.rules()
	if err != nil {
		return nil, nil, d, err
	}
	d = differenceOf(before, next)
	d.restart = restart
	if first := firstExposed(p.config, next); first != "" {
		d.restart = append(d.restart, "servers."+first+".expose")
	}
	return next, rules, d, nil
}

// narrowed returns the inForce and policy after a change that a program may have made: only the restrictions of the
// change take effect. Removed servers are gone, and a call must be allowed by both the old rules and the new ones.
// wanted and rules are the results of reconfigured.
func (p *parts) narrowed(wanted *inForce, rules *policy.Policy) (*inForce, *policy.Policy, difference, error) {
	var d difference
	before := p.now()
	next := *before
	next.servers = slices.DeleteFunc(
		slices.Clone(before.servers), func(s Server) bool { return !slices.Contains(namesOf(wanted.servers), s.Name) },
	)
	next.removed, next.levels, next.ruled, next.doubted = wanted.removed, wanted.levels, wanted.config, wanted.meaning()
	rules, ok := rules.RestrictedBy(p.policy.ViewFor("").InForce())
	if !ok {
		return nil, nil, d, core.Errorf(
			core.KindLimit, "retort.reload",
			"the configuration files changed too many times while calls that may have side effects were running; the previous configuration stays in force",
		).
			WithHint("save the files again when no calls are running, or restart retort serve")
	}
	d = differenceOf(before, &next)
	d.narrowed = true
	return &next, rules, d, nil
}

// merge returns the loaded configuration, but with the values that the engine was opened with for every setting
// that takes effect only at the next start. It also returns the names of those settings whose value differs.
func (p *parts) merge(loaded *config.Config) (merged *config.Config, restart []string) {
	c := *loaded
	s, wanted := p.config.Settings, loaded.Settings
	s.Enabled, s.PermissionLevel, s.ToolChanges, s.Principals, s.Servers = wanted.Enabled, wanted.PermissionLevel, wanted.ToolChanges, wanted.Principals, wanted.Servers
	a := wanted.Approval
	s.Approval.AutoApproveLow, s.Approval.AutoApproveMedium, s.Approval.AutoApproveHigh = a.AutoApproveLow, a.AutoApproveMedium, a.AutoApproveHigh
	known := func(command config.Command) bool {
		return slices.ContainsFunc(p.config.Settings.Commands, func(k config.Command) bool { return k.Command == command.Command })
	}
	s.Commands = slices.DeleteFunc(slices.Clone(wanted.Commands), func(c config.Command) bool { return !known(c) })
	if len(s.Commands) == len(wanted.Commands) {
		s.Commands = wanted.Commands // also if it is nil, and the clone is not
	}
	c.Settings, c.Home = s, p.config.Home
	restart = config.DifferingKeys(s, wanted)
	if loaded.Home != p.config.Home {
		restart = append(restart, "the data directory")
	}
	return &c, restart
}

// removedPrincipals returns the names of the principals that have rules in f, or were removed earlier, and have none
// in next. The names are sorted.
func (f *inForce) removedPrincipals(next *config.Config) (names []string) {
	add := func(name string) {
		if _, named := next.Settings.Principals[name]; !named && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for name := range f.ruling().Settings.Principals {
		add(name)
	}
	for _, name := range f.removed {
		add(name)
	}
	slices.Sort(names)
	return names
}

func differenceOf(before, next *inForce) (d difference) {
	d.settings, d.restored = config.DifferingKeys(before.rulingWithLevels(), next.rulingWithLevels()), before.ruled != nil
	d.principals = slices.DeleteFunc(slices.Clone(next.removed), func(name string) bool { return slices.Contains(before.removed, name) })
	for _, s := range next.servers {
		switch old, ok := before.server(s.Name); {
		case !ok:
			d.added = append(d.added, s.Name)
		case before.entry(old) != next.entry(s):
			d.changed = append(d.changed, s.Name)
		}
	}
	for _, s := range before.servers {
		if _, still := next.server(s.Name); !still {
			d.removed = append(d.removed, s.Name)
		}
	}
	return d
}

// firstExposed returns the name of a directly exposed server in next, unless a server was exposed when the engine was
// opened, or "".
func firstExposed(started *config.Config, next *inForce) string {
	exposed := func(s config.ServerSettings) bool { return s.Expose == config.ExposeDirect }
	for _, s := range started.Settings.Servers {
		if exposed(s) {
			return ""
		}
	}
	for _, s := range next.servers {
		if exposed(next.config.Settings.Servers[s.Name]) {
			return s.Name
		}
	}
	return ""
}

// outstanding describes the changes to the files that are not in force, or "".
func (d difference) outstanding() string {
	if d.narrowed {
		return "the files changed while calls that may have effects were under way, so only stricter rules apply until they end; " +
			"to apply the rest, edit them again while nothing runs, or restart retort serve"
	}
	names := slices.Clone(d.restart)
	if i := slices.Index(names, "permission_levels"); i >= 0 {
		names[i] += " (the stricter setting applies)"
	}
	switch n := len(names); n {
	case 0:
		return ""
	case 1:
		return names[0] + " changed; restart retort serve to apply it"
	default:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1] + " changed; restart retort serve to apply them"
	}
}

func (d difference) empty() bool {
	return !d.narrowed && !d.restored && len(d.settings)+len(d.added)+len(d.changed)+len(d.removed)+len(d.principals) == 0
}

// facts returns the difference for the audit log. It has names and no values.
func (d difference) facts() map[string]any {
	facts := map[string]any{}
	for what, names := range map[string][]string{
		"settings": d.settings, "servers": slices.Concat(d.added, d.changed, d.removed), "added": d.added,
		"changed": d.changed, "removed": d.removed, "principals": d.principals, "restart": d.restart,
	} {
		if len(names) > 0 {
			facts[what] = names
		}
	}
	if d.narrowed {
		facts["narrowed"] = true
	}
	return facts
}

func namesOf(servers []Server) (names []string) {
	for _, s := range servers {
		names = append(names, s.Name)
	}
	return names
}

// dropReasons returns, by server name, the error for calls to servers that this change has removed or restarted.
func (d difference) dropReasons() map[string]*core.Error {
	why := map[string]*core.Error{}
	for _, name := range d.removed {
		why[name] = core.Errorf(
			core.KindUpstreamGone, "retort.reload", "the server %q was removed from the settings, or disabled", name,
		).WithHint("search again for the tools that are available now").AtTool(name, "")
	}
	for _, name := range d.changed {
		why[name] = core.Errorf(
			core.KindUpstreamGone, "retort.reload",
			"the entry of the server %q was changed in the settings, so the server was stopped", name,
		).WithHint("run the program again").AtTool(name, "")
	}
	return why
}

// prepare builds, from a loaded configuration, the inForce to follow before, which may be nil. Servers whose entries
// are unchanged keep their logins. It registers all secrets of the configuration with the masker.
func (st *Stores) prepare(c Config, loaded *config.Config, before *inForce) (*inForce, error) {
	servers, err := c.servers(loaded)
	if err != nil {
		return nil, err
	}
	next := &inForce{config: loaded, servers: servers, clients: map[string]*personal{}}
	for i, s := range servers {
		servers[i].Client = clientOf(loaded.Settings.Servers[s.Name].PassThrough)
		if before == nil {
			continue
		}
		if old, ok := before.server(s.Name); ok && before.entry(old) == next.entry(servers[i]) {
			servers[i] = old
			if client := before.clients[s.Name]; client != nil {
				next.clients[s.Name] = client
			}
		}
	}
	st.authorizes(next)
	st.register(next)
	return next, nil
}
