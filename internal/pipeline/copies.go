package pipeline

import (
	"retort/internal/core"
	"retort/internal/workspace"
)

// copyOut updates the copies of a session's workspace files that are meant for the person at this machine. In these
// copies, tokens are replaced by the real values. For a caller over the network copyOut makes none, because that
// caller is not the person who reads files on this machine. Error messages can reveal real values, so they are passed
// only to KeptTokens and never to programs or models.
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
