package engine

import (
	"regexp"
	"slices"

	"retort/internal/config"
	"retort/internal/privacy/pii"
	"retort/internal/privacy/redact"
)

// OpenRedactor returns the redactor of personal values that the settings describe; nil if they disable it. now
// returns the settings in force. close must be called when the redactor is no longer used.
func (st *Stores) OpenRedactor(now func() config.Settings) (r *redact.Redactor, close func() error) {
	if !st.config.Settings.PIITokenization.IsOn() {
		return nil, func() error { return nil }
	}
	store := st.OpenVault()
	o := RedactOptions(st.config.Settings)
	o.Reveals = func(server string, t pii.Type) bool {
		return slices.Contains(now().Servers[server].PII.Reveal, string(t))
	}
	o.Treats = func(server string, t pii.Type) redact.TypeTreatment {
		return treatmentOf(now().Servers[server].PII, string(t))
	}
	return redact.New(o, store), store.Close
}

// RedactOptions returns what the settings say about personal data, apart from the rules of single servers.
func RedactOptions(s config.Settings) redact.Options {
	o := redact.Options{
		Modes: map[pii.Type]redact.HideMode{}, Regions: s.PII.Regions, Keys: map[string]pii.Type{},
		Words: map[pii.Type][]string{}, Types: map[pii.Type]*regexp.Regexp{},
	}
	for t, m := range s.PII.Modes {
		o.Modes[pii.Type(t)] = redact.HideMode(m)
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
	return o
}

// treatmentOf returns how personal data of the type t is treated in results of a server. If the settings name
// several treatments for the type, it returns the strictest.
func treatmentOf(s config.ServerPII, t string) redact.TypeTreatment {
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
