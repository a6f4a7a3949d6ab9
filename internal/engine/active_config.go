package engine

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"retort/internal/config"
	"retort/internal/core"
	"retort/internal/policy"
)

// activeConfig is the configuration that the engine currently applies. It is immutable: a reload replaces it as a
// whole. Settings that take effect at the next start keep the values with which the engine was opened.
type activeConfig struct {
	config  *config.Config
	servers []Server                 // enabled servers, with their logins
	logins  map[string]*serverLogins // by server, only for servers that may require a login
	removed []string                 // sorted principals for which earlier settings had rules
	// levels has the newest permission_levels if they have changed since the engine was opened. Otherwise it is
	// nil.
	levels levelRules
	// restricting is a configuration from files that a running call may have changed. To be safe, the engine
	// applies only its restrictions, in addition to the rules of config. It is nil if there is no such
	// configuration.
	restricting *config.Config
	// restrictingText encodes the configuration in restricting. It is the result of effectText for that
	// configuration.
	restrictingText string
}

// levelRules holds the settings block permission_levels: the rules of each permission level.
type levelRules map[config.PermissionLevel]config.LevelRules

// findServer returns the configured server with this name.
func (f *activeConfig) findServer(name string) (Server, bool) {
	i := slices.IndexFunc(f.servers, func(s Server) bool { return s.Name == name })
	if i < 0 {
		return Server{}, false
	}
	return f.servers[i], true
}

// entryText encodes how a server is reached and how its instances are shared. If this text changes, the server
// must be restarted. It does not include rules on the server's tools. It contains secrets.
func (f *activeConfig) entryText(s Server) string {
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
		panic(err) // cannot happen: there are only strings, numbers and maps of them
	}
	return string(text)
}

// policyConfig returns the configuration with the newest policy rules. That is the one in the field restricting or,
// if it is nil, the one in config.
func (f *activeConfig) policyConfig() *config.Config { return cmp.Or(f.restricting, f.config) }

// newestSettings returns the settings of the configuration that has the newest policy rules, with the newest block
// permission_levels.
func (f *activeConfig) newestSettings() config.Settings {
	s := f.policyConfig().Settings
	if f.levels != nil {
		s.Levels = f.levels
	}
	return s
}

// effectText encodes everything in a configuration that takes effect while the engine runs. The text contains
// secrets.
func (f *activeConfig) effectText() string {
	entries := map[string]string{}
	for _, s := range f.servers {
		entries[s.Name] = f.entryText(s)
	}
	text, err := json.Marshal([]any{f.config.Settings, entries, f.levels})
	if err != nil {
		panic(err) // cannot happen: there are only strings, numbers and maps of them
	}
	return string(text)
}

// newPolicy returns the policy of this configuration. If the block permission_levels has changed since the start,
// additional restrictions in it take effect now, and additional permissions at the next start.
func (f *activeConfig) newPolicy() (*policy.Policy, error) {
	s := f.policyConfig().Settings
	started, err := f.policyOf(s)
	if err != nil || f.levels == nil {
		return started, err
	}
	s.Levels = f.levels
	changed, err := f.policyOf(s)
	if err != nil {
		return nil, err
	}
	both, _ := started.RestrictedBy(changed) // the limit is more than two policies
	return both, nil
}

func (f *activeConfig) policyOf(s config.Settings) (*policy.Policy, error) {
	r := policyRules(s)
	r.Removed = f.removed
	return policy.New(r)
}

// configDifference lists what a reload of the configuration files changes.
type configDifference struct {
	settings                []string // keys of the settings that take effect now
	added, changed, removed []string // names of servers
	principals              []string // principals that no longer have rules
	restart                 []string // keys of the settings that take effect at the next start
	narrowed                bool     // only the restrictions in the change take effect
	restored                bool     // the effect of an earlier narrowed change ends
}

// prepareReload returns the activeConfig of a newly loaded configuration, its policy, and how it differs from the
// configuration in force. It does not apply any of them.
func (c *configuration) prepareReload(loaded *config.Config) (*activeConfig, *policy.Policy, configDifference, error) {
	var d configDifference
	if err := c.source.checkUnknownServers(loaded); err != nil {
		return nil, nil, d, err
	}
	before := c.activeConfig()
	merged, restart := c.keepStarted(loaded)
	var levels levelRules
	if !reflect.DeepEqual(loaded.Settings.Levels, merged.Settings.Levels) {
		levels = loaded.Settings.Levels
	}
	next, err := c.prepareConfig(merged, levels, before)
	if err != nil {
		return nil, nil, d, err
	}
	rules, err := next.newPolicy()
	if err != nil {
		return nil, nil, d, err
	}
	d = compareConfigs(before, next)
	d.restart = restart
	if first := firstExposed(c.config, next); first != "" {
		d.restart = append(d.restart, "servers."+first+".expose")
	}
	return next, rules, d, nil
}

// narrowReload returns the activeConfig and policy for a change that a program may have made. Only the
// restrictions of the change take effect: a call must be allowed by both the old rules and the new ones, and
// removed servers are not available. wanted and rules are the results of prepareReload.
func (c *configuration) narrowReload(wanted *activeConfig, rules *policy.Policy) (*activeConfig, *policy.Policy, configDifference, error) {
	var d configDifference
	before := c.activeConfig()
	next := *before
	next.servers = slices.DeleteFunc(
		slices.Clone(before.servers), func(s Server) bool { return !slices.Contains(serverNames(wanted.servers), s.Name) },
	)
	next.removed, next.levels, next.restricting, next.restrictingText = wanted.removed, wanted.levels, wanted.config, wanted.effectText()
	rules, ok := rules.RestrictedBy(c.policy.ViewFor("").InForce())
	if !ok {
		return nil, nil, d, core.Errorf(
			core.KindLimit, "retort.reload",
			"the configuration files changed too many times while calls that may have side effects were running; the previous configuration stays in force",
		).
			WithHint("save the files again when no calls are running, or restart retort serve")
	}
	d = compareConfigs(before, &next)
	d.narrowed = true
	return &next, rules, d, nil
}

// keepStarted returns the loaded configuration in the form in which it can be applied now: settings that take
// effect only at the next start keep the values with which the engine was opened. It also returns the names of the
// changed settings among these.
func (c *configuration) keepStarted(loaded *config.Config) (merged *config.Config, restart []string) {
	all := *loaded
	s, wanted := c.config.Settings, loaded.Settings
	s.Enabled, s.PermissionLevel, s.ToolChanges, s.Principals, s.Servers = wanted.Enabled, wanted.PermissionLevel, wanted.ToolChanges, wanted.Principals, wanted.Servers
	a := wanted.Approval
	s.Approval.AutoApproveLow, s.Approval.AutoApproveMedium, s.Approval.AutoApproveHigh = a.AutoApproveLow, a.AutoApproveMedium, a.AutoApproveHigh
	s.Approval.Irreversible = a.Irreversible
	known := func(command config.Command) bool {
		return slices.ContainsFunc(c.config.Settings.Commands, func(k config.Command) bool { return k.Command == command.Command })
	}
	s.Commands = slices.DeleteFunc(slices.Clone(wanted.Commands), func(k config.Command) bool { return !known(k) })
	if len(s.Commands) == len(wanted.Commands) {
		s.Commands = wanted.Commands // also if it is nil, and the clone is not
	}
	all.Settings, all.Home = s, c.config.Home
	restart = config.DifferingKeys(s, wanted)
	if loaded.Home != c.config.Home {
		restart = append(restart, "the data directory")
	}
	return &all, restart
}

// changesGroupClaim reports whether loaded has entries for groups and reads the groups from another claim than the one
// with which the engine was opened.
func (c *configuration) changesGroupClaim(loaded *config.Config) bool {
	named := false
	for name := range loaded.Settings.Principals {
		named = named || strings.HasPrefix(name, core.GroupPrefix)
	}
	return named && loaded.Settings.HTTP.OAuth.Groups != c.config.Settings.HTTP.OAuth.Groups
}

// removedPrincipals returns the sorted names of the principals for which the configuration next has no rules,
// although an earlier configuration had some.
func (f *activeConfig) removedPrincipals(next *config.Config) (names []string) {
	add := func(name string) {
		if _, named := next.Settings.Principals[name]; !named && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for name := range f.policyConfig().Settings.Principals {
		add(name)
	}
	for _, name := range f.removed {
		add(name)
	}
	slices.Sort(names)
	return names
}

func compareConfigs(before, next *activeConfig) (d configDifference) {
	d.settings, d.restored = config.DifferingKeys(before.newestSettings(), next.newestSettings()), before.restricting != nil
	d.principals = slices.DeleteFunc(slices.Clone(next.removed), func(name string) bool { return slices.Contains(before.removed, name) })
	for _, s := range next.servers {
		switch old, ok := before.findServer(s.Name); {
		case !ok:
			d.added = append(d.added, s.Name)
		case before.entryText(old) != next.entryText(s):
			d.changed = append(d.changed, s.Name)
		}
	}
	for _, s := range before.servers {
		if _, still := next.findServer(s.Name); !still {
			d.removed = append(d.removed, s.Name)
		}
	}
	return d
}

// firstExposed returns the first server that clients see directly in the new configuration next. It returns "" if
// there is no such server, or if clients already saw a server directly when the engine was opened.
func firstExposed(started *config.Config, next *activeConfig) string {
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

// describeOutstanding describes, for a person, the changes to configuration files that have not taken effect, and
// what to do about it. It returns "" if all changes have taken effect.
func (d configDifference) describeOutstanding() string {
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

func (d configDifference) isEmpty() bool {
	return !d.narrowed && !d.restored && len(d.settings)+len(d.added)+len(d.changed)+len(d.removed)+len(d.principals) == 0
}

// facts returns the difference in the form of additional data for an audit log entry. It contains names of
// settings and servers, and no values.
func (d configDifference) facts() map[string]any {
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

// dropReasons returns, by server name, the error for calls to servers that this change has removed or restarted.
func (d configDifference) dropReasons() map[string]*core.Error {
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

// prepareConfig builds an activeConfig from a loaded configuration and the given permission levels. before is the
// activeConfig that it will replace, or nil at the start. Servers whose entries are unchanged keep their logins.
// prepareConfig registers all secrets of the configuration for masking.
func (st *Stores) prepareConfig(loaded *config.Config, levels levelRules, before *activeConfig) (*activeConfig, error) {
	servers, err := st.source.listServers(loaded)
	if err != nil {
		return nil, err
	}
	next := &activeConfig{config: loaded, servers: servers, logins: map[string]*serverLogins{}, levels: levels}
	for i, s := range servers {
		servers[i].Client = clientFeatures(loaded.Settings.Servers[s.Name].PassThrough)
	}
	if before != nil {
		next.removed = before.removedPrincipals(loaded)
		next.keepLogins(before)
	}
	st.attachLogins(next)
	st.registerConfig(next)
	return next, nil
}

// keepLogins copies logins from the configuration before, for the servers whose entries are the same in both.
func (f *activeConfig) keepLogins(before *activeConfig) {
	for i, s := range f.servers {
		old, ok := before.findServer(s.Name)
		if !ok || before.entryText(old) != f.entryText(s) {
			continue
		}
		f.servers[i] = old
		if logins := before.logins[s.Name]; logins != nil {
			f.logins[s.Name] = logins
		}
	}
}
