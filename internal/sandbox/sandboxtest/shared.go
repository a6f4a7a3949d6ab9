package sandboxtest

import (
	"context"
	"io"
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/sandbox"
	"retort/internal/sandbox/wire"
)

// SharedMemory tests Python programs that attack the memory that their guest shares with the engine. An attack may
// affect only the attacking program.
func SharedMemory(t *testing.T, b sandbox.Backend) {
	t.Helper()
	const open = `import posix as os
def opened():
    for name in ["/ring", "/dev/mem", *("/proc/self/fd/%d" % n for n in range(3, 256)), *range(3, 256)]:
        try:
            fd = os.open(name, os.O_RDWR) if type(name) is str else name
            if os.fstat(fd).st_size == 256 << 10 or os.fstat(fd).st_rdev == 0x101:  # the machine's memory
                yield fd
        except OSError:
            pass
`
	for _, p := range []struct{ name, code, never string }{
		{
			"grow",
			"said = []\nfor fd in opened():\n    if os.fstat(fd).st_rdev:\n        said.append('grew to all')\n    for try_ in (lambda: os.ftruncate(fd, 1 << 40), lambda: os.posix_fallocate(fd, 0, 1 << 30), lambda: os.pwrite(fd, b'x', 1 << 40)):\n        try:\n            try_()\n            said.append('grew')\n        except OSError as e:\n            said.append(e.errno)\nreturn said",
			"grew",
		},
		{"shrink", "n = 0\nfor fd in opened():\n    os.ftruncate(fd, 0)\nfor i in range(200):\n    n += call_mcp_tool('x')\nreturn n", ""},
		{
			"lie",
			"import gc, mmap, random\nfor m in [o for o in gc.get_objects() if type(o) is mmap.mmap]:\n    for i in range(0, len(m), 4096):\n        m[i : i + 4096] = random.randbytes(4096)\nfor i in range(200):\n    call_mcp_tool('x')\nreturn 1",
			"",
		},
		{"nothing", "return call_mcp_tool('x')", ""},
	} {
		l := core.Limits{Timeout: hangTimeout}.WithDefaults(core.DefaultLimits())
		s, err := b.Prepare(t.Context(), sandbox.SandboxSpec{Runtime: "python", Limits: l})
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Run(t.Context(), core.CheckedProgram{Code: open + p.code, Name: "program", Limits: l}, sharing)
		_ = s.Close()
		switch {
		case err != nil:
			t.Fatal(err)
		case p.never != "" && (r.Status != core.StatusOK || strings.Contains(string(r.Value), p.never)):
			t.Errorf("%s: %s %s %v", p.name, r.Status, r.Value, r.Error)
		case p.name == "nothing" && string(r.Value) != "1":
			t.Errorf("afterwards: %s %s %v", r.Status, r.Value, r.Error)
		case r.Status == core.StatusTimeout:
			t.Errorf("%s: the engine and the program are deadlocked: %s %v", p.name, r.Status, r.Error)
		}
		t.Logf("%s: %s %s %v", p.name, r.Status, r.Value, r.Error)
	}
}

var sharing = sandbox.HostFunc(func(context.Context, core.ToolCall) (core.CallResult, error) {
	return core.CallResult{Value: []byte("1")}, nil
})

// CheckConversation checks that a guest and the engine, connected through g, can exchange messages for a whole
// program that makes fifty calls.
func CheckConversation(t *testing.T, g io.ReadWriteCloser, runtime string) {
	t.Helper()
	code := map[string]string{
		"quickjs": "for (let i = 0; i < 50; i++) await callMCPTool('x'); return 50",
		"python":  "for i in range(50): call_mcp_tool('x')\nreturn 50",
	}[runtime]
	conn := wire.NewConn(g)
	defer conn.Close()
	if _, err := wire.ReadGreeting(conn); err != nil {
		t.Fatal(err)
	}
	end, err := wire.ServeProgram(t.Context(), conn, core.CheckedProgram{Code: code, Name: "program", Limits: core.DefaultLimits()}, sharing)
	if err != nil || string(end.Value) != "50" {
		t.Fatalf("%s %s %v, %v", end.Status, end.Value, end.Error, err)
	}
}
