package process

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"

	"retort/internal/sandbox/confine"
	"retort/internal/sandbox/warmpool"
)

// kind is a sort of children: what they run, and behind which walls.
type kind struct {
	runtime string
	command []string // of the child: this program again
	plan    confine.Plan
	pool    *warmpool.Pool[*child]
	// harness is nil if its guest cannot compile it.
	harness *compiledHarness
	// native says that the kernel and the walls are all that holds programs of
	// this runtime, which could otherwise do what any program can.
	native bool
	// exhausted tells by what the runtime said on its standard error that it
	// ended for want of memory.
	exhausted func(stderr string) bool
	// crashed is Interpreter.Crashed; nil where there is none.
	crashed func(stderr, file string) (line int, deep bool)
	// find completes what is known of an interpreter, once; nil if nothing is
	// to be found. Its errors are *core.Error.
	find func() error
}

const (
	// maxFiles is how many descriptors a built-in guest may have; it needs ten.
	maxFiles = 64
	// maxThreads is how many threads a built-in guest may have; it needs seven.
	maxThreads = 32
)

// builtin is the guest in this binary, and what else of this binary runs behind
// the walls.
func builtin(command []string) *kind {
	return &kind{
		runtime: quickjs, command: command, exhausted: goExhausted,
		plan: confine.Plan{Profile: "quickjs", Files: maxFiles, Processes: maxThreads, Proc: confine.WantsProc},
	}
}

// goExhausted is for programs in Go.
func goExhausted(stderr string) bool {
	return strings.Contains(stderr, "out of memory") || strings.Contains(stderr, "cannot allocate memory")
}

// found says why a kind cannot be used, after looking for it.
func (k *kind) found() error {
	if k.find == nil {
		return nil
	}
	return k.find()
}

// cmd is how a child of kind k is started, with the descriptor that its plan is
// to be written to, and the one over which its listener comes if it has a network. Where there
// are no walls it starts as it is.
func (k *kind) cmd(weak bool) (cmd *exec.Cmd, plan, listener *os.File, err error) {
	if !hasWalls {
		cmd = around(k.command)
		cmd.SysProcAttr = attributes(true)
		return cmd, nil, nil, nil
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, err
	}
	cmd = exec.Command(k.command[0], append([]string{confine.Argument}, k.command[1:]...)...)
	cmd.ExtraFiles = []*os.File{read}
	cmd.SysProcAttr = attributes(weak)
	if k.plan.Network == confine.Handed && !weak {
		near, far, err := descriptorPair()
		if err != nil {
			_, _ = read.Close(), write.Close()
			return nil, nil, nil, err
		}
		cmd.ExtraFiles, listener = append(cmd.ExtraFiles, far), near
		networked(cmd.SysProcAttr)
	}
	return cmd, write, listener, nil
}

// tell writes the plan for a child that is about to be started, and closes what
// it is written to when it has been read or nobody is left to read it.
func (k *kind) tell(to *os.File, weak bool) {
	if to == nil {
		return
	}
	plan := k.plan
	plan.Weak, plan.User = weak, userOf(weak)
	go func() {
		data, err := json.Marshal(plan)
		if err == nil {
			_, _ = to.Write(data)
		}
		_ = to.Close()
	}()
}
