package process

import (
	"testing"

	"retort/internal/pipeline/isolate"
	"retort/internal/pipeline/isolate/interpreter"
	"retort/internal/pipeline/isolate/isolatetest"
	"retort/internal/pipeline/isolate/process/walls"
	"retort/internal/run"
	"retort/internal/runtimes"
	"retort/internal/testenv"
)

// TestNetworkedEscapes holds that a program with a network has one way more, and that it
// leads to its Host.
func TestNetworkedEscapes(t *testing.T) {
	b := New(Options{Warm: -1})
	defer b.Close()
	k := native(t, "python", "probe", "python")
	k.plan.Network = walls.Handed
	b.kinds["python"] = k
	b.open(k, Options{Warm: -1})
	b.have = func() isolate.Capabilities { return isolate.Capabilities{Runtimes: []string{"python"}} }
	isolatetest.NetworkedEscapes(t, b, "python")
}

func TestConnections(t *testing.T) {
	i := runtimes.All(map[string]string{"python": testenv.Need(t, "python")}, run.DefaultLimits().Memory)[0]
	b := New(Options{Warm: -1, Interpreters: []interpreter.Interpreter{i}, Network: &interpreter.Network{}})
	defer b.Close()
	isolatetest.Connections(t, b)
}
