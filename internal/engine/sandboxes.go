package engine

import (
	"os"
	"slices"

	"retort/internal/config"
	"retort/internal/core"
	"retort/internal/egress"
	"retort/internal/sandbox"
	"retort/internal/sandbox/docker"
	"retort/internal/sandbox/gvisor"
	"retort/internal/sandbox/hostcmd"
	"retort/internal/sandbox/interpreter"
	"retort/internal/sandbox/process"
	"retort/internal/sandbox/runtimes"
)

// requiredStrengths gives the strength of each sandbox that can be required as the weakest one.
var requiredStrengths = map[config.SandboxMode]int{config.SandboxDocker: sandbox.Container, config.SandboxVM: sandbox.Machine}

// fallbackModes maps values of the setting sandboxFallback to modes of the process backend. The mode says what the
// backend may still run on a system that does not support its restrictions.
var fallbackModes = map[config.SandboxFallback]process.FallbackMode{
	config.FallbackNone: process.FallbackNone, config.FallbackQuickJS: process.FallbackQuickJS, config.FallbackAll: process.FallbackAll,
}

// backendOptions holds the options that all sandbox backends share.
type backendOptions struct {
	guest        []string // command of the process that runs a program in a sandbox
	limits       core.Limits
	interpreters []interpreter.Interpreter
	network      *interpreter.ProxyNetwork // nil if programs have no network
	commands     hostcmd.CommandSet
}

// newSandboxes returns the chooser of all sandbox backends, and the backend that runs programs in a process. Only the
// process backend starts anything before the first program uses it.
func newSandboxes(c *configuration, network *egress.Network, commands hostcmd.CommandSet) (*sandbox.BackendChooser, *process.Backend) {
	s := c.config.Settings
	o := backendOptions{
		c.commands.guest, s.ExecutionLimits(), runtimes.SupportedRuntimes(runtimeCommands(s.Runtimes), s.ExecutionLimits().Memory),
		proxyOf(network, s), commands,
	}
	processes := process.New(process.Options{
		Command: o.guest, Compiles: true, Limits: o.limits, Fallback: fallbackModes[s.SandboxFallback],
		Network: o.network, Interpreters: o.interpreters, Commands: o.commands, Once: c.source.Reserve != ReserveMany,
		Lazy: c.source.Reserve == ReserveNone,
	})
	kernels := gvisor.New(gvisor.Options{
		Guest: o.guest, Runsc: s.GVisor.Runsc, Dir: c.home.Sandbox(gvisor.Name), Limits: o.limits,
		Interpreters: o.interpreters, Network: o.network, Commands: o.commands,
	})
	weakestFirst := []sandbox.Backend{processes, newContainerBackend(c, o), kernels, newMachineBackend(c, o)}
	return sandbox.NewChooser(string(s.SandboxMode), weakestFirst...), processes
}

// newContainerBackend returns the sandbox backend for Docker and Podman.
func newContainerBackend(c *configuration, shared backendOptions) sandbox.Backend {
	s := c.config.Settings
	o := docker.Options{
		Guest: shared.guest, Host: s.Docker.Host, Runtime: s.Docker.Runtime, Strict: s.SecurityLevel == config.SecurityMaximum,
		Images: s.Docker.Images, Dir: c.home.Sandbox(docker.Name), Limits: shared.limits, Interpreters: shared.interpreters,
		Network: shared.network, Commands: shared.commands,
	}
	if s.Docker.Guest != "" {
		o.Guest = []string{s.Docker.Guest, guestArgument}
	}
	return docker.New(o)
}

// runtimeCommands returns the commands of language runtimes that the settings name, by runtime.
func runtimeCommands(r config.Runtimes) map[string]string {
	return map[string]string{"python": r.Python, "node": r.Node, "bun": r.Bun, "deno": r.Deno}
}

// roleCommands holds the commands that start this binary in its other roles: as the guest that runs a program
// inside a sandbox, as the reaper that cleans up after an engine, and as the compiler that checks programs.
type roleCommands struct{ guest, reaper, compiler []string }

// findRoleCommands returns the commands that start this binary as guest, reaper and compiler. If Config.Guest is set,
// they start that program instead.
func (c Config) findRoleCommands() (roleCommands, error) {
	guest := slices.Clone(c.Guest)
	if len(guest) == 0 {
		self, err := os.Executable()
		if err != nil {
			return roleCommands{}, core.Errorf(core.KindSandboxUnavailable, "retort.open", "cannot find Retort's own executable: %w", err)
		}
		guest = []string{self, guestArgument}
	}
	return roleCommands{guest: guest, reaper: []string{guest[0], reaperArgument}, compiler: []string{guest[0], compilerArgument}}, nil
}
