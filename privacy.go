package retort

import (
	"path/filepath"
	"regexp"
	"slices"

	"retort/internal/config"
	"retort/internal/pii"
	"retort/internal/pii/screen"
	"retort/internal/pii/vault"
)

// privacy hides what is personal, as the settings say; nil if they say nothing is.
func (p *parts) privacy() *screen.Screen {
	s := p.config.Settings
	if !s.PIITokenization.Bool() {
		return nil
	}
	store := p.vault()
	p.onClose(store.Close)
	o := screen.Options{
		Modes: map[pii.Type]screen.Mode{}, Regions: s.PII.Regions, Keys: map[string]pii.Type{},
		Words: map[pii.Type][]string{}, Types: map[pii.Type]*regexp.Regexp{},
		Reveals: func(server string, t pii.Type) bool { return slices.Contains(s.Servers[server].PII.Reveal, string(t)) },
		Treats:  func(server string, t pii.Type) screen.Treatment { return treatment(s.Servers[server].PII, string(t)) },
	}
	for t, m := range s.PII.Modes {
		o.Modes[pii.Type(t)] = screen.Mode(m)
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
	return screen.New(o, store)
}

// vault keeps the values of tokens, under home.
func (p *parts) vault() *vault.Store {
	s, dir := p.config.Settings.PII, ""
	if p.config.Home != "" {
		dir = filepath.Join(p.config.Home, "vault")
	}
	own, _ := p.ownFile("vault.key")
	keys := vault.Keys{Variable: s.Key.Variable, Age: s.Key.Age, Identity: s.Key.Identity, File: own}
	return vault.Open(dir, keys.Read, s.Expiry)
}

// treatment is what becomes of a type in the answers of a server: the strictest of what
// its settings say.
func treatment(s config.ServerPII, t string) screen.Treatment {
	switch {
	case slices.Contains(s.Block, t):
		return screen.Block
	case slices.Contains(s.Mask, t):
		return screen.Mask
	case slices.Contains(s.Hide, t):
		return screen.Hide
	}
	return screen.Usual
}
