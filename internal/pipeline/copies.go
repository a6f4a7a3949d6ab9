package pipeline

import (
	"retort/internal/core"
	"retort/internal/workspace"
)

// copyOut updates the copies of a session's files in which tokens are replaced by real values, for the person at this
// machine. Callers over the network have no copies, because the person who reads files of this machine is somebody
// else. Failures are reported only to KeptTokens: programs and models must not see them, because they depend on the
// real values.
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
