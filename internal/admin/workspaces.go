package admin

import (
	"time"

	"retort/internal/core"
	"retort/internal/engine"
	"retort/internal/workspace"
)

// Types of workspaces.
type (
	// WorkspaceUse counts the files of one session's workspace.
	WorkspaceUse   = workspace.SessionUse  // counts the files of a session
	WorkspaceSwept = workspace.SweepResult // counts what was removed
)

// ListWorkspaces returns the sessions that have files, most recently used first.
func ListWorkspaces(c engine.Config) ([]WorkspaceUse, error) {
	s, err := openStores(c)
	if err != nil {
		return nil, err
	}
	files, _ := engine.OpenWorkspaces(s.DataDir(), 0)
	return files.SessionUses(), nil
}

// ListWorkspaceFiles returns the files of a session for a person. Lists for a model hide personal data in file names,
// but this list does not.
func ListWorkspaceFiles(c engine.Config, session, glob string) (core.FileList, error) {
	s, err := openStores(c)
	if err != nil {
		return core.FileList{}, err
	}
	files, _ := engine.OpenWorkspaces(s.DataDir(), 0)
	w, err := files.Open(sessionOf(session))
	if err != nil {
		return core.FileList{}, err
	}
	defer w.Close()
	list, total, err := w.FindFiles("", glob, maxListed)
	return core.FileList{Files: append([]core.FileEntry{}, list...), Total: total}, err
}

const maxListed = 100_000

// SweepWorkspaces removes workspace files that are not in use and are older than the retention period in the
// settings. If dry is true, it only reports which files it would remove.
func SweepWorkspaces(c engine.Config, dry bool) (WorkspaceSwept, error) {
	s, err := openStores(c)
	if err != nil {
		return WorkspaceSwept{}, err
	}
	files, states := engine.OpenWorkspaces(s.DataDir(), 0)
	return files.SweepSessions(states, engine.Retention(s.LoadedConfig().Settings), time.Now(), dry)
}
