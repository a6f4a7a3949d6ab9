package process

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"retort/internal/pipeline/isolate"
	"retort/internal/pipeline/isolate/interpreter"
	"retort/internal/pipeline/isolate/process/walls"
	"retort/internal/run"
)

// commandThreads is how many threads a command may have. It never has a second process: no
// filter lets it fork.
const commandThreads = 64

// command is a program of the machine's that programs may start.
type command struct {
	path  string // absolute, without symbolic links
	same  walls.Identity
	plans func() (walls.Plan, error)
}

// LookCommands finds the programs that settings name, by names that are looked for in PATH
// now, or by absolute paths. One that is not there is noted; one that could never be started,
// such as a script, is an error.
func LookCommands(written []string) (Commands, error) {
	c := Commands{found: map[string]*command{}}
	paths := map[string]string{}
	for _, w := range written {
		name := commandName(w)
		if before, ok := paths[name]; ok && before != w {
			return Commands{}, unfit(w, "programs would call it %s, and so they would %s", name, before)
		} else if ok {
			continue
		}
		paths[name] = w
		if strings.ContainsRune(w, filepath.Separator) && !filepath.IsAbs(w) {
			return Commands{}, unfit(w, "a command is a name that is looked for in PATH, or an absolute path")
		}
		found, err := exec.LookPath(w)
		if err == nil && filepath.IsAbs(found) {
			found, err = filepath.EvalSymlinks(found)
		} else if err == nil {
			err = exec.ErrDot
		}
		if err != nil {
			c.missing = append(c.missing, isolate.MissingCommand{Command: name, Why: noCommand("%s is not on this machine: %v", w, err).WithHint("install it, or give its absolute path (commands), and start Retort again")})
			continue
		}
		looked, refused := lookAt(name, found)
		if refused != nil {
			return Commands{}, unfit(w, "%v", refused)
		}
		c.found[name] = looked
	}
	return c, nil
}

func unfit(written, format string, args ...any) *run.Error {
	return run.Errorf(run.KindInvalidArguments, "retort.open", "commands: programs cannot start %s: %s", written, fmt.Sprintf(format, args...)).
		WithHint("name a compiled program of its own, or remove it from the setting")
}

// lookAt looks whether a file is a program that can be started by itself. What is
// looked at is what will be started, or nothing: the walls hold it against its identity.
func lookAt(name, file string) (*command, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	same, mode, err := walls.Identify(f)
	switch {
	case err != nil:
		return nil, err
	case mode&unix.S_IFMT != unix.S_IFREG:
		return nil, errors.New("it is no file")
	case mode&(unix.S_ISUID|unix.S_ISGID) != 0:
		return nil, errors.New("it changes its user or group (setuid, setgid), for rights that no program gets")
	}
	head := make([]byte, 2)
	if _, err := f.ReadAt(head, 0); err == nil && string(head) == "#!" {
		return nil, errors.New("it is a script (#!), which another program would have to run")
	}
	parsed, err := elf.NewFile(f)
	if err != nil {
		return nil, fmt.Errorf("it is no program of this system: %w", err)
	}
	if parsed.Type != elf.ET_EXEC && parsed.Type != elf.ET_DYN {
		return nil, fmt.Errorf("it is no program (%v)", parsed.Type)
	}
	c := &command{path: file, same: same}
	c.plans = sync.OnceValues(func() (walls.Plan, error) { return c.plan(name) })
	return c, nil
}

// plan is the walls around the command: its own file, the libraries that it is linked with,
// a few devices and an empty /tmp.
func (c *command) plan(name string) (walls.Plan, error) {
	inside := path.Join(interpreter.BinDir, name)
	image, err := interpreter.NewImage(inside, c.path)
	if err != nil {
		return walls.Plan{}, err
	}
	p := walls.Plan{Profile: "command", Argv: []string{inside}, Mounts: mounts(image), Tmp: temporary, Files: maxFiles, Processes: commandThreads}
	for i := range p.Mounts {
		if p.Mounts[i].Target == inside {
			p.Mounts[i].Same = &c.same
		}
	}
	return p, nil
}

// Start implements isolate.Commander. The command's child is like those of interpreters, but
// that it becomes the command: nothing can be told to it but its arguments and its input.
func (s *sandbox) Start(ctx context.Context, c isolate.Command) (isolate.Ended, error) {
	b := s.backend
	found, ok := b.commands.found[c.Name]
	if !ok {
		return isolate.Ended{}, b.commands.absent(c.Name)
	}
	if b.check().weak {
		return isolate.Ended{}, noCommand("commands need walls that this machine refuses").WithHint("`retort doctor` says why")
	}
	plan, err := found.plans()
	if err != nil {
		return isolate.Ended{}, noCommand("%s cannot be started: %w", c.Name, err)
	}
	limits, leave, refused := s.enter()
	if refused != nil {
		return isolate.Ended{}, refused
	}
	defer leave()
	plan.Argv = append([]string{plan.Argv[0]}, c.Args...)
	plan.Data, plan.Seconds = allowance(limits)+spare, int64(processorTime(limits)/time.Second)
	return b.command(ctx, &kind{command: b.kinds[quickjs].command, plan: plan}, c, limits)
}

// absent is why there is no such command.
func (c Commands) absent(name string) *run.Error {
	for _, m := range c.missing {
		if m.Command == name {
			return m.Why
		}
	}
	return noCommand("there is no command %q in this sandbox", name)
}

// enter begins something that Close of the backend waits for, if the program still runs.
func (s *sandbox) enter() (limits run.Limits, leave func(), refused *run.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.backend.mu.Lock()
	defer s.backend.mu.Unlock()
	if !s.used || s.closed || s.over || s.backend.closed {
		return limits, nil, run.Errorf(run.KindCancelled, "process.command", "the program has ended")
	}
	s.backend.children.Add(1)
	return s.limits.Or(run.DefaultLimits()), s.backend.children.Done, nil
}

// command starts a child that becomes the command, and waits for its end.
func (b *Backend) command(whole context.Context, k *kind, c isolate.Command, limits run.Limits) (isolate.Ended, error) {
	ctx, cancel := context.WithCancelCause(whole)
	defer cancel(nil)
	cmd, plan, _, err := k.cmd(false)
	if err != nil {
		return isolate.Ended{}, noCommand("%s could not be started: %w", c.Name, err)
	}
	over := errors.New("too much output")
	stdout := &bounded{most: isolate.MaxStdout, end: func() { cancel(over) }}
	stderr := &bounded{most: isolate.MaxStderr, end: func() { cancel(over) }}
	cmd.Path, cmd.Env, cmd.Dir = sameProgram(cmd.Path), []string{}, rootDir()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(c.Stdin), stdout, stderr
	cmd.WaitDelay = time.Second // nobody but the child has the other ends
	k.tell(plan, false)
	group, err := b.spawner.Start(cmd)
	for _, f := range cmd.ExtraFiles {
		_ = f.Close()
	}
	if err != nil {
		return isolate.Ended{}, noCommand("%s could not be started: %w", c.Name, err)
	}
	group.Limit(allowance(limits), limits, commandThreads)
	running := &child{cmd: cmd}
	unwatch := running.watch(limits, commandThreads, cancel)
	unkill := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait() // how it ended is in ProcessState
	unkill()
	unwatch()
	starved := group.Exhausted()
	group.Remove()
	ended := isolate.Ended{Code: codeOf(cmd.ProcessState), Stdout: stdout.data, Stderr: stderr.data, Truncated: stdout.spilt || stderr.spilt}
	switch cause := context.Cause(ctx); {
	case starved:
		return ended, run.Errorf(run.KindLimit, "process.command", "%s needed more memory than a program may have", c.Name).WithHint("give it less at once")
	case whole.Err() != nil:
		return ended, run.Errorf(run.KindCancelled, "process.command", "%s was ended with its program", c.Name)
	case cause != nil && !errors.Is(cause, over):
		return ended, run.Errorf(run.KindLimit, "process.command", "%s was ended: %v", c.Name, cause).WithHint("give it less at once")
	}
	return ended, unstarted(c.Name, ended)
}

// unstarted says of a child that never became the command why; nil if it did. A command that
// says the same itself fools its own program, and nobody else.
func unstarted(name string, ended isolate.Ended) error {
	text := string(ended.Stderr)
	switch {
	case ended.Code == 0 || len(ended.Stdout) > 0 || !strings.HasPrefix(text, "walls: "):
		return nil
	case strings.Contains(text, walls.ErrOther.Error()):
		return noCommand("%s is not the file that it was when Retort started", name).WithHint("have the person who runs Retort start it again")
	}
	return noCommand("%s could not be started: %.200q", name, strings.TrimSpace(text))
}

func codeOf(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}
