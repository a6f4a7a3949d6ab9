package wire

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"retort/internal/core"
)

type held struct{ freed atomic.Bool }

func (h *held) Shrink(int64) {}
func (h *held) Free()        { h.freed.Store(true) }

// newClaimedFrame returns a frame whose body counts towards the engine's memory budget. It also returns the amount of
// memory that the frame takes from the budget, so that a test can check that it is released.
func newClaimedFrame(t *testing.T) (Frame, *held) {
	_, claim := core.WithClaim(t.Context(), "x")
	h := &held{}
	claim.HoldTransformation(nil, h)
	return Frame{Kind: KindResult, Body: make([]byte, copyBelow), Claim: claim}, h
}

// TestClaimsUntilFramesAreWritten checks that the memory of a frame counts towards the engine's budget until the frame
// is written, and that the memory is also released if the write fails.
func TestClaimsUntilFramesAreWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		c := NewConn(ours)
		f, h := newClaimedFrame(t)
		go func() { _ = c.SendFrame(f) }()
		synctest.Wait()
		if h.freed.Load() {
			t.Error("freed while the other side has not read the frame")
		}
		if _, err := io.ReadFull(theirs, make([]byte, headerSize+copyBelow)); err != nil {
			t.Fatal(err)
		}
		c.FlushAndWait()
		if !h.freed.Load() {
			t.Error("not freed")
		}
		_ = theirs.Close()
		for range 2 { // by the write that fails, and after that
			f, h := newClaimedFrame(t)
			if err := c.SendFrame(f); err == nil || !h.freed.Load() {
				t.Errorf("error %v, freed: %v", err, h.freed.Load())
			}
		}
	})
}

// TestFramesAreAdmitted checks that Read calls the function admit before it allocates memory for a frame, and returns
// the error with which admit refuses.
func TestFramesAreAdmitted(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	c := NewConn(ours)
	c.Accept(FrameSizes{KindDone: 1000})
	full := errors.New("full")
	c.admit = func(k FrameKind, size int64) error {
		if k != KindDone || size != 1000 {
			t.Errorf("asked for %s of %d bytes", k, size)
		}
		return full
	}
	go func() { _, _ = theirs.Write(appendHeader(nil, Frame{Kind: KindDone, Body: make([]byte, 1000)})) }()
	if _, err := c.Read(); !errors.Is(err, full) {
		t.Errorf("error %v", err)
	}
}
