package testenv

import (
	"context"
	"testing"
	"time"
)

// Patience bounds every wait in tests, so that a test that hangs ends. It is long, and no test uses a shorter bound,
// because tests must not depend on the speed of the machine.
const Patience = 5 * time.Minute

// pollInterval sets the interval at which Poll calls done. The first few intervals are shorter.
const pollInterval = 10 * time.Millisecond

// WaitUntil waits until the function done returns true. After Patience it fails and ends the test; the message
// contains what, a description of the condition. Only the test's own goroutine may call it.
func WaitUntil(t testing.TB, what string, done func() bool) {
	t.Helper()
	if !Poll(done) {
		t.Fatalf("waited %v in vain until %s", Patience, what)
	}
}

// Poll waits until done returns true. It returns false if that takes longer than Patience. It is for helpers that
// have no testing.TB and for goroutines that must not end the test. Tests call WaitUntil.
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

// Receive returns the next value of the channel c, or the zero value if c is closed. After Patience it fails and ends
// the test; the message contains what, a description of the value.
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

// Context returns the test's context with a timeout of Patience.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	t.Cleanup(cancel)
	return ctx
}

// Hang never returns. It is for child processes that wait to be killed.
func Hang() {
	for {
		time.Sleep(time.Hour)
	}
}
