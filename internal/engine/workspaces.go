package engine

import (
	"path"
	"slices"

	"retort/internal/config"
	"retort/internal/core"
	"retort/internal/home"
	"retort/internal/pipeline/relay"
	"retort/internal/workspace"
)

// OpenWorkspaces returns the stores of all sessions' files and states in a data directory.
func OpenWorkspaces(data home.Dir, quota int64) (*workspace.WorkspaceStore, *workspace.StateStore) {
	return workspace.NewStore(data.Workspace(), quota).WithCopies(data.RealValues()), workspace.NewStates(data.State())
}

// Retention returns how long files of workspaces are kept.
func Retention(s config.Settings) workspace.RetentionPolicy {
	return workspace.RetentionPolicy{Results: s.Workspace.Results, Sessions: s.Workspace.Sessions, Bytes: s.Workspace.Size}
}

// sweeps starts the background removal of old files.
func (p *parts) sweeps() {
	if p.config.Home == "" {
		return
	}
	stop := p.pipeline.Workspaces.SweepInBackground(p.pipeline.States, Retention(
		p.config.Settings,
	), func(swept workspace.SweepResult, err error) {
		if err != nil {
			p.log.Warn("old files could not be removed", "error", err)
		}
		if swept.Files > 0 {
			p.log.Info("removed old files", "files", swept.Files, "bytes", swept.Bytes, "sessions", len(swept.Sessions))
		}
	})
	p.onClose(func() error { stop(); return nil })
}

// cache returns the cache of tool results; nil if the settings disable it.
func (p *parts) cache() *relay.AnswerCache {
	s := p.config.Settings.Cache
	if s.TTL == 0 || p.config.Home == "" {
		return nil
	}
	listed := func(t *core.Tool) bool {
		return slices.ContainsFunc(s.Tools, func(pattern string) bool { ok, _ := path.Match(pattern, t.Server+"."+t.Name); return ok })
	}
	return relay.NewCache(workspace.NewAnswers(p.DataDir().Cache(), s.TTL, s.Size), listed)
}
