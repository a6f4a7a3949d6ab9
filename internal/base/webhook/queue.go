package webhook

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// MessageQueue delivers messages to an endpoint one at a time and in order, and retries failed deliveries. It is safe
// for concurrent use.
type MessageQueue struct {
	to       *WebhookEndpoint
	log      *slog.Logger
	messages chan queuedMessage
	cancel   context.CancelFunc
	close    func()
	ended    chan struct{}
}

type queuedMessage struct {
	id   string
	body []byte
}

const (
	maxQueued = 256
	// maxTries is the maximum number of attempts per message. With the delays they take several minutes.
	maxTries        = 6
	firstRetryDelay = 5 * time.Second // delay before the second attempt; doubles for each further attempt
	closeTimeout    = 3 * time.Second // time for which Close still delivers queued messages
)

// NewQueue returns a queue. The queue delivers messages in the background until Close is called.
func NewQueue(to *WebhookEndpoint, log *slog.Logger) *MessageQueue {
	ctx, cancel := context.WithCancel(context.Background())
	messages := make(chan queuedMessage, maxQueued)
	q := &MessageQueue{to, log, messages, cancel, sync.OnceFunc(func() { close(messages) }), make(chan struct{})}
	go q.deliverLoop(ctx)
	return q
}

// QueueMessage adds a message without waiting. It drops the message and returns false if the queue is full.
func (q *MessageQueue) QueueMessage(id string, body []byte) bool {
	select {
	case q.messages <- queuedMessage{id, body}:
		return true
	default:
		return false
	}
}

// Close keeps delivering queued messages for up to closeTimeout and then drops the rest. QueueMessage must not be
// called afterwards.
func (q *MessageQueue) Close() error {
	q.close()
	timer := time.AfterFunc(closeTimeout, q.cancel)
	<-q.ended
	timer.Stop()
	q.cancel()
	return nil
}

func (q *MessageQueue) deliverLoop(ctx context.Context) {
	defer close(q.ended)
	for m := range q.messages {
		if err := q.deliverMessage(ctx, m); err != nil {
			q.log.Warn("a message could not be delivered to its webhook", "id", m.id, "error", err.Error())
		}
	}
}

// deliverMessage sends a message until the endpoint accepts it, rejects it permanently, or maxTries attempts have
// failed.
func (q *MessageQueue) deliverMessage(ctx context.Context, m queuedMessage) (err error) {
	pause := firstRetryDelay
	for range maxTries {
		var r EndpointResponse
		if r, err = q.to.PostMessage(ctx, m.id, m.body); err == nil {
			if r.Status >= 200 && r.Status < 300 {
				return nil
			}
			err = fmt.Errorf("it answered with status %d", r.Status)
			if r.Status != 429 && r.Status < 500 {
				return err
			}
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
			pause *= 2
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
	return err
}
