package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"retort/internal/auth"
	"retort/internal/core"
)

// Token describes an access token, with which a principal calls over the network. It does not hold the token's text.
type Token = auth.Token

// NewToken is a token together with its text. The text is stored nowhere.
type NewToken struct {
	Token
	Text     string   `json:"token"`
	Warnings []string `json:"warnings,omitempty"`
}

// CreateToken creates a token for a principal, valid for life; 0 means forever. It creates none unless it can record
// that in the audit log.
func CreateToken(c Config, principal string, life time.Duration) (made NewToken, err error) {
	p, book, err := c.tokens()
	if err != nil {
		return made, err
	}
	made.Text, made.Token, err = book.Create(principal, life, func(t Token) error { return p.recordToken(t, "created") })
	if err != nil {
		if made.ID != "" {
			_ = p.recordToken(made.Token, "failed")
		}
		return NewToken{}, known(err)
	}
	named := p.config.Settings.Principals
	if _, ok := named[principal]; len(named) > 0 && !ok {
		made.Warnings = append(
			made.Warnings,
			fmt.Sprintf("the settings name no principal %q: its token has the permissions of everybody", principal),
		)
	}
	return made, nil
}

// Tokens returns all tokens that were created and not revoked, oldest first.
func Tokens(c Config) ([]Token, error) {
	_, book, err := c.tokens()
	if err != nil {
		return nil, err
	}
	tokens, err := book.Tokens()
	return tokens, known(err)
}

// RevokeTokens revokes all tokens of a principal, or the one with an id. When it returns they are no longer valid, in
// running engines as well. The error may say that the revocation could not be recorded.
func RevokeTokens(c Config, which string) ([]Token, error) {
	return c.revoke(func(b *auth.TokenStore) ([]Token, error) { return b.Revoke(which) })
}

// RevokeAllTokens revokes all tokens, also those of a token file that was tampered with.
func RevokeAllTokens(c Config) ([]Token, error) {
	return c.revoke((*auth.TokenStore).RevokeAll)
}

func (c Config) revoke(do func(*auth.TokenStore) ([]Token, error)) ([]Token, error) {
	p, book, err := c.tokens()
	if err != nil {
		return nil, err
	}
	gone, err := do(book)
	if err != nil {
		return nil, known(err)
	}
	var errs []error
	for _, t := range gone {
		errs = append(errs, p.recordToken(t, "revoked"))
	}
	if len(gone) == 0 { // nobody knows which there were
		errs = append(errs, p.recordAlone(core.AuditEvent{Kind: core.EventToken, Status: "revoked", Facts: map[string]any{"all": true}}))
	}
	if err := errors.Join(errs...); err != nil {
		return gone, core.Errorf(core.KindInternal, "retort.token", "revoked, but the revocation could not be recorded: %w", err)
	}
	return gone, nil
}

// tokens opens the token store of a configuration, without an engine.
func (c Config) tokens() (*parts, *auth.TokenStore, error) {
	p, err := c.parts()
	if err != nil {
		return nil, nil, err
	}
	book, err := p.tokens()
	return p, book, err
}

func (p *parts) tokens() (*auth.TokenStore, error) {
	key := p.userDir().ApprovalsKey()
	if key == "" || p.config.Home == "" {
		return nil, core.Errorf(
			core.KindInvalidArguments, "retort.token",
			"tokens cannot be stored: this user has no home directory, or there is no data directory",
		).WithHint("set HOME, or name a folder with --home")
	}
	dir, err := p.dataDir().Abs()
	if err != nil {
		return nil, core.Errorf(core.KindInternal, "retort.token", "%w", err)
	}
	return auth.OpenBook(dir.AccessTokens(), key), nil
}

func (p *parts) recordToken(t Token, how string) error {
	e := core.AuditEvent{Kind: core.EventToken, Principal: t.Name, Status: how, Facts: map[string]any{"token": t.ID}}
	if !t.Expires.IsZero() {
		e.Facts["expires"] = t.Expires.Format(time.RFC3339)
	}
	return p.recordAlone(e)
}

// callers authenticates those who call over the network. It accepts tokens of this configuration and of the
// authorization server that the settings name. It is closed with the engine.
type callers struct {
	guard *auth.Guard
	book  *auth.TokenStore // nil: there is no place for tokens
	oauth bool
	// refused returns the reason why every call of a principal is refused, or nil.
	refused func(principal string) *core.Error
}

func (e *Engine) callers() (*callers, error) {
	c := &callers{refused: func(principal string) *core.Error { return e.policy.For(principal).Refused() }}
	var oauth *auth.JWTVerifier
	if s := e.config.Settings.HTTP.OAuth; s.Issuer != "" {
		var err error
		if oauth, err = auth.NewResource(auth.OAuth(s), e.log); err != nil {
			return nil, err
		}
		c.oauth = true
	}
	if book, err := e.tokens(); err == nil {
		c.book = book
		if _, err := book.Tokens(); err != nil {
			e.log.Warn("the access tokens cannot be read, so none is accepted", "error", err)
		}
		e.onClose(book.Close)
	}
	c.guard = auth.NewGuard(c.book, oauth)
	return c, nil
}

// Required reports whether callers must have a token: always with an authorization server, otherwise once a first
// token has been created.
func (c *callers) Required() bool { return c.oauth || c.book != nil && !c.book.Empty() }

func (c *callers) Authenticate(ctx context.Context, bearer string) (Caller, error) {
	p, err := c.guard.Authenticate(ctx, bearer)
	if err != nil {
		return Caller{}, refusal{err, c.guard}
	}
	if refused := c.refused(p.Name); refused != nil {
		refused.Err = auth.ErrToken
		return Caller{}, refusal{refused, c.guard}
	}
	credential := core.Credential{Token: p.Token}
	if p.Token == "" {
		credential.Expires = p.Expires
	}
	return Caller{
		Name: p.Name, Scopes: p.Scopes, Credential: credential,
		Holds: func() bool { return c.guard.Holds(p) && c.refused(p.Name) == nil },
	}, nil
}

func (c *callers) Challenge(r *http.Request) string { return c.guard.Challenge(r) }

// Routes returns the HTTP handlers of the metadata that tells clients which authorization server to use, by path.
func (c *callers) Routes() map[string]http.Handler {
	routes := map[string]http.Handler{}
	paths, h := c.guard.Metadata()
	for _, path := range paths {
		routes[path] = h
	}
	return routes
}

// refusal is an authentication error that writes its own HTTP response.
type refusal struct {
	error
	guard *auth.Guard
}

func (r refusal) Refuse(w http.ResponseWriter) { r.guard.Refuse(w, r.error) }
