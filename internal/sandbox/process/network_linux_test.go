package process

import (
	"testing"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/sandbox/confine"
	"retort/internal/sandbox/interpreter"
	"retort/internal/sandbox/runtimes"
	"retort/internal/sandbox/sandboxtest"
)

// TestNetworkedEscapes checks that a program with network access can reach its ToolHost but has no other way out.
func TestNetworkedEscapes(t *testing.T) {
	k := native(t, "python", "probe", "python")
	k.plan.Network = confine.Handed
	b := newWithKind(Options{Warm: -1}, k)
	defer b.Close()
	sandboxtest.NetworkedEscapes(t, b, "python")
}

func TestConnections(t *testing.T) {
	i := runtimes.SupportedRuntimes(map[string]string{"python": testenv.Need(t, "python")}, core.DefaultLimits().Memory)[0]
	b := New(Options{Warm: -1, Interpreters: []interpreter.Interpreter{i}, Network: &interpreter.ProxyNetwork{}})
	defer b.Close()
	sandboxtest.CheckConnections(t, b)
}
