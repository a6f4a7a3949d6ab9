package oauth

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// challenge holds the Bearer challenge of a refused request.
type challenge struct {
	metadata string // address of the metadata of the resource
	scopes   []string
	err      string
	what     string // error_description
}

// challengeOf parses the WWW-Authenticate headers of a response. It ignores those that are invalid.
func challengeOf(resp *http.Response) challenge {
	var found challenge
	for _, header := range resp.Header.Values("Www-Authenticate") {
		all, err := oauthex.ParseWWWAuthenticate([]string{header})
		if err != nil {
			continue
		}
		for _, c := range all {
			if c.Scheme == "bearer" {
				found.metadata, found.scopes = c.Params["resource_metadata"], strings.Fields(c.Params["scope"])
				found.err, found.what = c.Params["error"], c.Params["error_description"]
				return found
			}
		}
	}
	return found
}

func (c challenge) text() string {
	if c.err == "" && c.what == "" {
		return ""
	}
	return ": " + shown(strings.TrimSpace(c.err+" "+c.what))
}

// found holds the result of discovery.
type found struct {
	resource string   // that tokens are asked for
	scopes   []string // that the resource names
	guessed  bool     // there is no metadata at all: only the usual addresses of 2025-03-26
	server   metadata // of the authorization server
}

// metadata holds the metadata of an authorization server.
type metadata struct {
	Issuer        string   `json:"issuer"`
	Authorize     string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	Register      string   `json:"registration_endpoint"`
	Revoke        string   `json:"revocation_endpoint"`
	Device        string   `json:"device_authorization_endpoint"`
	Scopes        []string `json:"scopes_supported"`
	Challenges    []string `json:"code_challenge_methods_supported"`
	Methods       []string `json:"token_endpoint_auth_methods_supported"`
	Grants        []string `json:"grant_types_supported"`
	ByDocument    bool     `json:"client_id_metadata_document_supported"`
	NamesIssuer   bool     `json:"authorization_response_iss_parameter_supported"`
	withoutIssuer bool
}

// absent reports that metadata is missing at all the places where it is looked for.
type absent struct{ what string }

func (a *absent) Error() string { return "there is no metadata of " + a.what }

// resource holds the metadata of a protected resource (RFC 9728).
type resource struct {
	Resource string   `json:"resource"`
	Servers  []string `json:"authorization_servers"`
	Scopes   []string `json:"scopes_supported"`
}

// discover finds the authorization server of the MCP server.
func (c *Client) discover(ctx context.Context, asked challenge) (found, error) {
	r, err := c.resource(ctx, asked)
	var none *absent
	if errors.As(err, &none) {
		return c.older(ctx)
	}
	if err != nil {
		return found{}, err
	}
	out := found{resource: r.Resource, scopes: r.Scopes}
	if len(r.Servers) == 0 {
		old, err := c.older(ctx)
		old.resource, old.scopes = out.resource, out.scopes
		return old, err
	}
	issuer := r.Servers[0]
	out.server, err = c.metadata(ctx, issuer, func(m string) bool { return strings.TrimRight(m, "/") == strings.TrimRight(issuer, "/") })
	if errors.As(err, &none) {
		return out, fail("the authorization server %s has no metadata", shown(r.Servers[0]))
	}
	return out, err
}

// resource fetches the metadata of the resource (RFC 9728) from the address in the challenge, else from the
// well-known addresses.
func (c *Client) resource(ctx context.Context, asked challenge) (resource, error) {
	places := []string{asked.metadata}
	if asked.metadata == "" {
		places = wellKnown(c.o.URL, "oauth-protected-resource")
	}
	for _, place := range places {
		var r resource
		err := c.fetch(ctx, place, &r)
		var code status
		switch {
		case errors.As(err, &code):
			if asked.metadata != "" {
				return r, fail("the metadata of the server, %s, can't be read: %w", shown(place), code)
			}
			continue
		case err != nil:
			return r, err
		case !isPartOf(c.o.URL, r.Resource):
			return r, fail("the metadata of the server is about another resource, %s", shown(r.Resource)).
				WithHint("a token for it would be valid at another server: report it to the operator of the server")
		}
		return r, nil
	}
	return resource{}, &absent{"the resource"}
}

// wellKnown returns the well-known addresses of a document about an address: first with its path, then for its
// origin.
func wellKnown(address, name string) []string {
	u, err := url.Parse(address)
	if err != nil {
		return nil
	}
	root := u.Scheme + "://" + u.Host + "/.well-known/" + name
	if path := strings.TrimRight(u.EscapedPath(), "/"); path != "" {
		return []string{root + path, root}
	}
	return []string{root}
}

// isPartOf reports whether an address belongs to a resource: both have the same origin, and the address's path is
// that of the resource or below it.
func isPartOf(address, resource string) bool {
	a, err := url.Parse(address)
	r, wrong := url.Parse(resource)
	if err != nil || wrong != nil || r.Host == "" || r.Fragment != "" || origin(a) != origin(r) ||
		r.RawQuery != "" && r.RawQuery != a.RawQuery {
		return false
	}
	below, path := strings.TrimRight(a.EscapedPath(), "/")+"/", strings.TrimRight(r.EscapedPath(), "/")+"/"
	return strings.HasPrefix(below, path)
}

// metadata fetches the metadata of an authorization server by RFC 8414 or OpenID Connect. is reports whether the
// issuer in it is the expected one.
func (c *Client) metadata(ctx context.Context, issuer string, is func(string) bool) (metadata, error) {
	for _, place := range serverPlaces(issuer) {
		var m metadata
		err := c.fetch(ctx, place, &m)
		var code status
		switch {
		case errors.As(err, &code):
			continue
		case err != nil:
			return m, err
		case !is(m.Issuer):
			return m, fail("the metadata of the authorization server %s says that it is another one, %s", shown(issuer), shown(m.Issuer)).
				WithHint("report it to its operator: a login would go to the wrong place")
		}
		return m, c.usable(ctx, m)
	}
	return metadata{}, &absent{"the authorization server"}
}

func serverPlaces(issuer string) []string {
	u, err := url.Parse(issuer)
	if err != nil || u.Host == "" {
		return nil
	}
	root, path := u.Scheme+"://"+u.Host, strings.TrimRight(u.EscapedPath(), "/")
	places := []string{root + "/.well-known/oauth-authorization-server" + path, root + "/.well-known/openid-configuration" + path}
	if path != "" {
		places = append(places, root+path+"/.well-known/openid-configuration")
	}
	return places
}

// usable returns an error if the metadata must not be used for a login: endpoints or PKCE are missing, or an endpoint
// must not be reached.
func (c *Client) usable(ctx context.Context, m metadata) error {
	if m.Authorize == "" && m.Device == "" || m.Token == "" {
		return fail("the authorization server %s names no addresses for a login", shown(m.Issuer))
	}
	if m.Authorize != "" && !slices.Contains(m.Challenges, "S256") {
		return fail("the authorization server %s does not say that it supports PKCE with S256, so the login could be stolen", shown(m.Issuer)).
			WithHint("report it to its operator")
	}
	g := c.http.Transport.(*guard)
	for _, address := range []string{m.Authorize, m.Token, m.Register, m.Revoke, m.Device} {
		if address == "" {
			continue
		}
		u, err := url.Parse(address)
		if err != nil {
			return fail("the authorization server names %s, which is not a valid URL", shown(address))
		}
		if err := g.check(ctx, u); err != nil {
			return err
		}
	}
	return c.outside(ctx, m.Authorize)
}

// outside applies the rules for requests to an address that a browser will open. It allows a host that cannot be
// resolved, because the browser may know it.
func (c *Client) outside(ctx context.Context, address string) error {
	if address == "" {
		return nil
	}
	g := c.http.Transport.(*guard)
	host := hostOf(address)
	addresses, err := g.lookup(ctx, host)
	if err != nil {
		return nil // the browser may know it
	}
	return g.judge(ctx, host, addresses)
}

// older discovers servers of protocol version 2025-03-26. They are their own authorization server, with endpoints at
// default paths if they have no metadata.
func (c *Client) older(ctx context.Context) (found, error) {
	u, err := url.Parse(c.o.URL)
	if err != nil {
		return found{}, fail("the server's url is not a valid URL")
	}
	root := u.Scheme + "://" + u.Host
	out := found{resource: canonical(u)}
	out.server, err = c.metadata(ctx, root, func(m string) bool {
		named, err := url.Parse(m)
		return err == nil && named.Host != "" && origin(named) == origin(u)
	})
	var none *absent
	if errors.As(err, &none) {
		out.guessed = true
		out.server = metadata{
			Issuer: root, Authorize: root + "/authorize", Token: root + "/token", Register: root + "/register",
			Challenges: []string{"S256"}, withoutIssuer: true,
		}
		return out, c.usable(ctx, out.server)
	}
	return out, err
}

// canonical returns the address of a resource in its normal form.
func canonical(u *url.URL) string {
	c := *u
	c.Scheme, c.Host, c.Fragment, c.RawFragment, c.User = strings.ToLower(c.Scheme), strings.ToLower(c.Host), "", "", nil
	if c.Path == "/" {
		c.Path = ""
	}
	return c.String()
}
