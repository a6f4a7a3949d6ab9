package process

import (
	"encoding/json"
	"os"
	"os/exec"

	"retort/internal/sandbox/confine"
	"retort/internal/sandbox/exitcause"
)

// childKind describes one kind of children: the program that they run and their confinement.
type childKind struct {
	runtime string
	command []string // command line of the child, which starts this binary again
	plan    confine.SandboxPlan
	// harness holds the compiled harness, the code that runs programs in the guest. It is nil if the guest cannot
	// compile its harness.
	harness *compiledHarness
	// native is set for runtimes whose programs can make any system call, so that only the kernel and the confinement
	// restrict them.
	native bool
	// exhausted reports whether the runtime's standard error states that it ran out of memory.
	exhausted func(stderr string) bool
	// crashed is the function Interpreter.Crashed of the runtime. It reads from standard error where a program
	// crashed. It may be nil.
	crashed func(stderr, file string) (line int, deep bool)
	// find searches for the interpreter when it is called for the first time, and then sets the field plan, the
	// confinement of the children. It is nil for the built-in runtime. Its errors are *core.Error.
	find func() error
}

const (
	// maxFiles bounds the number of open file descriptors of a built-in guest. Such a guest needs ten.
	maxFiles = 64
	// maxThreads bounds the number of threads of a built-in guest. Such a guest needs seven.
	maxThreads = 32
)

// builtinKind returns the kind of children that run this binary as the built-in guest or in another confined role.
func builtinKind(command []string) *childKind {
	return &childKind{
		runtime: quickjs, command: command, exhausted: exitcause.OutOfMemory,
		plan: confine.SandboxPlan{Profile: "quickjs", Files: maxFiles, Processes: maxThreads, Proc: confine.WantsProc},
	}
}

// checkFound makes sure that the kind's interpreter has been found. It returns an error if this machine does not have
// it.
func (k *childKind) checkFound() error {
	if k.find == nil {
		return nil
	}
	return k.find()
}

// buildCommand returns the command that starts a child of this kind. The caller must write the child's confinement
// plan to the returned file plan. If the child has network access, listener is the socket over which the child sends
// its network listener. If this system has no confinement, both files are nil.
func (k *childKind) buildCommand(weak bool) (cmd *exec.Cmd, plan, listener *os.File, err error) {
	if !hasWalls {
		cmd = wrapCommand(k.command)
		cmd.SysProcAttr = childAttributes(true)
		return cmd, nil, nil, nil
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, err
	}
	cmd = exec.Command(k.command[0], append([]string{confine.Argument}, k.command[1:]...)...)
	cmd.ExtraFiles = []*os.File{read}
	cmd.SysProcAttr = childAttributes(weak)
	if k.plan.Network == confine.Handed && !weak {
		near, far, err := descriptorPair()
		if err != nil {
			_, _ = read.Close(), write.Close()
			return nil, nil, nil, err
		}
		cmd.ExtraFiles, listener = append(cmd.ExtraFiles, far), near
		allowLoopback(cmd.SysProcAttr)
	}
	return cmd, write, listener, nil
}

// sendPlan writes the confinement plan for a child that is about to be started, in the background. It closes the file
// when the child has read the plan or has ended.
func (k *childKind) sendPlan(to *os.File, weak bool) {
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
