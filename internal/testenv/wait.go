package testenv

import (
	"context"
	"testing"
	"time"
)

// Patience bounds every wait of the tests. It only ends a test that hangs: no test may depend on
// how fast the machine is, so nothing waits for less.
const Patience = 5 * time.Minute

// pollInterval is how often WaitUntil looks, once it has looked a few times.
const pollInterval = 10 * time.Millisecond

// WaitUntil waits until done returns true. After Patience it fails the test and ends it; what
// completes the sentence "waited in vain until". Only the test's own goroutine may call it.
func WaitUntil(t testing.TB, what string, done func() bool) {
	t.Helper()
	if !Poll(done) {
		t.Fatalf("waited %v in vain until %s", Patience, what)
	}
}

// Poll waits until done returns true, and reports false if it does not within Patience. It is for
// helpers without a test, and for goroutines that may not end one; tests call WaitUntil.
func Poll(done func() bool) bool {
	pause := pollInterval / 16
	for end := time.Now().Add(Patience); !done(); time.Sleep(pause) {
		if time.Now().After(end) {
			return false
		}
		pause = min(2*pause, pollInterval)
	}
	return true
}

// Receive returns the next value of c, or the zero value if c is closed. After Patience it fails
// the test and ends it; what names the event that c tells of.
func Receive[T any](t testing.TB, c <-chan T, what string) T {
	t.Helper()
	late := time.NewTimer(Patience)
	defer late.Stop()
	select {
	case v := <-c:
		return v
	case <-late.C:
		t.Fatalf("waited %v in vain for %s", Patience, what)
		panic("unreachable")
	}
}

// Context returns the test's context, canceled after Patience.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	t.Cleanup(cancel)
	return ctx
}

// Hang never returns. It is for processes that wait to be killed.
func Hang() {
	for {
		time.Sleep(time.Hour)
	}
}
