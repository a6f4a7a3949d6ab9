// Package webhook posts signed messages to an HTTP address. The signature follows standardwebhooks.com. The header
// webhook-id identifies the message. The header webhook-timestamp holds the time in seconds. The header
// webhook-signature is "v1," followed by the HMAC-SHA-256 of "id.timestamp.body" in base64.
package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Limits on secrets, responses, requests and clocks.
const (
	minSecret = 24 // minimum length of a secret, in bytes
	maxBody   = 64 << 10
	// requestTimeout is the maximum duration of a request. It is long, because the receiver may ask a person first.
	requestTimeout = 60 * time.Second
	maxClockSkew   = 5 * time.Minute // maximum difference between the clocks of sender and receiver
)

// WebhookEndpoint holds an HTTP address and the secret with which messages to it are signed. It is safe for
// concurrent use.
type WebhookEndpoint struct {
	url    string
	secret []byte
	client *http.Client
}

// EndpointResponse holds the HTTP response of an endpoint. The body is truncated to 64 KiB.
type EndpointResponse struct {
	Status int
	Header http.Header
	Body   []byte
}

// New returns a WebhookEndpoint. The address must use https, or http with a loopback host. secret is "whsec_" followed
// by the key in base64, or the bytes of the key.
func New(address, secret string) (*WebhookEndpoint, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())) {
		return nil, errors.New("url must be an https address, or an http address on this machine")
	}
	key := []byte(secret)
	if coded, ok := strings.CutPrefix(secret, "whsec_"); ok {
		if key, err = base64.StdEncoding.DecodeString(coded); err != nil {
			return nil, errors.New("what follows whsec_ in secret is not base64")
		}
	}
	if len(key) < minSecret {
		return nil, fmt.Errorf("secret has %d bytes, but needs at least %d", len(key), minSecret)
	}
	return &WebhookEndpoint{address, key, &http.Client{
		Timeout:       requestTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // what is told is for this address
	}}, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// PostMessage posts a JSON body. id identifies the message. The error never contains the endpoint's address, because
// the address may contain a secret.
func (e *WebhookEndpoint) PostMessage(ctx context.Context, id string, body []byte) (EndpointResponse, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return EndpointResponse{}, err
	}
	at := strconv.FormatInt(time.Now().Unix(), 10)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "retort")
	request.Header.Set("Webhook-Id", id)
	request.Header.Set("Webhook-Timestamp", at)
	request.Header.Set("Webhook-Signature", e.signMessage(id, at, body))
	response, err := e.client.Do(request)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err
		}
		return EndpointResponse{}, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	return EndpointResponse{response.StatusCode, response.Header, answer}, err
}

func (e *WebhookEndpoint) signMessage(id, at string, body []byte) string {
	h := hmac.New(sha256.New, e.secret)
	fmt.Fprintf(h, "%s.%s.", id, at)
	h.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// VerifyAnswer returns an error unless r has a valid signature for the message id and a current timestamp.
func (e *WebhookEndpoint) VerifyAnswer(id string, r EndpointResponse) error {
	at := r.Header.Get("Webhook-Timestamp")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if off := time.Since(time.Unix(seconds, 0)).Abs(); err != nil || off > maxClockSkew {
		return errors.New("its answer does not have a current timestamp")
	}
	want := e.signMessage(id, at, r.Body)
	for signature := range strings.FieldsSeq(r.Header.Get("Webhook-Signature")) {
		if r.Header.Get("Webhook-Id") == id && hmac.Equal([]byte(signature), []byte(want)) {
			return nil
		}
	}
	return errors.New("the signature of its answer is wrong")
}
