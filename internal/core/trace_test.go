package core

import (
	"context"
	"strings"
	"testing"
)

func TestTracesOfStrangers(t *testing.T) {
	const good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for name, c := range map[string]struct{ parent, state, want, wantState string }{
		"good":          {good, "a=1,b@c=2", good, "a=1,b@c=2"},
		"later version": {"cc" + good[2:] + "-more", "", good, ""},
		"longer":        {good + "-more", "", "", ""},
		"joined":        {"cc" + good[2:] + "more", "", "", ""},
		"forbidden":     {"ff" + good[2:], "", "", ""},
		"capitals":      {strings.ToUpper(good), "", "", ""},
		"no trace":      {"00-00000000000000000000000000000000-b7ad6b7169203331-01", "", "", ""},
		"no span":       {"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", "", "", ""},
		"a line":        {good[:54] + "\n", "", "", ""},
		"moved dashes":  {"00-0af7651916cd43dd8448eb211c80319-cb7ad6b7169203331-01", "", "", ""},
		"empty":         {"", "a=1", "", ""},
		"large state":   {good, "a=" + strings.Repeat("x", 600), good, ""},
		"broken state":  {good, "a=\x00", good, ""},
		"no member":     {good, "a", good, ""},
		"many members":  {good, strings.Repeat("a=1,", 40) + "b=1", good, ""},
	} {
		got := NewTrace(c.parent, c.state)
		if got.Parent != c.want || got.State != c.wantState {
			t.Errorf("%s: %q %q", name, got.Parent, got.State)
		}
	}
	ctx := WithTrace(t.Context(), NewTrace(good, "a=1"))
	if got := TraceOf(ctx); got.TraceID() != "0af7651916cd43dd8448eb211c80319c" || got.State != "a=1" {
		t.Error(got)
	}
	if TraceOf(context.Background()).TraceID() != "" {
		t.Error("a trace out of nowhere")
	}
}
