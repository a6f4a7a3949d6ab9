package admin

import (
	"cmp"
	"context"
	"os"

	"retort/internal/audit"
	"retort/internal/audit/sqlstore"
	"retort/internal/core"
	"retort/internal/engine"
	"retort/internal/privacy/redact"
	"retort/internal/privacy/vault"
)

// EraseRequest selects the data to erase: all values of a person, or everything in one session of a principal. After
// a session is erased, the privacy tokens that were made in it no longer stand for any value.
type EraseRequest struct {
	Subjects           []string // values of the person: e-mail addresses, numbers, names
	Session, Principal string
}

// EraseResult is the result of an erasure.
type EraseResult struct {
	Values   int `json:"values"`
	Sessions int `json:"sessions"`        // sessions that had any of the values
	Files    int `json:"files,omitempty"` // files of the erased session, including its state
	// Recorded counts the executions and sessions whose recorded code, arguments and messages became unreadable.
	Recorded int `json:"recorded,omitempty"`
}

// Erase permanently erases personal values. It destroys the keys that encrypt the values, and the keys that encrypt
// recorded programs in which the values occur. Running engines drop the values before their next call. The error is a
// *Error. If Erase returns an error, it has still erased as much as possible.
func Erase(c engine.Config, what EraseRequest) (EraseResult, error) {
	s, err := openStores(c)
	if err != nil {
		return EraseResult{}, err
	}
	recorded, failed := s.eraseAudit(what) // while it is known which tokens stand for the values
	out, err := s.eraseStored(what)
	out.Recorded = recorded
	err = cmp.Or(err, failed)
	if said := s.recordErasure(what, out, err); err == nil && said != nil {
		err = core.Errorf(core.KindInternal, "retort.erase", "the data is erased, but the erasure could not be recorded: %w", said)
	}
	return out, err
}

// eraseStored erases the selected data everywhere except in the audit log: cached results, Outcomes of jobs, values
// and files of a session.
func (s *stores) eraseStored(what EraseRequest) (out EraseResult, err error) {
	store := s.OpenVault()
	defer store.Close()
	if data := s.DataDir(); data != "" {
		if err := os.RemoveAll(data.Cache()); err != nil { // answers that are kept have values, too
			return out, core.Errorf(core.KindInternal, "retort.erase", "the cached results of tools could not be erased: %w", err)
		}
	}
	var mentions func([]byte) bool
	if len(what.Subjects) > 0 {
		is := redact.MentionMatcher(what.Subjects...)
		mentions = func(text []byte) bool { return is(string(text)) }
	}
	if err := s.eraseJobs(what, mentions); err != nil {
		return out, core.Errorf(core.KindInternal, "retort.erase", "the results of jobs could not be erased: %w", err)
	}
	if len(what.Subjects) == 0 {
		return s.eraseSession(store, what.Principal, sessionOf(what.Session))
	}
	if out.Values, out.Sessions, err = store.ForgetValues(redact.SubjectMatcher(what.Subjects...)); err == nil {
		err = s.eraseCopies() // those that engines write from now on have no value that is forgotten
	}
	if err != nil {
		return out, core.Errorf(core.KindInternal, "retort.erase", "not everything could be erased: %w", err)
	}
	return out, nil
}

// eraseCopies removes all copies of workspace files that were made for the user, in which real values replace the
// privacy tokens. It removes every copy, because it is not recorded which values a copy contains.
func (s *stores) eraseCopies() error {
	if s.LoadedConfig().Home == "" {
		return nil
	}
	files, _ := engine.OpenWorkspaces(s.DataDir(), 0)
	return files.EraseCopies()
}

func (s *stores) eraseSession(store *vault.TokenVault, principal, session string) (out EraseResult, err error) {
	files, states := engine.OpenWorkspaces(s.DataDir(), 0)
	own := session
	if principal != "" {
		own = redact.SessionName(principal, session)
	}
	swept, err := files.EraseSession(states, own)
	if out.Files = swept.Files; err != nil {
		return out, err
	}
	values, err := store.OpenSession(redact.SessionName(principal, session))
	if err == nil {
		out.Values, err = values.ForgetValues(func(string) bool { return true })
	}
	if out.Values > 0 {
		out.Sessions = 1
	}
	if err != nil {
		return out, core.Errorf(core.KindInternal, "retort.erase", "not everything could be erased: %w", err)
	}
	return out, nil
}

// eraseAudit destroys the keys of all audit log bodies that belong to a session or mention a person. It returns
// the number of destroyed keys; each belonged to one execution or session.
func (s *stores) eraseAudit(what EraseRequest) (int, error) {
	if s.LoadedConfig().Home == "" {
		return 0, nil
	}
	if _, err := os.Stat(s.DataDir().Audit()); err != nil && s.LoadedConfig().Settings.Audit.Store == "" {
		return 0, nil
	}
	ctx := context.Background()
	r, err := s.ReadAudit(ctx, sqlstore.Options{ReadOnly: true, Forgets: true})
	if err != nil || len(r.Stores) == 0 && len(r.UnreadErrors()) == 0 {
		return 0, err
	}
	defer r.Close()
	r.Erasing = s.RecordAlways
	var out audit.EraseResult
	if len(what.Subjects) > 0 {
		out, err = s.eraseMentions(ctx, r, what.Subjects)
	} else {
		out, err = r.EraseSession(ctx, what.Principal, sessionOf(what.Session))
	}
	return out.Keys, err
}

// eraseMentions erases the audit log bodies that mention a person, either in plain text or through a token.
func (s *stores) eraseMentions(ctx context.Context, r *engine.AuditReader, subjects []string) (audit.EraseResult, error) {
	vault := s.OpenVault()
	defer vault.Close()
	token, failed := vault.TokensOf(redact.SubjectMatcher(subjects...))
	plain := redact.MentionMatcher(subjects...)
	out, err := r.EraseMentions(ctx, func(principal, session, text string) bool {
		return plain(text) || token(redact.SessionName(principal, session), text)
	}, nil)
	return out, cmp.Or(err, failed)
}

// recordErasure records an erasure and its result in the audit log.
func (s *stores) recordErasure(what EraseRequest, erased EraseResult, failed error) error {
	e := core.AuditEvent{
		Kind: core.EventErasure, Status: "ok",
		Facts: map[string]any{"values": erased.Values, "sessions": erased.Sessions, "files": erased.Files, "recorded": erased.Recorded},
	}
	if failed != nil {
		e.Status = "incomplete"
	}
	if len(what.Subjects) > 0 {
		e.Facts["subjects"] = len(what.Subjects)
	} else {
		e.Session, e.Principal = sessionOf(what.Session), what.Principal
	}
	return s.RecordEvent(e)
}

// eraseJobs erases the Outcomes of the jobs of a session, or of those that mention a person.
func (s *stores) eraseJobs(what EraseRequest, mentions func([]byte) bool) error {
	if s.LoadedConfig().Home == "" {
		return nil
	}
	if _, err := os.Stat(s.DataDir().Queue()); err != nil {
		return nil
	}
	q, err := s.OpenQueue(s.DataDir(), nil, engine.LostJob)
	if err != nil {
		return err
	}
	defer q.Close()
	_, err = q.EraseJobs(what.Principal, sessionOf(what.Session), mentions)
	return err
}
