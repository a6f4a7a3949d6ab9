package engine

import (
	"cmp"
	"os"
	"regexp"
	"slices"

	"retort/internal/config"
	"retort/internal/core"
	"retort/internal/privacy/pii"
	"retort/internal/privacy/redact"
	"retort/internal/privacy/vault"
)

// privacy returns the redactor of personal values that the settings describe; nil if they disable it.
func (p *parts) privacy() *redact.Redactor {
	s := p.config.Settings
	if !s.PIITokenization.Bool() {
		return nil
	}
	store := p.vault()
	p.onClose(store.Close)
	o := redact.Options{
		Modes: map[pii.Type]redact.Mode{}, Regions: s.PII.Regions, Keys: map[string]pii.Type{},
		Words: map[pii.Type][]string{}, Types: map[pii.Type]*regexp.Regexp{},
		Reveals: func(server string, t pii.Type) bool {
			return slices.Contains(p.now().config.Settings.Servers[server].PII.Reveal, string(t))
		},
		Treats: func(server string, t pii.Type) redact.Treatment {
			return treatment(p.now().config.Settings.Servers[server].PII, string(t))
		},
	}
	for t, m := range s.PII.Modes {
		o.Modes[pii.Type(t)] = redact.Mode(m)
	}
	for key, t := range s.PII.Keys {
		o.Keys[key] = pii.Type(t)
	}
	for t, list := range s.PII.Words {
		o.Words[pii.Type(t)] = list
	}
	for name, further := range s.PII.Types {
		t := pii.Type(name)
		o.Words[t] = append(slices.Clone(o.Words[t]), further.Words...)
		if o.Types[t] = nil; further.Pattern != "" {
			o.Types[t] = regexp.MustCompile(further.Pattern)
		}
	}
	return redact.New(o, store)
}

// vault opens the store of personal values in the data directory. Without a data directory the store is in memory.
func (p *parts) vault() *vault.Store {
	s, dir := p.config.Settings.PII, ""
	if p.config.Home != "" {
		dir = p.dataDir().Vault()
	}
	return vault.Open(dir, p.keyed("vault.key", p.masterKeys().Read), s.Expiry)
}

// treatment returns how values of a type are treated in results of a server. If the settings name several treatments,
// the strictest applies.
func treatment(s config.ServerPII, t string) redact.Treatment {
	switch {
	case slices.Contains(s.Block, t):
		return redact.Block
	case slices.Contains(s.Mask, t):
		return redact.Mask
	case slices.Contains(s.Hide, t):
		return redact.Hide
	}
	return redact.Usual
}

// Erasure selects what to erase: all values of a person, or everything of one session of a principal. All tokens of
// an erased session lose their values.
type Erasure struct {
	Subjects           []string // texts that are values: an address, a number, a name
	Session, Principal string
}

// Erased is the result of an erasure.
type Erased struct {
	Values   int `json:"values"`
	Sessions int `json:"sessions"`           // that had any of them
	Files    int `json:"files,omitempty"`    // of the session, with its state
	Recorded int `json:"recorded,omitempty"` // executions and sessions of which the record has no code, arguments and messages any more
}

// Erase permanently erases personal values. It destroys the keys with which the values were encrypted, and those of
// the recorded programs that mention them. Running engines drop the values before their next call. The error is a
// *Error; after an error, Erase has still erased as much as possible.
func Erase(c Config, what Erasure) (Erased, error) {
	p, err := c.parts()
	if err != nil {
		return Erased{}, err
	}
	recorded, failed := p.eraseRecord(what) // while it is known which tokens stand for the values
	out, err := p.erase(what)
	out.Recorded = recorded
	err = cmp.Or(err, failed)
	if said := p.recordErasure(what, out, err); err == nil && said != nil {
		err = core.Errorf(core.KindInternal, "retort.erase", "the data is erased, but the erasure could not be recorded: %w", said)
	}
	return out, err
}

// erase erases everything outside the audit log: cached results, Outcomes of tasks, values, and files of a session.
func (p *parts) erase(what Erasure) (out Erased, err error) {
	store := p.vault()
	defer store.Close()
	if data := p.dataDir(); data != "" {
		if err := os.RemoveAll(data.Cache()); err != nil { // answers that are kept have values, too
			return out, core.Errorf(core.KindInternal, "retort.erase", "the cached results of tools could not be erased: %w", err)
		}
	}
	var mentions func([]byte) bool
	if len(what.Subjects) > 0 {
		is := redact.MentionMatcher(what.Subjects...)
		mentions = func(text []byte) bool { return is(string(text)) }
	}
	if err := p.eraseTasks(what, mentions); err != nil {
		return out, core.Errorf(core.KindInternal, "retort.erase", "the results of tasks could not be erased: %w", err)
	}
	if len(what.Subjects) == 0 {
		return p.eraseSession(store, what.Principal, sessionOf(what.Session))
	}
	if out.Values, out.Sessions, err = store.Forget(redact.SubjectMatcher(what.Subjects...)); err == nil {
		err = p.eraseCopies() // those that engines write from now on have no value that is forgotten
	}
	if err != nil {
		return out, core.Errorf(core.KindInternal, "retort.erase", "not everything could be erased: %w", err)
	}
	return out, nil
}

// eraseCopies removes all copies of files with real values, because a copy does not tell which values it contains.
func (p *parts) eraseCopies() error {
	if p.config.Home == "" {
		return nil
	}
	files, _ := kept(p.dataDir(), 0)
	return files.EraseCopies()
}

func (p *parts) eraseSession(store *vault.Store, principal, session string) (out Erased, err error) {
	files, states := kept(p.dataDir(), 0)
	own := session
	if principal != "" {
		own = redact.SessionName(principal, session)
	}
	swept, err := files.Erase(states, own)
	if out.Files = swept.Files; err != nil {
		return out, err
	}
	s, err := store.Session(redact.SessionName(principal, session))
	if err == nil {
		out.Values, err = s.Forget(func(string) bool { return true })
	}
	if out.Values > 0 {
		out.Sessions = 1
	}
	if err != nil {
		return out, core.Errorf(core.KindInternal, "retort.erase", "not everything could be erased: %w", err)
	}
	return out, nil
}
