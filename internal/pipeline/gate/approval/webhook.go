package approval

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"retort/internal/run"
)

// Webhook brings what waits to an address, and takes an answer from there. Questions
// and answers are signed as standardwebhooks.com says: webhook-id is that of the
// approval, webhook-timestamp is in seconds, and webhook-signature is "v1," with the
// HMAC-SHA-256 of "id.timestamp.body" in base64.
//
// An answer is a response with the status 200, signed like that, whose body is a
// WebhookAnswer. A response that is not signed only says that the question arrived.
// 202 with Retry-After asks to be asked again after so many seconds.
type Webhook struct {
	url    string
	secret []byte
	client *http.Client
	log    *slog.Logger
	seats  chan struct{}

	ctx    context.Context
	cancel context.CancelFunc

	mu     sync.Mutex // nobody begins to ask while Close waits
	asking sync.WaitGroup
}

// WebhookQuestion is the body of a request. Text is all that a person needs to see.
type WebhookQuestion struct {
	Type      string       `json:"type"` // "approval.requested"
	Timestamp time.Time    `json:"timestamp"`
	Data      run.Approval `json:"data"`
	Text      string       `json:"text"`
}

// WebhookAnswer is the body of a response that decides. Digest is that of the question.
type WebhookAnswer struct {
	Digest string `json:"digest"`
	run.Answer
}

// What a webhook may take, and how long it is waited for.
const (
	minSecret       = 24 // bytes
	maxWebhookBody  = 64 << 10
	webhookPatience = 60 * time.Second // of one request: who asks a person may hold it
	webhookSkew     = 5 * time.Minute  // between the clocks of both sides
	firstWebhook    = time.Second      // until a request that failed is sent again; doubled each time
	lastWebhook     = time.Minute
	maxWebhooks     = 16 // requests at once
)

// NewWebhook asks at an address, over https or at this machine. secret is shared with
// who answers: "whsec_" and base64, or the bytes themselves. Close ends it.
func NewWebhook(address, secret string, log *slog.Logger) (*Webhook, *run.Error) {
	refuse := func(format string, args ...any) (*Webhook, *run.Error) {
		return nil, run.Errorf(run.KindInvalidArguments, "approval.webhook", "approval.webhook: "+format, args...)
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())) {
		return refuse("url must be an https address, or an http address of this machine")
	}
	key := []byte(secret)
	if coded, ok := strings.CutPrefix(secret, "whsec_"); ok {
		if key, err = base64.StdEncoding.DecodeString(coded); err != nil {
			return refuse("what follows whsec_ in secret is not base64")
		}
	}
	if len(key) < minSecret {
		return refuse("secret has %d bytes, and needs %d", len(key), minSecret)
	}
	w := &Webhook{url: address, secret: key, log: log, seats: make(chan struct{}, maxWebhooks), client: &http.Client{
		Timeout:       webhookPatience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // what is asked is for this address
	}}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Close ends what is under way.
func (w *Webhook) Close() error {
	w.mu.Lock()
	w.cancel()
	w.mu.Unlock()
	w.asking.Wait()
	return nil
}

func (w *Webhook) begin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() != nil {
		return false
	}
	w.asking.Add(1)
	return true
}

// Ask is a run.Channel: it asks until there is an answer or ctx ends.
func (w *Webhook) Ask(ctx context.Context, a run.Approval) (run.Answer, bool) {
	if !w.begin() {
		return run.Answer{}, false
	}
	defer w.asking.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.ctx, cancel)()
	pause := firstWebhook
	for {
		d, err := w.once(ctx, a)
		switch {
		case ctx.Err() != nil:
			return run.Answer{}, false
		case err != nil:
			w.log.Warn("the webhook for approvals failed", "approval", a.ID, "error", err.Error(), "again", d.again > 0)
		case d.answer != nil:
			answer := *d.answer
			answer.By = "webhook"
			return answer, true
		}
		if d.again == 0 {
			return run.Answer{}, false
		}
		if err != nil {
			d.again = max(d.again, pause)
			pause = min(2*pause, lastWebhook)
		}
		if !sleep(ctx, d.again) {
			return run.Answer{}, false
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// delivery is what became of one request.
type delivery struct {
	answer *run.Answer   // nil if there is none
	again  time.Duration // until it should be asked again; 0: never
}

func (w *Webhook) once(ctx context.Context, a run.Approval) (delivery, error) {
	select {
	case w.seats <- struct{}{}:
		defer func() { <-w.seats }()
	case <-ctx.Done():
		return delivery{}, ctx.Err()
	}
	request, err := w.request(ctx, a)
	if err != nil {
		return delivery{}, err
	}
	response, err := w.client.Do(request)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // without the address, which may hold a secret
		}
		return delivery{again: firstWebhook}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxWebhookBody))
	if err != nil {
		return delivery{again: firstWebhook}, err
	}
	return w.read(a, response, body)
}

func (w *Webhook) request(ctx context.Context, a run.Approval) (*http.Request, error) {
	now := time.Now()
	body, err := json.Marshal(WebhookQuestion{"approval.requested", now.UTC(), a, a.Text()})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	at := strconv.FormatInt(now.Unix(), 10)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "retort")
	request.Header.Set("Webhook-Id", a.ID)
	request.Header.Set("Webhook-Timestamp", at)
	request.Header.Set("Webhook-Signature", w.sign(a.ID, at, body))
	return request, nil
}

func (w *Webhook) sign(id, at string, body []byte) string {
	h := hmac.New(sha256.New, w.secret)
	fmt.Fprintf(h, "%s.%s.", id, at)
	h.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// read takes in a response. Whatever is not clearly an answer is none.
func (w *Webhook) read(a run.Approval, r *http.Response, body []byte) (delivery, error) {
	seconds, err := strconv.Atoi(r.Header.Get("Retry-After"))
	later := time.Duration(max(1, min(seconds, 300))) * time.Second
	switch {
	case r.StatusCode == http.StatusAccepted && err == nil:
		return delivery{again: later}, nil
	case r.StatusCode == http.StatusTooManyRequests || r.StatusCode >= 500:
		return delivery{again: cmp.Or(later, firstWebhook)}, fmt.Errorf("it answered with the status %d", r.StatusCode)
	case r.StatusCode < 200 || r.StatusCode > 299:
		return delivery{}, fmt.Errorf("it answered with the status %d", r.StatusCode)
	case r.StatusCode != http.StatusOK || r.Header.Get("Webhook-Signature") == "":
		return delivery{}, nil // it was told, and that is all
	}
	if err := w.verify(a.ID, r.Header, body); err != nil {
		return delivery{}, err
	}
	var answer WebhookAnswer
	if err := json.Unmarshal(body, &answer); err != nil {
		return delivery{}, fmt.Errorf("its answer is not JSON: %w", err)
	}
	if answer.Digest != a.Digest {
		return delivery{}, errors.New("its answer is for something else: the digest is not that of the question")
	}
	return delivery{answer: &answer.Answer}, nil
}

func (w *Webhook) verify(id string, h http.Header, body []byte) error {
	at := h.Get("Webhook-Timestamp")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if skew := time.Since(time.Unix(seconds, 0)).Abs(); err != nil || skew > webhookSkew {
		return errors.New("its answer has no timestamp of now")
	}
	want := w.sign(id, at, body)
	for signature := range strings.FieldsSeq(h.Get("Webhook-Signature")) {
		if h.Get("Webhook-Id") == id && hmac.Equal([]byte(signature), []byte(want)) {
			return nil
		}
	}
	return errors.New("the signature of its answer is wrong")
}
