package throttle_test

import (
	"slices"
	"testing"
	"time"

	"retort/internal/base/throttle"
)

func TestBreaker(t *testing.T) {
	now := time.Unix(1000, 0)
	b := throttle.Breaker{Backoff: throttle.Backoff{Delay: time.Second, OpenAfter: 3, Pause: 15 * time.Second, Longest: time.Minute}}
	var waits []time.Duration
	for range 7 {
		b.NoteFailure(now, 0.5)
		waits = append(waits, b.RetryAt.Sub(now))
		if b.IsOpen(now) != (b.Failures >= 3) || b.IsOpen(b.RetryAt) {
			t.Errorf("after %d failures open is %v", b.Failures, b.IsOpen(now))
		}
	}
	if want := []time.Duration{1e9, 2e9, 15e9, 30e9, 60e9, 60e9, 60e9}; !slices.Equal(waits, want) {
		t.Errorf("waits %v, want %v", waits, want)
	}
	now = b.RetryAt
	b.Postpone(now)
	if !b.IsOpen(now.Add(time.Minute-1)) || b.IsOpen(now.Add(time.Minute)) {
		t.Errorf("postponed until %v", b.RetryAt)
	}
	for range 1000 {
		b.NoteFailure(now, 0.999)
	}
	if d := b.RetryAt.Sub(now); d < time.Minute || d > 2*time.Minute {
		t.Errorf("after 1,000 failures it waits %v", d)
	}
	b.NoteSuccess()
	if b.IsOpen(now) || b.IsTripped() || b.Longest != time.Minute {
		t.Errorf("after a success: %+v", b)
	}
}

func TestRate(t *testing.T) {
	now := time.Unix(1000, 0)
	r := throttle.Rate{Most: 30, Per: time.Minute}
	var b throttle.Bucket
	take := func(n int, want time.Duration) {
		t.Helper()
		if wait := r.Take(&b, n, now); wait.Round(time.Millisecond) != want {
			t.Errorf("%d events wait %v, want %v", n, wait, want)
		}
	}
	take(30, 0)
	take(1, 2*time.Second)
	take(3, 6*time.Second)
	now = now.Add(time.Second)
	take(1, time.Second)
	now = now.Add(time.Second)
	take(1, 0)
	now = now.Add(-time.Hour)
	take(1, 2*time.Second)
	if r.IsFull(b, now.Add(59*time.Second)) || !r.IsFull(b, now.Add(time.Minute)) || !r.IsFull(r.Full(now), now) {
		t.Error("it is not full exactly after a minute")
	}
}
