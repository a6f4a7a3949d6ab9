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

// clientIdentity holds the OAuth client id and credentials of Retort at an authorization server.
type clientIdentity struct {
	ID     string `json:"id"`
	Secret string `json:"secret,omitempty"`
	Method string `json:"method,omitempty"` // how the client authenticates at the token endpoint; empty means "none"
	How    string `json:"how"`              // origin of the identity: "document", "settings" or "registered"
}

// storedRegistration holds a client that was registered at an authorization server.
type storedRegistration struct {
	clientIdentity
	Issuer   string    `json:"issuer"`
	Redirect string    `json:"redirect"`
	Until    time.Time `json:"until,omitzero"`
}

// chooseIdentity returns Retort's identity at an authorization server. It uses a client metadata document, else the
// client id in the settings, else a registered client. A registration is valid only for the redirect that it was made
// with; without a valid one, chooseIdentity registers a new client.
func (c *Client) chooseIdentity(ctx context.Context, m serverMetadata, redirect string) (clientIdentity, error) {
	s := c.o.Settings
	switch {
	case m.ByDocument && s.ClientMetadata != "":
		return clientIdentity{ID: s.ClientMetadata, How: "document"}, nil
	case s.ClientID != "":
		c.o.Secret("client secret", s.ClientSecret)
		return clientIdentity{ID: s.ClientID, Secret: s.ClientSecret, Method: methodFor(m, s.ClientSecret), How: "settings"}, nil
	case m.Register == "":
		return clientIdentity{}, oauthErrorf("the authorization server %s does not register clients automatically", clipLegible(m.Issuer)).
			WithHint(
				"register Retort there by hand with the redirect address http://127.0.0.1:PORT/callback, and set clientId and redirectPort under servers.%s.oauth in retort.yaml",
				c.o.Server,
			)
	}
	if known, ok := c.readRegistration(m); ok && known.Redirect == redirect {
		return known.clientIdentity, nil
	}
	return c.registerClient(ctx, m, redirect)
}

func (c *Client) registrationPath(m serverMetadata) string {
	return c.o.Store.filePath("client", m.Issuer)
}

// readRegistration returns the stored registration. It returns false if it does not exist or has expired.
func (c *Client) readRegistration(m serverMetadata) (storedRegistration, bool) {
	var r storedRegistration
	there, err := c.o.Store.readFile(c.registrationPath(m), &r)
	c.o.Secret("client secret", r.Secret)
	return r, err == nil && there && r.Issuer == m.Issuer && (r.Until.IsZero() || time.Now().Before(r.Until))
}

// methodFor returns the method with which a client authenticates at the token endpoint.
func methodFor(m serverMetadata, secret string) string {
	switch {
	case secret == "":
		return "none"
	case len(m.Methods) == 0 || slices.Contains(m.Methods, "client_secret_basic"):
		return "client_secret_basic"
	}
	return "client_secret_post"
}

// registerClient registers a client (RFC 7591) and stores it for the next login.
func (c *Client) registerClient(ctx context.Context, m serverMetadata, redirect string) (clientIdentity, error) {
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
		return clientIdentity{}, oauthErrorf("%s is not a valid URL", clipLegible(m.Register))
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	text, code, err := c.doRequest(req)
	if err != nil {
		return clientIdentity{}, err
	}
	return c.acceptRegistration(m, redirect, method, text, code)
}

// acceptRegistration parses the response to a registration and stores the client.
func (c *Client) acceptRegistration(m serverMetadata, redirect, method string, text []byte, code int) (clientIdentity, error) {
	var a struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
		Until  int64  `json:"client_secret_expires_at"`
		Method string `json:"token_endpoint_auth_method"`
		oauthDenial
	}
	unread := json.Unmarshal(text, &a)
	if code != http.StatusCreated && code != http.StatusOK || unread != nil || a.ID == "" {
		a.http = code
		return clientIdentity{}, oauthErrorf("Retort could not be registered at %s: %w", clipLegible(m.Issuer), fmt.Errorf("%s", a.oauthDenial.Error())).
			WithHint("register it by hand and set clientId under servers.%s.oauth in retort.yaml", c.o.Server)
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
	r := storedRegistration{clientIdentity: clientIdentity{ID: a.ID, Secret: a.Secret, Method: method, How: "registered"}, Issuer: m.Issuer, Redirect: redirect}
	if a.Until > 0 {
		r.Until = time.Unix(a.Until, 0)
	}
	return r.clientIdentity, c.o.Store.writeFile(c.registrationPath(m), r)
}
