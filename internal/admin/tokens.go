package admin

import (
	"errors"
	"fmt"
	"time"

	"retort/internal/auth"
	"retort/internal/core"
	"retort/internal/engine"
)

// Token describes an access token, with which a principal calls over the network. It does not contain the secret
// text of the token.
type Token = auth.Token

// NewToken holds a new token together with its secret text, which is stored nowhere.
type NewToken struct {
	Token
	Text     string   `json:"token"`
	Warnings []string `json:"warnings,omitempty"`
}

// CreateToken creates an access token for a principal. The token expires after the duration life, or never if life is
// 0. CreateToken fails if the creation cannot be recorded in the audit log.
func CreateToken(c engine.Config, principal string, life time.Duration) (made NewToken, err error) {
	s, book, err := openTokens(c)
	if err != nil {
		return made, err
	}
	made.Text, made.Token, err = book.CreateToken(principal, life, func(t Token) error { return s.recordToken(t, "created") })
	if err != nil {
		if made.ID != "" {
			_ = s.recordToken(made.Token, "failed")
		}
		return NewToken{}, asError(err)
	}
	named := s.LoadedConfig().Settings.Principals
	if _, ok := named[principal]; len(named) > 0 && !ok {
		made.Warnings = append(
			made.Warnings,
			fmt.Sprintf("the settings do not contain the principal %q, so its token has the permissions of everybody", principal),
		)
	}
	return made, nil
}

// ListTokens returns all tokens that were created and not revoked, oldest first.
func ListTokens(c engine.Config) ([]Token, error) {
	_, book, err := openTokens(c)
	if err != nil {
		return nil, err
	}
	tokens, err := book.ListTokens()
	return tokens, asError(err)
}

// RevokeTokens revokes one access token, given its ID, or all tokens of a principal, given the principal's name.
// When it returns, these tokens are no longer valid, not even in running engines. It also returns an error if it
// could not record the revocation in the audit log.
func RevokeTokens(c engine.Config, which string) ([]Token, error) {
	return revokeTokens(c, func(b *auth.TokenStore) ([]Token, error) { return b.RevokeTokens(which) })
}

// RevokeAllTokens revokes all tokens, even if the token file was tampered with.
func RevokeAllTokens(c engine.Config) ([]Token, error) {
	return revokeTokens(c, (*auth.TokenStore).RevokeAll)
}

func revokeTokens(c engine.Config, do func(*auth.TokenStore) ([]Token, error)) ([]Token, error) {
	s, book, err := openTokens(c)
	if err != nil {
		return nil, err
	}
	gone, err := do(book)
	if err != nil {
		return nil, asError(err)
	}
	var errs []error
	for _, t := range gone {
		errs = append(errs, s.recordToken(t, "revoked"))
	}
	if len(gone) == 0 { // nobody knows which there were
		errs = append(errs, s.RecordEvent(core.AuditEvent{Kind: core.EventToken, Status: "revoked", Facts: map[string]any{"all": true}}))
	}
	if err := errors.Join(errs...); err != nil {
		return gone, core.Errorf(core.KindInternal, "retort.token", "revoked, but the revocation could not be recorded: %w", err)
	}
	return gone, nil
}

// openTokens opens the token store of a configuration.
func openTokens(c engine.Config) (*stores, *auth.TokenStore, error) {
	s, err := openStores(c)
	if err != nil {
		return nil, nil, err
	}
	book, err := s.OpenTokens()
	return s, book, err
}

func (s *stores) recordToken(t Token, how string) error {
	e := core.AuditEvent{Kind: core.EventToken, Principal: t.Name, Status: how, Facts: map[string]any{"token": t.ID}}
	if !t.Expires.IsZero() {
		e.Facts["expires"] = t.Expires.Format(time.RFC3339)
	}
	return s.RecordEvent(e)
}
