package docker

import (
	"testing"

	"retort/internal/devel/testenv"
	"retort/internal/sandbox/interpreter"
	"retort/internal/sandbox/sandboxtest"
	"retort/internal/sandbox/wire/shm"
)

// TestSharedMemory checks that a container and its engine communicate through shared memory if the daemon can mount
// files of this machine, and that a hostile guest cannot harm the engine through that memory.
func TestSharedMemory(t *testing.T) {
	t.Parallel()
	for _, runner := range []string{"runc", "runsc"} {
		t.Run(runner, func(t *testing.T) {
			if runner == gvisor {
				testenv.Need(t, "runsc")
			}
			o := options(t, runner)
			python := pythonHere(t)
			for runtime, i := range map[string]*interpreter.Interpreter{quickjs: nil, "python": &python} {
				for _, far := range []bool{false, true} {
					b := newBackend(o)
					b.far.Store(far)
					b.poolKind(runtime, i)
					c, err := b.startContainer(t.Context(), runtime)
					if err != nil {
						t.Fatal(err)
					}
					sandboxtest.CheckConversation(t, c, runtime)
					if h, ok := c.wire.(*shm.HostEnd); ok == far || ok && !h.IsUsed() {
						t.Errorf("%s: memory is shared: %t; a daemon that is far away: %t", runtime, ok, far)
					}
					<-c.Gone()
					_ = b.closeBackend()
				}
			}
			o.Interpreters = []interpreter.Interpreter{python}
			b := New(o)
			defer b.Close()
			sandboxtest.SharedMemory(t, b)
		})
	}
}
