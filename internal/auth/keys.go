package auth

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	// keyRefreshAge is the age at which keys are fetched again, so that a withdrawn key is no longer accepted.
	keyRefreshAge   = 10 * time.Minute
	keyMaxAge       = 2 * time.Hour    // age up to which keys are accepted while the issuer cannot be reached
	keyFetchPause   = 10 * time.Second // minimum time between two attempts, even for tokens with unknown keys
	newKeyTimeout   = time.Second      // how long a caller that has fitting keys waits for newer ones
	keyFetchTimeout = 5 * time.Second  // of one attempt
	maxAnswer       = 1 << 20
	maxKeys         = 100
	minRSA          = 2048
)

// issuerKeys caches the public keys of a token issuer. It fetches them only when a token needs them.
type issuerKeys struct {
	issuer, url string
	client      *http.Client
	log         *slog.Logger
	now         func() time.Time

	mu      sync.Mutex // protects the fields below
	set     []jose.JSONWebKey
	fetched time.Time // when set was fetched
	tried   time.Time // last attempt, successful or not
	failed  bool
	flight  chan struct{} // closed when the current attempt ends
}

func newKeys(issuer, jwks string, log *slog.Logger) *issuerKeys {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxResponseHeaderBytes = 64 << 10
	return &issuerKeys{
		issuer: issuer, url: jwks, log: log, now: time.Now,
		client: &http.Client{Transport: transport, Timeout: keyFetchTimeout, CheckRedirect: sameOrigin},
	}
}

// sameOrigin refuses redirects to another origin, because that origin could supply false keys.
func sameOrigin(req *http.Request, via []*http.Request) error {
	if first := via[0].URL; len(via) > 3 || req.URL.Scheme != first.Scheme || req.URL.Host != first.Host {
		return errors.New("it redirects to another origin")
	}
	return nil
}

// isTrustworthy reports whether responses from an address can be trusted, because it uses https or is on this
// machine.
func isTrustworthy(u *url.URL) bool {
	return u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname())
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

// findKeys returns the keys that may have signed a token with this key ID and algorithm. It waits for newer keys if
// they are being fetched. Its errors are of the same kinds as the errors of Guard.Authenticate.
func (k *issuerKeys) findKeys(ctx context.Context, id, algorithm string) ([]jose.JSONWebKey, error) {
	found, age, flight := k.lookupKeys(id, algorithm)
	if flight != nil {
		wait := ctx
		if len(found) > 0 {
			var done context.CancelFunc
			wait, done = context.WithTimeout(ctx, newKeyTimeout)
			defer done()
		}
		select {
		case <-flight:
		case <-wait.Done():
		}
		found, age, _ = k.lookupKeys(id, algorithm)
	}
	switch {
	case len(found) > 0:
		return found, nil
	case age > keyMaxAge || k.isDown():
		return nil, refusedError(ErrUnavailable, "the keys of %s cannot be fetched at the moment", k.issuer).WithHint("the log of the server has the reason")
	}
	return nil, refusedError(ErrToken, "the token is signed with a key that %s does not publish", k.issuer)
}

// isDown reports whether the last attempt to fetch the keys has failed or is still running.
func (k *issuerKeys) isDown() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.failed || k.flight != nil
}

// lookupKeys returns the cached keys that may have signed a token, and the age of the cache. It starts to fetch newer
// keys if they could help. While such newer keys are being fetched, the result flight is a channel that is closed
// when the attempt ends. Otherwise flight is nil.
func (k *issuerKeys) lookupKeys(id, algorithm string) (found []jose.JSONWebKey, age time.Duration, flight chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	age = keyMaxAge + 1
	if !k.fetched.IsZero() {
		age = now.Sub(k.fetched)
	}
	if age <= keyMaxAge {
		found = fittingKeys(k.set, id, algorithm)
	}
	if len(found) > 0 && age <= keyRefreshAge {
		return found, age, nil
	}
	if k.flight == nil && (k.tried.IsZero() || now.Sub(k.tried) >= keyFetchPause) {
		k.flight, k.tried = make(chan struct{}), now
		go k.fetchShared(k.flight)
	}
	return found, age, k.flight
}

// fetchShared fetches the keys for all callers that wait for them. Then it closes the channel flight, for which
// they wait.
func (k *issuerKeys) fetchShared(flight chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), keyFetchTimeout)
	defer cancel()
	set, err := k.fetchKeys(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.failed = err != nil; !k.failed {
		k.set, k.fetched = set, k.now()
	} else {
		k.log.Warn("the keys of the authorization server cannot be fetched", "issuer", k.issuer, "error", err)
	}
	k.flight = nil
	close(flight)
}

// fittingKeys returns the keys with this ID that can be used with the algorithm. If the ID is empty, keys with any ID
// fit.
func fittingKeys(set []jose.JSONWebKey, id, algorithm string) (found []jose.JSONWebKey) {
	for _, key := range set {
		if (id == "" || key.KeyID == id) && (key.Algorithm == "" || key.Algorithm == algorithm) && canSign(key, algorithm) {
			found = append(found, key)
		}
	}
	return found
}

// canSign reports whether the private key that belongs to this public key can create signatures of the given
// algorithm, so that the public key can verify them.
func canSign(key jose.JSONWebKey, algorithm string) bool {
	switch public := key.Key.(type) {
	case *rsa.PublicKey:
		return public.N.BitLen() >= minRSA && (strings.HasPrefix(algorithm, "RS") || strings.HasPrefix(algorithm, "PS"))
	case *ecdsa.PublicKey:
		return algorithm == map[int]string{256: "ES256", 384: "ES384", 521: "ES512"}[public.Curve.Params().BitSize]
	case ed25519.PublicKey:
		return algorithm == "EdDSA"
	}
	return false
}

func (k *issuerKeys) fetchKeys(ctx context.Context) ([]jose.JSONWebKey, error) {
	address := k.url
	if address == "" {
		var err error
		if address, err = k.discoverAddress(ctx); err != nil {
			return nil, err
		}
	}
	var document struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := k.getDocument(ctx, address, &document); err != nil {
		return nil, err
	}
	if len(document.Keys) > maxKeys {
		return nil, fmt.Errorf("%s has more than %d keys", address, maxKeys)
	}
	var set []jose.JSONWebKey
	for _, raw := range document.Keys {
		var key jose.JSONWebKey
		if json.Unmarshal(raw, &key) == nil && key.Valid() && key.IsPublic() && (key.Use == "" || key.Use == "sig") {
			set = append(set, key)
		}
	}
	if len(set) == 0 {
		return nil, fmt.Errorf("%s has no public key for signatures", address)
	}
	return set, nil
}

// discoverAddress asks the issuer for the address of its keys, first as RFC 8414 describes, then as OpenID Connect
// does.
func (k *issuerKeys) discoverAddress(ctx context.Context) (string, error) {
	u, err := url.Parse(k.issuer)
	if err != nil {
		return "", err
	}
	path := strings.TrimSuffix(u.EscapedPath(), "/")
	origin := u.Scheme + "://" + u.Host
	var errs []error
	for _, address := range []string{
		origin + "/.well-known/oauth-authorization-server" + path, origin + path + "/.well-known/openid-configuration",
	} {
		var document struct {
			Issuer string `json:"issuer"`
			Keys   string `json:"jwks_uri"`
		}
		err := k.getDocument(ctx, address, &document)
		switch {
		case err != nil:
		case document.Issuer != k.issuer:
			err = fmt.Errorf("%s belongs to another issuer", address)
		case !IsTrustworthyURL(document.Keys):
			err = fmt.Errorf("%s does not name an https address for its keys", address)
		default:
			return document.Keys, nil
		}
		errs = append(errs, err)
	}
	return "", errors.Join(errs...)
}

// getDocument fetches a JSON document of bounded size and decodes it into v.
func (k *issuerKeys) getDocument(ctx context.Context, address string, v any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json, application/jwk-set+json")
	answer, err := k.client.Do(req)
	if err != nil {
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			return fmt.Errorf("%s does not answer within %s", address, keyFetchTimeout)
		}
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", address, answer.Status)
	}
	if kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type")); strings.HasPrefix(kind, "text/html") {
		return fmt.Errorf("%s answers with a web page, not with JSON", address)
	}
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", address, err)
	case len(data) > maxAnswer:
		return fmt.Errorf("%s answers with more than %d bytes", address, maxAnswer)
	case json.Unmarshal(data, v) != nil:
		return fmt.Errorf("%s does not answer with the expected JSON", address)
	}
	return nil
}
