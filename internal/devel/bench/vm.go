package bench

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"retort/internal/core"
	"retort/internal/home"
	"retort/internal/sandbox"
	"retort/internal/sandbox/runtimes"
	"retort/internal/sandbox/vm"
)

// measureVM measures virtual machines if `retort vm setup` has chosen a kernel: the smallest program in a machine
// that is resumed for it and in one that waits, a thousand calls, and memory. The machines are created for the
// measurement and removed afterwards.
func (b *benchRun) measureVM(ctx context.Context) error {
	kernel, err := vm.KernelDir(home.Dir(b.home).Machines())
	if err != nil {
		b.Progress("no machine was prepared: retort vm setup")
		return nil
	}
	known := runtimes.SupportedRuntimes(nil, core.DefaultLimits().Memory)[:1] // Python
	o := vm.Options{
		Guest: []string{b.Self, "guest", "restored"}, Kernel: kernel, Dir: filepath.Join(b.home, "machines"),
		Interpreters: known, Warm: -1, MaxWarm: -1, Progress: b.Progress,
	}
	report, err := vm.SetupMachines(ctx, o)
	if err != nil {
		b.Progress(core.AsError(err).Message)
		return ctx.Err()
	}
	var there []string
	for _, m := range report.Machines {
		there = append(there, m.Runtime)
	}
	cold := vm.New(o)
	defer cold.Close()
	o.Warm, o.MaxWarm = 0, 0 // as the engine has them
	warm := vm.New(o)
	defer warm.Close()
	if err := b.measureSandboxes(ctx, "vm", there, cold, warm, 500, 0); err != nil {
		return err
	}
	return b.measureIdleMachine(ctx, warm)
}

// measureIdleMachine measures the memory of a virtual machine that waits for a program. It counts the memory of
// the machine's monitor process, such as QEMU, including the pages that the machine has changed since it was
// saved.
func (b *benchRun) measureIdleMachine(ctx context.Context, warm sandbox.Backend) error {
	s, err := warm.Prepare(ctx, sandbox.SandboxSpec{Runtime: "quickjs", Limits: core.DefaultLimits()})
	if err != nil {
		return err
	}
	defer s.Close()
	time.Sleep(2 * time.Second) // lets the pool fill up again
	megabytes, machines := 0.0, 0
	for _, pid := range descendantPIDs(os.Getpid()) {
		if n := processName(pid); !strings.HasPrefix(n, "qemu-system") && n != "firecracker" {
			continue
		}
		if own, err := uniqueMB(pid); err == nil {
			megabytes, machines = megabytes+own, machines+1
		}
	}
	if machines > 0 {
		b.rows = append(b.rows, ResultRow{
			Name: "vm: memory of a machine that waits", Median: megabytes / float64(machines), Unit: "MB", Runs: machines,
		})
	}
	return nil
}
