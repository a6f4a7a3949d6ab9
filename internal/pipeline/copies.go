package pipeline

import (
	"retort/internal/core"
	"retort/internal/workspace"
)

// copyOut updates the copies of a session's files that have the real values, for the person at this machine. Callers over
// the network have none: their values are not those of the person who reads the files of this machine. What could not be
// copied is told to KeptTokens and to no program or model, since it depends on the values.
func (p *Pipeline) copyOut(session string, files *workspace.Workspace) {
	if p.KeptTokens == nil || p.Policy.Principal() != "" {
		return
	}
	screen, err := p.privacySession(session)
	if err != nil {
		p.KeptTokens(session, err)
		return
	}
	done, err := files.CopyOut(func(name string, data []byte, most int) ([]byte, bool, *core.Error) {
		if screen == nil {
			return data, false, nil
		}
		return screen.ShowFile(name, data, most)
	})
	if done.Restored > 0 {
		if refused := p.recordEvent(core.EventFile, session, "copy", map[string]any{"files": done.Restored}, requestBody{}); refused != nil {
			p.KeptTokens(session, refused)
		}
	}
	for _, kept := range done.Kept {
		p.KeptTokens(session, kept)
	}
	if err != nil {
		p.KeptTokens(session, err)
	}
}
