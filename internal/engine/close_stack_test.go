package engine

import (
	"errors"
	"slices"
	"testing"
)

// TestCloseStack checks that Close calls all functions in reverse order, even after one has failed, and returns their
// errors.
func TestCloseStack(t *testing.T) {
	var called []string
	failed := errors.New("broken")
	var s closeStack
	for name, err := range []error{nil, failed, nil} {
		s.push(func() error {
			called = append(called, string(rune('a'+name)))
			return err
		})
	}
	if err := s.Close(); !errors.Is(err, failed) {
		t.Error(err)
	}
	if want := []string{"c", "b", "a"}; !slices.Equal(called, want) {
		t.Errorf("%q, want %q", called, want)
	}
}

// TestCloseOnError checks that a failed constructor closes what it has opened, and a successful one does not.
func TestCloseOnError(t *testing.T) {
	for _, want := range []error{nil, errors.New("broken")} {
		closed := false
		construct := func() (err error) {
			var opened closeStack
			defer opened.closeOnError(&err)
			opened.push(func() error { closed = true; return nil })
			return want
		}
		if err := construct(); err != want || closed != (want != nil) {
			t.Errorf("%v: closed %v", err, closed)
		}
	}
}

// TestHandoff checks that a handoff keeps the values that are sent before there is a receiver and then passes them on
// in order. Values that are sent later must reach the receiver at once.
func TestHandoff(t *testing.T) {
	var h handoff[int]
	h.send(1)
	h.send(2)
	var got []int
	h.deliverTo(func(n int) { got = append(got, n) })
	h.send(3)
	if want := []int{1, 2, 3}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
