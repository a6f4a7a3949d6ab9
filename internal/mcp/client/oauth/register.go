package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// identity holds the OAuth client id and credentials of Retort at an authorization server.
type identity struct {
	ID     string `json:"id"`
	Secret string `json:"secret,omitempty"`
	Method string `json:"method,omitempty"` // of the token endpoint; empty is "none"
	How    string `json:"how"`              // "document", "settings", "registered"
}

// registration holds a client that was registered at an authorization server.
type registration struct {
	identity
	Issuer   string    `json:"issuer"`
	Redirect string    `json:"redirect"`
	Until    time.Time `json:"until,omitzero"`
}

// identify returns Retort's identity at an authorization server. It uses a client metadata document, else the client
// id in the settings, else a registered client. A registration is valid only for the redirect that it was made with;
// otherwise identify registers a new client.
func (c *Client) identify(ctx context.Context, m metadata, redirect string) (identity, error) {
	s := c.o.Settings
	switch {
	case m.ByDocument && s.ClientMetadata != "":
		return identity{ID: s.ClientMetadata, How: "document"}, nil
	case s.ClientID != "":
		c.o.Secret("client secret", s.ClientSecret)
		return identity{ID: s.ClientID, Secret: s.ClientSecret, Method: methodFor(m, s.ClientSecret), How: "settings"}, nil
	case m.Register == "":
		return identity{}, fail("the authorization server %s does not register clients automatically", shown(m.Issuer)).
			WithHint(
				"register Retort there by hand, with the redirect http://127.0.0.1:PORT/callback, and put clientId and redirectPort under servers.%s.oauth in retort.yaml",
				c.o.Server,
			)
	}
	if known, ok := c.registered(m); ok && known.Redirect == redirect {
		return known.identity, nil
	}
	return c.register(ctx, m, redirect)
}

func (c *Client) registrationPath(m metadata) string { return c.o.Store.name("client", m.Issuer) }

// registered returns the stored registration. It returns false if it does not exist or has expired.
func (c *Client) registered(m metadata) (registration, bool) {
	var r registration
	there, err := c.o.Store.read(c.registrationPath(m), &r)
	c.o.Secret("client secret", r.Secret)
	return r, err == nil && there && r.Issuer == m.Issuer && (r.Until.IsZero() || time.Now().Before(r.Until))
}

// methodFor returns the method with which a client authenticates at the token endpoint.
func methodFor(m metadata, secret string) string {
	switch {
	case secret == "":
		return "none"
	case len(m.Methods) == 0 || slices.Contains(m.Methods, "client_secret_basic"):
		return "client_secret_basic"
	}
	return "client_secret_post"
}

// register registers a client (RFC 7591) and stores it for the next login.
func (c *Client) register(ctx context.Context, m metadata, redirect string) (identity, error) {
	method := "none"
	if len(m.Methods) > 0 && !slices.Contains(m.Methods, "none") {
		method = methodFor(m, "any")
	}
	grants := []string{"authorization_code", "refresh_token"}
	if m.Device != "" {
		grants = append(grants, grantDevice)
	}
	body, _ := json.Marshal(map[string]any{ // which always marshals
		"client_name": "Retort", "application_type": "native", "redirect_uris": []string{redirect},
		"grant_types": grants, "response_types": []string{"code"}, "token_endpoint_auth_method": method,
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.Register, bytes.NewReader(body))
	if err != nil {
		return identity{}, fail("%s is not a valid URL", shown(m.Register))
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	text, code, err := c.do(req)
	if err != nil {
		return identity{}, err
	}
	return c.accept(m, redirect, method, text, code)
}

// accept parses the response to a registration and stores the client.
func (c *Client) accept(m metadata, redirect, method string, text []byte, code int) (identity, error) {
	var a struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
		Until  int64  `json:"client_secret_expires_at"`
		Method string `json:"token_endpoint_auth_method"`
		denial
	}
	unread := json.Unmarshal(text, &a)
	if code != http.StatusCreated && code != http.StatusOK || unread != nil || a.ID == "" {
		a.http = code
		return identity{}, fail("Retort could not be registered at %s: %w", shown(m.Issuer), fmt.Errorf("%s", a.denial.Error())).
			WithHint("register it by hand and put clientId under servers.%s.oauth in retort.yaml", c.o.Server)
	}
	c.o.Secret("client secret", a.Secret)
	if a.Method != "" {
		method = a.Method
	}
	if a.Secret == "" {
		method = "none"
	} else if method == "none" {
		method = methodFor(m, a.Secret)
	}
	r := registration{identity: identity{ID: a.ID, Secret: a.Secret, Method: method, How: "registered"}, Issuer: m.Issuer, Redirect: redirect}
	if a.Until > 0 {
		r.Until = time.Unix(a.Until, 0)
	}
	return r.identity, c.o.Store.write(c.registrationPath(m), r)
}
