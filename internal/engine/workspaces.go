package engine

import (
	"path"
	"slices"
	"time"

	"retort/internal/config"
	"retort/internal/core"
	"retort/internal/home"
	"retort/internal/pipeline/relay"
	"retort/internal/workspace"
)

// The nouns of kept files.
type (
	// Types of workspaces.
	WorkspaceUse   = workspace.SessionUse  // what a session holds
	WorkspaceSwept = workspace.SweepResult // what was removed
)

// kept returns the stores of all sessions' files and states in a data directory.
func kept(data home.Dir, quota int64) (*workspace.Store, *workspace.StateStore) {
	return workspace.NewStore(data.Workspace(), quota).WithCopies(data.RealValues()), workspace.NewStates(data.State())
}

func retention(s config.Settings) workspace.RetentionPolicy {
	return workspace.RetentionPolicy{Results: s.Workspace.Results, Sessions: s.Workspace.Sessions, Bytes: s.Workspace.Size}
}

// sweeps starts the background removal of old files.
func (p *parts) sweeps() {
	if p.config.Home == "" {
		return
	}
	stop := p.pipeline.Workspaces.SweepInBackground(p.pipeline.States, retention(
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

// Workspaces returns the sessions that have files, most recently used first.
func Workspaces(c Config) ([]WorkspaceUse, error) {
	data, err := c.dataDir()
	if err != nil {
		return nil, err
	}
	files, _ := kept(data, 0)
	return files.SessionUses(), nil
}

// WorkspaceFiles returns the files of a session, for a person: file names are not redacted.
func WorkspaceFiles(c Config, session, glob string) (FileList, error) {
	data, err := c.dataDir()
	if err != nil {
		return FileList{}, err
	}
	files, _ := kept(data, 0)
	w, err := files.Open(sessionOf(session))
	if err != nil {
		return FileList{}, err
	}
	defer w.Close()
	list, total, err := w.FindFiles("", glob, maxListed)
	return FileList{Files: append([]core.FileEntry{}, list...), Total: total}, err
}

const maxListed = 100_000

// SweepWorkspaces removes files that are past the retention of the settings and not in use. If dry is true, it only
// reports what it would remove.
func SweepWorkspaces(c Config, dry bool) (WorkspaceSwept, error) {
	loaded, err := c.load()
	if err != nil {
		return WorkspaceSwept{}, err
	}
	files, states := kept(home.Dir(loaded.Home), 0)
	return files.Sweep(states, retention(loaded.Settings), time.Now(), dry)
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
	return relay.NewCache(workspace.NewAnswers(p.dataDir().Cache(), s.TTL, s.Size), listed)
}
