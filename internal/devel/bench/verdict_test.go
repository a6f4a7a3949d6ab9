package bench

import (
	"slices"
	"testing"
)

func TestVerdicts(t *testing.T) {
	w := Workload{Costs: []WorkloadCost{
		{Way: WayDirect, Definitions: 10_000, Read: 100, Written: 20, RoundTrips: 1, WallMS: 5, Peak: 10_120, Input: 20_000},
		{Way: WaySearch, Definitions: 800, Read: 100, Written: 40, RoundTrips: 2, WallMS: 5, Peak: 940, Input: 2_000},
		{Way: WayFull, Definitions: 1_600, Read: 200, Written: 60, RoundTrips: 2, WallMS: 300, Peak: 1_860, Input: 4_000},
		{Way: WayLean, Definitions: 400, Read: 200, Written: 60, RoundTrips: 2, WallMS: 300.4, Peak: 660, Input: 200_001},
	}}
	want := []string{
		"code, lean surface against direct calls, tool search: context 29.8 % less, definitions 50.0 % less, data 85.7 % more",
		"code costs more: 200 tokens read for 100, 60 tokens written for 40, 300 ms for 5, 200001 tokens of input over all turns for 2000",
	}
	if got := w.ListVerdicts(); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	w.Costs[0].Peak, w.Costs[1].Peak = 300_000, 200_001
	w.Costs[3] = WorkloadCost{Way: WayLean}
	want = []string{
		"code, lean surface against direct calls, tool search: context 100.0 % less, definitions 100.0 % less, data 100.0 % less",
		"direct calls, all definitions: does not fit into a context of 200000 tokens", "direct calls, tool search: does not fit into a context of 200000 tokens",
	}
	if got := w.ListVerdicts(); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestAgentIsHeldToWhatItFound checks that a simulated model with tool search cannot call a tool that no search has
// returned.
func TestAgentIsHeldToWhatItFound(t *testing.T) {
	a := &directAgent{modelConversation: beginConversation(WaySearch, "a task"), servers: &bundledServers{}, loaded: map[string]bool{}}
	if _, err := a.callAll(agentCall{"crm__search_records", nil}); err == nil {
		t.Error("it called a tool that it had no definition of")
	}
}
