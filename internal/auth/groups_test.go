package auth

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
)

// keycloakClaims has the claims of an access token as Keycloak writes them for a user in groups and roles.
const keycloakClaims = `{
	"jti": "onrtac:6d0cd6b5-4d3b-4a6e-8f4a-2a1f2f0a5f6b",
	"sub": "f3b1c0d8-6f0e-4d62-9c1e-8d1a53a0b7aa",
	"typ": "Bearer", "azp": "claude-code", "sid": "a1c9f0f2-0a51-4a7a-9d0a-0f6c7c9b1f11", "acr": "1",
	"aud": ["https://retort.example.com/mcp", "account"],
	"allowed-origins": ["http://localhost:*"],
	"realm_access": {"roles": ["offline_access", "default-roles-acme", "auditor"]},
	"resource_access": {"account": {"roles": ["view-profile"]}, "https://retort.example.com/mcp": {"roles": ["writer"]}},
	"scope": "openid profile email groups", "email_verified": true, "name": "Anna Berg",
	"groups": ["finance", "auditors", "finance"],
	"preferred_username": "anna", "given_name": "Anna", "family_name": "Berg", "email": "anna@example.com"
}`

// keycloakClaims returns claims in the form of Keycloak, valid at noon, with the given changes. A nil value
// removes a claim.
func (s *issuer) keycloakClaims(changes map[string]any) map[string]any {
	claims := map[string]any{}
	if err := json.Unmarshal([]byte(keycloakClaims), &claims); err != nil {
		s.t.Fatal(err)
	}
	maps.Copy(claims, map[string]any{"iss": s.URL, "exp": noon.Unix() + 300, "iat": noon.Unix(), "auth_time": noon.Unix()})
	maps.Copy(claims, changes)
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	return claims
}

// TestKeycloak checks which user and which groups a token in the form of Keycloak names.
func TestKeycloak(t *testing.T) {
	s := newIssuer(t)
	for _, c := range []struct{ principal, groups, name, want string }{
		{"preferred_username", "", "anna", ""},
		{"preferred_username", "groups", "anna", "auditors finance"},
		{"sub", "realm_access.roles", "f3b1c0d8-6f0e-4d62-9c1e-8d1a53a0b7aa", "auditor default-roles-acme offline_access"},
		{"email", "resource_access.account.roles", "anna@example.com", "view-profile"},
		{"sub", "resource_access.https://retort.example.com/mcp.roles", "f3b1c0d8-6f0e-4d62-9c1e-8d1a53a0b7aa", "writer"},
	} {
		r := s.resource(func(o *OAuthOptions) { o.Principal, o.Groups = c.principal, c.groups })
		p, err := r.authenticateToken(t.Context(), s.good(s.keycloakClaims(nil)))
		if err != nil || p.Name != c.name || strings.Join(p.Groups, " ") != c.want {
			t.Errorf("%s, %s: %+v, %v", c.principal, c.groups, p, err)
		}
	}
}

// TestGroupsInOneClaim checks that a claim whose name contains dots is found before a path of the same name.
func TestGroupsInOneClaim(t *testing.T) {
	s := newIssuer(t)
	r := s.resource(func(o *OAuthOptions) { o.Groups = "https://example.com/groups" })
	p, err := r.authenticateToken(t.Context(), s.good(s.changedClaims("https://example.com/groups", []string{"b", "a"})))
	if err != nil || !slices.Equal(p.Groups, []string{"a", "b"}) {
		t.Error(p, err)
	}
	if p, err := r.authenticateToken(t.Context(), s.good(s.changedClaims("https://example.com/groups", []string{}))); err != nil || len(p.Groups) != 0 {
		t.Error(p, err)
	}
}

// TestRefusedGroups checks that a token is refused if its groups cannot be read, and that the error names the claim.
func TestRefusedGroups(t *testing.T) {
	s := newIssuer(t)
	r := s.resource(func(o *OAuthOptions) { o.Groups = "groups" })
	many := make([]string, maxGroups+1)
	for i := range many {
		many[i] = strings.Repeat("g", i+1)
	}
	for name, c := range map[string]struct {
		claim any
		says  string
	}{
		"no claim":        {nil, "has no claim groups"},
		"one string":      {"finance", "claim groups is not a list of strings"},
		"an object":       {map[string]any{"finance": true}, "claim groups is not a list of strings"},
		"a number":        {[]any{"finance", 7}, "claim groups contains an item that is not a string"},
		"a list in it":    {[]any{[]any{"finance"}}, "claim groups contains an item that is not a string"},
		"an empty name":   {[]any{""}, "claim groups contains an item that is not a string"},
		"a long name":     {[]any{strings.Repeat("g", maxGroupName+1)}, "claim groups contains an item that is not a string"},
		"too many groups": {many, "claim groups lists 201 groups; at most 200 are allowed"},
	} {
		p, err := r.authenticateToken(t.Context(), s.good(s.keycloakClaims(map[string]any{"groups": c.claim})))
		if !errors.Is(err, ErrToken) || !strings.Contains(err.Error(), c.says) || p.Name != "" {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	if p, err := r.authenticateToken(t.Context(), s.good(s.keycloakClaims(map[string]any{"groups": many[:maxGroups]}))); err != nil || len(p.Groups) != maxGroups {
		t.Error(len(p.Groups), err)
	}
	nested := s.resource(func(o *OAuthOptions) { o.Groups = "realm_access.roles" })
	if err := nested.shows(s.good(s.keycloakClaims(map[string]any{"realm_access": "roles"}))); err == nil || !strings.Contains(err.Error(), "no claim realm_access.roles") {
		t.Error(err)
	}
}

// TestPrincipalLikeGroup checks that neither a token of the authorization server nor one of Retort's own can name a
// principal that begins like the settings' entry of a group.
func TestPrincipalLikeGroup(t *testing.T) {
	s := newIssuer(t)
	for _, claim := range []string{"", "groups"} {
		r := s.resource(func(o *OAuthOptions) { o.Principal, o.Groups = "preferred_username", claim })
		p, err := r.authenticateToken(t.Context(), s.good(s.keycloakClaims(map[string]any{"preferred_username": "group:finance"})))
		if !errors.Is(err, ErrToken) || !strings.Contains(err.Error(), "claim preferred_username begins with group:") || p.Name != "" {
			t.Errorf("%q: %+v, %v", claim, p, err)
		}
	}
	if ValidName("group:finance") || !ValidName("groups") {
		t.Error("ValidName")
	}
}
