package telemetry

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

const (
	maxQueue   = 4096 // maximum number of spans waiting to be sent
	maxBatch   = 512  // maximum number of spans in one message
	batchDelay = time.Second
)

// spanQueue accepts spans without waiting and sends them in the background. When it is full, it drops spans.
type spanQueue struct {
	spans   chan sdktrace.ReadOnlySpan
	dropped atomic.Int64
	send    func(ctx context.Context, last bool, spans []sdktrace.ReadOnlySpan) error

	ctx    context.Context // context for sending; its end cancels the sending
	cancel context.CancelFunc
	stop   chan struct{}
	once   sync.Once
	done   chan struct{}
}

func newQueue(send func(context.Context, bool, []sdktrace.ReadOnlySpan) error) *spanQueue {
	q := &spanQueue{spans: make(chan sdktrace.ReadOnlySpan, maxQueue), send: send, stop: make(chan struct{}), done: make(chan struct{})}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	go q.sendSpans()
	return q
}

// OnStart implements sdktrace.SpanProcessor.
func (q *spanQueue) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd implements sdktrace.SpanProcessor.
func (q *spanQueue) OnEnd(s sdktrace.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	select {
	case <-q.stop:
		q.dropped.Add(1)
	case q.spans <- s:
	default:
		q.dropped.Add(1)
	}
}

func (q *spanQueue) sendSpans() {
	defer close(q.done)
	for {
		batch, last := q.nextBatch()
		if len(batch) > 0 && q.send(q.ctx, last, batch) != nil {
			q.dropped.Add(int64(len(batch)))
		}
		if last && len(q.spans) == 0 {
			return
		}
	}
}

// nextBatch waits for a span, and then a little longer for more spans to send with it. last is true if the queue is
// shutting down.
func (q *spanQueue) nextBatch() (batch []sdktrace.ReadOnlySpan, last bool) {
	select {
	case s := <-q.spans:
		batch = append(batch, s)
	case <-q.stop:
	}
	timer := time.NewTimer(batchDelay)
	defer timer.Stop()
	for len(batch) < maxBatch {
		select {
		case s := <-q.spans:
			batch = append(batch, s)
			continue
		default:
		}
		select {
		case s := <-q.spans:
			batch = append(batch, s)
		case <-timer.C:
			return batch, false
		case <-q.stop:
			if len(q.spans) == 0 {
				return batch, true
			}
		}
	}
	select {
	case <-q.stop:
		return batch, true
	default:
		return batch, false
	}
}

// Shutdown implements sdktrace.SpanProcessor. It sends the queued spans until ctx ends.
func (q *spanQueue) Shutdown(ctx context.Context) error {
	q.once.Do(func() { close(q.stop) })
	defer q.cancel()
	select {
	case <-q.done:
		return nil
	case <-ctx.Done():
		q.cancel()
		<-q.done
		return ctx.Err()
	}
}

// ForceFlush implements sdktrace.SpanProcessor. It does nothing.
func (q *spanQueue) ForceFlush(context.Context) error { return nil }
