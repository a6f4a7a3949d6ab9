package approval

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"retort/internal/base/webhook"
	"retort/internal/core"
)

// ApprovalWebhook asks questions at a web address and reads answers from the responses. Requests and responses are signed;
// webhook-id is the id of the approval. An answer is a signed response with status 200 whose body is a WebhookAnswer.
// An unsigned response only confirms that the question arrived. Status 202 with Retry-After requests that the
// question be sent again after that many seconds.
type ApprovalWebhook struct {
	to    *webhook.WebhookEndpoint
	log   *slog.Logger
	seats chan struct{}
	sleep func(ctx context.Context, d time.Duration) bool // waits before the next request; false if ctx ended; tests replace it

	ctx    context.Context
	cancel context.CancelFunc

	mu     sync.Mutex // no request begins while Close waits
	asking sync.WaitGroup
}

// WebhookQuestion is the body of a request. Text contains everything a person needs to see.
type WebhookQuestion struct {
	Type      string        `json:"type"` // "approval.requested"
	Timestamp time.Time     `json:"timestamp"`
	Data      core.Approval `json:"data"`
	Text      string        `json:"text"`
}

// WebhookAnswer is the body of a response that approves or denies. Its Digest must equal the question's digest.
type WebhookAnswer struct {
	Digest string `json:"digest"`
	core.ApprovalAnswer
}

const (
	firstWebhook = time.Second // until a request that failed is sent again; doubled each time
	lastWebhook  = time.Minute
	maxWebhooks  = 16 // requests at once
)

// NewWebhook returns an ApprovalWebhook that sends questions to address. The secret is shared with the service at
// that address; see webhook.New for its format. The caller must call Close.
func NewWebhook(address, secret string, log *slog.Logger) (*ApprovalWebhook, *core.Error) {
	to, err := webhook.New(address, secret)
	if err != nil {
		return nil, core.Errorf(core.KindInvalidArguments, "approval.webhook", "approval.webhook: %w", err)
	}
	w := &ApprovalWebhook{to: to, log: log, seats: make(chan struct{}, maxWebhooks), sleep: sleepFor}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w, nil
}

// Close cancels all requests in progress and waits for their end.
func (w *ApprovalWebhook) Close() error {
	w.mu.Lock()
	w.cancel()
	w.mu.Unlock()
	w.asking.Wait()
	return nil
}

func (w *ApprovalWebhook) beginRequest() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() != nil {
		return false
	}
	w.asking.Add(1)
	return true
}

// AskApprover implements core.ApprovalChannel. It repeats the question until there is an answer or ctx ends.
func (w *ApprovalWebhook) AskApprover(ctx context.Context, a core.Approval) (core.ApprovalAnswer, bool) {
	if !w.beginRequest() {
		return core.ApprovalAnswer{}, false
	}
	defer w.asking.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.ctx, cancel)()
	pause := firstWebhook
	for {
		d, err := w.deliverOnce(ctx, a)
		switch {
		case ctx.Err() != nil:
			return core.ApprovalAnswer{}, false
		case err != nil:
			w.log.Warn("the webhook for approvals failed", "approval", a.ID, "error", err.Error(), "again", d.again > 0)
		case d.answer != nil:
			answer := *d.answer
			answer.By = "webhook"
			return answer, true
		}
		if d.again == 0 {
			return core.ApprovalAnswer{}, false
		}
		if err != nil {
			d.again = max(d.again, pause)
			pause = min(2*pause, lastWebhook)
		}
		if !w.sleep(ctx, d.again) {
			return core.ApprovalAnswer{}, false
		}
	}
}

func sleepFor(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// deliveryResult holds the result of one request: an answer, or the time until the next attempt.
type deliveryResult struct {
	answer *core.ApprovalAnswer // may be nil
	again  time.Duration        // until it should be asked again; 0: never
}

func (w *ApprovalWebhook) deliverOnce(ctx context.Context, a core.Approval) (deliveryResult, error) {
	select {
	case w.seats <- struct{}{}:
		defer func() { <-w.seats }()
	case <-ctx.Done():
		return deliveryResult{}, ctx.Err()
	}
	body, err := json.Marshal(WebhookQuestion{"approval.requested", time.Now().UTC(), a, a.RenderText()})
	if err != nil {
		return deliveryResult{}, err
	}
	response, err := w.to.PostMessage(ctx, a.ID, body)
	if err != nil {
		return deliveryResult{again: firstWebhook}, err
	}
	return w.readResponse(a, response)
}

// readResponse returns the answer in a response. It returns none if the response is not clearly an approval or a
// denial.
func (w *ApprovalWebhook) readResponse(a core.Approval, r webhook.EndpointResponse) (deliveryResult, error) {
	seconds, err := strconv.Atoi(r.Header.Get("Retry-After"))
	later := time.Duration(max(1, min(seconds, 300))) * time.Second
	switch {
	case r.Status == http.StatusAccepted && err == nil:
		return deliveryResult{again: later}, nil
	case r.Status == http.StatusTooManyRequests || r.Status >= 500:
		return deliveryResult{again: cmp.Or(later, firstWebhook)}, fmt.Errorf("it answered with status %d", r.Status)
	case r.Status < 200 || r.Status > 299:
		return deliveryResult{}, fmt.Errorf("it answered with status %d", r.Status)
	case r.Status != http.StatusOK || r.Header.Get("Webhook-Signature") == "":
		return deliveryResult{}, nil // the question arrived, and there is no answer
	}
	if err := w.to.VerifyAnswer(a.ID, r); err != nil {
		return deliveryResult{}, err
	}
	var answer WebhookAnswer
	if err := json.Unmarshal(r.Body, &answer); err != nil {
		return deliveryResult{}, fmt.Errorf("its answer is not JSON: %w", err)
	}
	if answer.Digest != a.Digest {
		return deliveryResult{}, errors.New("its answer is for another approval request: the digest differs")
	}
	return deliveryResult{answer: &answer.ApprovalAnswer}, nil
}
