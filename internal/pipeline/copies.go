package pipeline

import (
	"retort/internal/core"
	"retort/internal/workspace"
)

// copyOut updates the copies of a session's files in which tokens are replaced by real values. They exist only for
// the person at this machine. No copies are made for callers over the network, because somebody else reads this
// machine's files. Failures depend on the real values, so they are reported only to KeptTokens and never to programs
// or models.
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
