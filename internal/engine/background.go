package engine

import (
	"retort/internal/config"
	"retort/internal/workspace"
)

// backgroundAssembly holds what works in the background: the removal of old files, the approval socket, and the
// reload of changed configuration files.
type backgroundAssembly struct {
	closeStack
	reloader *configReloader
}

// newBackgroundAssembly starts removing old files. It does not yet watch the configuration files;
// configReloader.start does.
func newBackgroundAssembly(
	c *configuration, data *dataAssembly, tools *toolAssembly, people *peopleAssembly, execution *executionAssembly, files *config.Watcher,
) *backgroundAssembly {
	var opened closeStack
	if c.config.Home != "" {
		opened.push(startSweeping(c, data))
	}
	opened.push(newApprovalSocket(c, people.approvals.Table).Close)
	reloader := newConfigReloader(c, data, tools, execution.pipeline.Relay, files)
	opened.push(reloader.Close)
	return &backgroundAssembly{opened, reloader}
}

// startSweeping starts the background removal of old files from workspaces.
func startSweeping(c *configuration, data *dataAssembly) (stop func() error) {
	end := data.workspaces.SweepInBackground(data.states, Retention(c.config.Settings), func(swept workspace.SweepResult, err error) {
		if err != nil {
			c.log.Warn("old files could not be removed", "error", err)
		}
		if swept.Files > 0 {
			c.log.Info("removed old files", "files", swept.Files, "bytes", swept.Bytes, "sessions", len(swept.Sessions))
		}
	})
	return func() error { end(); return nil }
}
