package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"retort/internal/core"
	"retort/internal/sandbox"
	"retort/internal/sandbox/docker"
	"retort/internal/sandbox/runtimes"
)

// measureDocker measures Docker containers with the runtime runc, and with gVisor if the daemon has it. Without a
// daemon it measures nothing.
func (b *benchRun) measureDocker(ctx context.Context) error {
	for _, runner := range []struct {
		name       string
		cold, pool float64 // target in ms
	}{{"runc", 400, 20}, {"runsc", 600, 25}} {
		if err := b.measureContainers(ctx, runner.name, runner.cold, runner.pool); err != nil {
			return fmt.Errorf("%s: %w", runner.name, err)
		}
	}
	return nil
}

func (b *benchRun) measureContainers(ctx context.Context, runner string, nothing, pool float64) error {
	known := runtimes.SupportedRuntimes(nil, core.DefaultLimits().Memory)[:1] // Python
	o := docker.Options{
		Guest: []string{b.Self, "guest"}, Runtime: runner, Dir: filepath.Join(b.home, "docker"), Interpreters: known,
		Warm: -1, MaxWarm: -1,
	}
	cold := docker.New(o)
	defer cold.Close()
	have := cold.Capabilities()
	if have.Unavailable != nil {
		b.Progress(runner + ": " + have.Unavailable.Message)
		return nil
	}
	before := containerMemory()
	o.Warm, o.MaxWarm = 0, 0 // as the engine has them
	warm := docker.New(o)
	defer warm.Close()
	if err := b.measureSandboxes(ctx, "docker, "+runner, have.Runtimes, cold, warm, nothing, pool); err != nil {
		return err
	}
	return b.measureIdleContainers(ctx, runner, warm, before)
}

// measureSandboxes measures programs in sandboxes that are started on demand, and in sandboxes that were started in
// advance.
func (b *benchRun) measureSandboxes(
	ctx context.Context, what string, runtimes []string, cold, warm sandbox.Backend, nothing, pool float64,
) error {
	defer func() { b.pause = 0 }()
	for _, runtime := range runtimes {
		b.pause = 200 * time.Millisecond // lets the previous one end
		if err := b.timeRuns(
			what+", "+runtime+": smallest program, from nothing", 10, nothing,
			func() error { return runSmallest(ctx, cold, runtime) },
		); err != nil {
			return fmt.Errorf("%s: %w", runtime, err)
		}
		b.pause = 1500 * time.Millisecond // lets the next container become ready
		if err := b.timeRuns(
			what+", "+runtime+": smallest program, from the pool", 10, pool,
			func() error { return runSmallest(ctx, warm, runtime) },
		); err != nil {
			return fmt.Errorf("%s: %w", runtime, err)
		}
		for _, way := range []string{inTurn, allAtOnce} {
			if err := b.timeRuns(
				what+", "+runtime+": 1,000 tool calls "+way+", all of them", 5, 300,
				func() error { return makeThousandCalls(ctx, warm, runtime, way) },
			); err != nil {
				return fmt.Errorf("%s: %w", runtime, err)
			}
		}
	}
	return nil
}

// measureIdleContainers measures the memory of containers that wait for a program, with all of their processes.
func (b *benchRun) measureIdleContainers(ctx context.Context, runner string, warm sandbox.Backend, before map[string]float64) error {
	s, err := warm.Prepare(ctx, sandbox.SandboxSpec{Runtime: "quickjs", Limits: core.DefaultLimits()})
	if err != nil {
		return err
	}
	defer s.Close()
	time.Sleep(2 * time.Second) // lets the pool fill up again
	megabytes, containers := 0.0, 0
	for id, more := range containerMemory() {
		if _, was := before[id]; !was && more > 0 {
			megabytes, containers = megabytes+more, containers+1
		}
	}
	if containers > 0 {
		b.rows = append(b.rows, ResultRow{
			Name: "docker, " + runner + ": memory of a container that waits", Median: megabytes / float64(containers),
			Unit: "MB", Runs: containers,
		})
	}
	return nil
}

var containerID = regexp.MustCompile(`docker[/-]([0-9a-f]{64})`)

// containerMemory returns the memory that processes in Docker containers use, in MB by container ID.
func containerMemory() map[string]float64 {
	all := map[string]float64{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		groups, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cgroup"))
		found := containerID.FindSubmatch(groups)
		if found == nil {
			continue
		}
		if part, err := proportionalMB(pid); err == nil {
			all[string(found[1])] += part
		}
	}
	return all
}
