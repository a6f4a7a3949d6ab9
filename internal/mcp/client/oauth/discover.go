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

// authChallenge holds the Bearer challenge of a refused request.
type authChallenge struct {
	metadata string // URL of the resource's metadata
	scopes   []string
	err      string
	what     string // value of error_description
}

// challengeOf parses the WWW-Authenticate headers of a response. It ignores those that are invalid.
func challengeOf(resp *http.Response) authChallenge {
	var found authChallenge
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

func (c authChallenge) errorText() string {
	if c.err == "" && c.what == "" {
		return ""
	}
	return ": " + clipLegible(strings.TrimSpace(c.err+" "+c.what))
}

// discovery holds the information that was discovered about the resource and its authorization server.
type discovery struct {
	resource string         // resource that tokens are requested for
	scopes   []string       // scopes that the resource's metadata names
	guessed  bool           // no metadata was found, so the default addresses of protocol version 2025-03-26 are used
	server   serverMetadata // metadata of the authorization server
}

// serverMetadata holds the metadata of an authorization server.
type serverMetadata struct {
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

// missingMetadata is the error for metadata that is missing at every address where it is looked for.
type missingMetadata struct{ what string }

func (a *missingMetadata) Error() string { return "there is no metadata of " + a.what }

// resourceMetadata holds the metadata of a protected resource (RFC 9728).
type resourceMetadata struct {
	Resource string   `json:"resource"`
	Servers  []string `json:"authorization_servers"`
	Scopes   []string `json:"scopes_supported"`
}

// discoverServer finds the authorization server of the MCP server.
func (c *Client) discoverServer(ctx context.Context, asked authChallenge) (discovery, error) {
	r, err := c.fetchResourceMetadata(ctx, asked)
	var none *missingMetadata
	if errors.As(err, &none) {
		return c.discoverLegacy(ctx)
	}
	if err != nil {
		return discovery{}, err
	}
	out := discovery{resource: r.Resource, scopes: r.Scopes}
	if len(r.Servers) == 0 {
		old, err := c.discoverLegacy(ctx)
		old.resource, old.scopes = out.resource, out.scopes
		return old, err
	}
	issuer := r.Servers[0]
	out.server, err = c.fetchServerMetadata(ctx, issuer, func(m string) bool { return strings.TrimRight(m, "/") == strings.TrimRight(issuer, "/") })
	if errors.As(err, &none) {
		return out, oauthErrorf("the authorization server %s has no metadata", clipLegible(r.Servers[0]))
	}
	return out, err
}

// fetchResourceMetadata fetches the metadata of the resource (RFC 9728) from the address in the challenge, else from
// the well-known addresses.
func (c *Client) fetchResourceMetadata(ctx context.Context, asked authChallenge) (resourceMetadata, error) {
	places := []string{asked.metadata}
	if asked.metadata == "" {
		places = wellKnown(c.o.URL, "oauth-protected-resource")
	}
	for _, place := range places {
		var r resourceMetadata
		err := c.fetchJSON(ctx, place, &r)
		var code statusError
		switch {
		case errors.As(err, &code):
			if asked.metadata != "" {
				return r, oauthErrorf("the metadata of the server, %s, cannot be read: %w", clipLegible(place), code)
			}
			continue
		case err != nil:
			return r, err
		case !isPartOf(c.o.URL, r.Resource):
			return r, oauthErrorf("the metadata of the server is about another resource, %s", clipLegible(r.Resource)).
				WithHint("a token for it would be valid at another server: report it to the operator of the server")
		}
		return r, nil
	}
	return resourceMetadata{}, &missingMetadata{"the resource"}
}

// wellKnown returns the well-known URLs at which metadata about an address may be found: first the one with the path
// of the address, then the one for its origin. name is the part of these URLs after /.well-known/.
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
	if err != nil || wrong != nil || r.Host == "" || r.Fragment != "" || originOf(a) != originOf(r) ||
		r.RawQuery != "" && r.RawQuery != a.RawQuery {
		return false
	}
	below, path := strings.TrimRight(a.EscapedPath(), "/")+"/", strings.TrimRight(r.EscapedPath(), "/")+"/"
	return strings.HasPrefix(below, path)
}

// fetchServerMetadata fetches the metadata of an authorization server by RFC 8414 or OpenID Connect. It refuses the
// metadata if the function is, called with the issuer named in the metadata, returns false.
func (c *Client) fetchServerMetadata(ctx context.Context, issuer string, is func(string) bool) (serverMetadata, error) {
	for _, place := range serverPlaces(issuer) {
		var m serverMetadata
		err := c.fetchJSON(ctx, place, &m)
		var code statusError
		switch {
		case errors.As(err, &code):
			continue
		case err != nil:
			return m, err
		case !is(m.Issuer):
			return m, oauthErrorf("the metadata of the authorization server %s names another server, %s", clipLegible(issuer), clipLegible(m.Issuer)).
				WithHint("report it to its operator: the login would be sent to the wrong server")
		}
		return m, c.checkMetadata(ctx, m)
	}
	return serverMetadata{}, &missingMetadata{"the authorization server"}
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

// checkMetadata returns an error if the metadata must not be used for a login: endpoints or PKCE are missing, or an
// endpoint must not be reached.
func (c *Client) checkMetadata(ctx context.Context, m serverMetadata) error {
	if m.Authorize == "" && m.Device == "" || m.Token == "" {
		return oauthErrorf("the authorization server %s does not name its login addresses", clipLegible(m.Issuer))
	}
	if m.Authorize != "" && !slices.Contains(m.Challenges, "S256") {
		return oauthErrorf("the authorization server %s does not announce PKCE with S256, without which the login could be stolen", clipLegible(m.Issuer)).
			WithHint("report it to its operator")
	}
	g := c.http.Transport.(*networkGuard)
	for _, address := range []string{m.Authorize, m.Token, m.Register, m.Revoke, m.Device} {
		if address == "" {
			continue
		}
		u, err := url.Parse(address)
		if err != nil {
			return oauthErrorf("the authorization server names %s, which is not a valid URL", clipLegible(address))
		}
		if err := g.checkURL(ctx, u); err != nil {
			return err
		}
	}
	return c.checkAddress(ctx, m.Authorize)
}

// checkAddress checks an address that the user's browser will open, by the rules for the engine's own requests. It
// allows a host that cannot be resolved here, because the browser may be able to resolve it.
func (c *Client) checkAddress(ctx context.Context, address string) error {
	if address == "" {
		return nil
	}
	g := c.http.Transport.(*networkGuard)
	host := hostOf(address)
	addresses, err := g.lookupHost(ctx, host)
	if err != nil {
		return nil // the browser may know it
	}
	return g.checkAddresses(ctx, host, addresses)
}

// discoverLegacy discovers servers of protocol version 2025-03-26. They are their own authorization server, with
// endpoints at default paths if they have no metadata.
func (c *Client) discoverLegacy(ctx context.Context) (discovery, error) {
	u, err := url.Parse(c.o.URL)
	if err != nil {
		return discovery{}, oauthErrorf("the server's url is not a valid URL")
	}
	root := u.Scheme + "://" + u.Host
	out := discovery{resource: canonicalURL(u)}
	out.server, err = c.fetchServerMetadata(ctx, root, func(m string) bool {
		named, err := url.Parse(m)
		return err == nil && named.Host != "" && originOf(named) == originOf(u)
	})
	var none *missingMetadata
	if errors.As(err, &none) {
		out.guessed = true
		out.server = serverMetadata{
			Issuer: root, Authorize: root + "/authorize", Token: root + "/token", Register: root + "/register",
			Challenges: []string{"S256"}, withoutIssuer: true,
		}
		return out, c.checkMetadata(ctx, out.server)
	}
	return out, err
}

// canonicalURL returns the address of a resource in its normal form.
func canonicalURL(u *url.URL) string {
	c := *u
	c.Scheme, c.Host, c.Fragment, c.RawFragment, c.User = strings.ToLower(c.Scheme), strings.ToLower(c.Host), "", "", nil
	if c.Path == "/" {
		c.Path = ""
	}
	return c.String()
}
