package python

import (
	"testing"

	"retort/internal/core"
)

// TestRehearsal checks the code that a guest in a virtual machine runs to warm up: that it works, and that it leaves
// nothing behind that a program could notice.
func TestRehearsal(t *testing.T) {
	p := code(
		"import asyncio, builtins, posix, re, sys, _thread",
		"need = type(call_mcp_tool).__init__.__globals__['need']",
		"need('loop').main_loop()",
		"def look():",
		"    return [sorted(vars(builtins)), len(sys.meta_path), vars(sys.modules['__main__']).keys() - {'before'}, _thread._count(), posix.dup(2),",
		"        asyncio.get_event_loop() is need('loop').Loop.main, len(need('channel').current.pending), sys.getrecursionlimit()]",
		"told = need('rehearse')",
		"modules = set(sys.modules)",
		"before = look()",
		"posix.close(before[4])",
		"told = [need('rehearse').rehearse() for i in range(3)]",
		"after = look()",
		"posix.close(after[4])",
		"result = [told[2][0].decode(), told[2][1].decode(), [(a, b) for a, b in zip(before, after) if a != b], sorted(set(sys.modules) - modules)]",
	)
	end := newStarter(t).run(t, p, &fakeHost{})
	want := `["{\"total\":20,\"seen\":[[0,20.0],[1,20.5],[3,21.5],[4,22.0]],\"found\":\"A   {'name': 'a', 'part': .},\",\"on\":true,\"off\":null}","10",[],[]]`
	if end.Status != core.StatusOK || string(end.Value) != want {
		t.Errorf("%s %v\n%s\nnot\n%s", end.Status, end.Error, end.Value, want)
	}
}
