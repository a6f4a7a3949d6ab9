package engine

import (
	"retort/internal/config"
	"retort/internal/home"
	"retort/internal/workspace"
)

// OpenWorkspaces returns the stores of all sessions' files and states in a data directory. quota limits the bytes of
// one session's files; 0 means no limit.
func OpenWorkspaces(data home.Dir, quota int64) (*workspace.WorkspaceStore, *workspace.StateStore) {
	return workspace.NewStore(data.Workspace(), quota).WithCopies(data.RealValues()), workspace.NewStates(data.State())
}

// Retention returns how long files of workspaces are kept.
func Retention(s config.Settings) workspace.RetentionPolicy {
	return workspace.RetentionPolicy{Results: s.Workspace.Results, Sessions: s.Workspace.Sessions, Bytes: s.Workspace.Size}
}
