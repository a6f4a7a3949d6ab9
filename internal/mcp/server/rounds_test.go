package server

import (
	"testing"
	"time"
)

func TestRounds(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	r := NewRequestStates()
	issued := func() string {
		text, err := r.issueState(requestState{Execution: "x", Principal: "ann", Call: "c", Expires: now.Add(time.Minute)})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	state := issued()
	if _, err := r.takeState(state, "ann", "c", now.Add(time.Minute)); err == nil {
		t.Error("it does not run out")
	}
	if s, err := r.takeState(state, "ann", "c", now.Add(time.Minute-1)); err != nil || s.Execution != "x" {
		t.Error(s, err)
	}
	if _, err := r.takeState(state, "ann", "c", now); err == nil {
		t.Error("it counts twice")
	}
	if _, err := NewRequestStates().takeState(issued(), "ann", "c", now); err == nil {
		t.Error("another process takes it")
	}
	for i := range state {
		edited := []byte(issued())
		edited[i] ^= 1
		if _, err := r.takeState(string(edited), "ann", "c", now); err == nil && i < len(state)-1 { // the last digit has bits that say nothing
			t.Errorf("digit %d can be edited", i)
		}
	}
	for range 100 {
		_, _ = r.takeState(issued(), "ann", "c", now)
	}
	_, _ = r.takeState(issued(), "ann", "c", now.Add(59*time.Second))
	now = now.Add(time.Hour)
	_, _ = r.takeState(issued(), "ann", "c", now)
	if len(r.spent) != 1 {
		t.Errorf("%d are remembered that have run out", len(r.spent)-1)
	}
}
