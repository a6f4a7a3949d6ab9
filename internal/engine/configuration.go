package engine

import (
	"os"
	"sync/atomic"

	"retort/internal/config"
	"retort/internal/core"
	"retort/internal/doctor"
	"retort/internal/home"
	"retort/internal/policy"
)

// configuration holds what an engine was opened with: its stores, the settings in force and the policy made from them.
type configuration struct {
	closeStack
	*Stores
	commands roleCommands
	home     home.Dir // configured data directory, or a temporary one
	current  *atomic.Pointer[activeConfig]
	policy   *policy.CurrentPolicy
}

// newConfiguration checks the configuration of stores and returns it. It registers the secrets in it with the
// stores, so that they can be masked in all texts.
func newConfiguration(stores *Stores) (*configuration, error) {
	c, loaded := stores.source, stores.config
	if err := refuseDisabled(loaded.Settings); err != nil {
		return nil, err
	}
	addFileWarnings(loaded)
	rules, err := policy.New(policyRules(loaded.Settings))
	if err != nil {
		return nil, err
	}
	first, err := stores.prepareConfig(loaded, nil, nil)
	if err != nil {
		return nil, err
	}
	if err := c.checkUnknownServers(loaded); err != nil {
		return nil, err
	}
	commands, err := c.findRoleCommands()
	if err != nil {
		return nil, err
	}
	dir, removeDir, err := stores.ensureHome()
	if err != nil {
		return nil, err
	}
	current := &atomic.Pointer[activeConfig]{}
	current.Store(first)
	conf := &configuration{
		Stores: stores, commands: commands, home: dir, current: current, policy: policy.NewCurrent(rules),
	}
	conf.push(removeDir)
	return conf, nil
}

// ensureHome returns the data directory. If none is configured, it creates a temporary one. The function remove
// deletes a temporary directory and does nothing to a configured one.
func (st *Stores) ensureHome() (dir home.Dir, remove func() error, err error) {
	if dir = st.DataDir(); dir != "" {
		return dir, func() error { return nil }, nil
	}
	made, err := os.MkdirTemp("", "retort-")
	if err != nil {
		return "", nil, core.Errorf(core.KindInternal, "retort.open", "%w", err)
	}
	return home.Dir(made), func() error { return os.RemoveAll(made) }, nil
}

// activeConfig returns the configuration in force.
func (c *configuration) activeConfig() *activeConfig { return c.current.Load() }

// refuseDisabled returns an error if the settings have enabled: false.
func refuseDisabled(s config.Settings) error {
	if !s.Enabled.IsOn() {
		return core.Errorf(
			core.KindPolicy, "retort.open", "code execution is turned off by the setting enabled: false",
		).WithHint("set enabled: true to use Retort")
	}
	return nil
}

// addFileWarnings adds a warning to the loaded configuration if the limit of open files is too low.
func addFileWarnings(loaded *config.Config) {
	for _, c := range doctor.CheckFiles() {
		loaded.Warnings = append(loaded.Warnings, c.Words+": "+c.Mend)
	}
}
