package sandbox

import (
	"context"
	"strings"
	"testing"

	"retort/internal/core"
)

// named implements a Backend with a configurable name. It creates no sandboxes. It records the name under which it was
// requested and how often it was closed.
type named struct {
	have     Capabilities
	prepared *string
	closed   *int
}

func (n named) Kind() BackendKind          { return BackendKind{n.have.Name, n.have.Strength} }
func (n named) Capabilities() Capabilities { return n.have }
func (n named) Close() error               { *n.closed++; return nil }

func (n named) Prepare(context.Context, SandboxSpec) (Sandbox, error) {
	*n.prepared = n.have.Name
	return nil, nil
}

func TestChooser(t *testing.T) {
	var prepared string
	var closed int
	make := func(name string, strength int, unavailable *core.Error, runtimes ...string) Backend {
		return named{Capabilities{Name: name, Strength: strength, Runtimes: runtimes, Unavailable: unavailable}, &prepared, &closed}
	}
	broken := core.Errorf(core.KindSandboxUnavailable, "", "no daemon").WithHint("start it")
	c := NewChooser("process", make("process", 20, nil, "quickjs"), make("docker", 60, broken, "quickjs", "node"), make("vm", 90, nil, "quickjs", "python"))
	for _, test := range []struct{ name, runtime, want string }{
		{"", "quickjs", "process"},
		{"process", "quickjs", "process"},
		{"vm", "python", "vm"},
		{"auto", "quickjs", "process"}, // to ask for it changes nothing
		{"docker", "quickjs", "no daemon | start it"},
		{"remote", "quickjs", "this machine has no remote sandbox | this machine can run quickjs in: process, vm; use one of these, or leave out the sandbox"},
		{"process", "python", "the process sandbox cannot run python | this machine can run python in: vm; use one of these, or leave out the sandbox"},
	} {
		prepared = ""
		_, err := c.Prepare(t.Context(), test.name, SandboxSpec{Runtime: test.runtime})
		got := prepared
		if err != nil {
			e := core.AsError(err)
			if e.Kind != core.KindSandboxUnavailable || prepared != "" {
				t.Errorf("%s %s: kind %s, prepared %q", test.name, test.runtime, e.Kind, prepared)
			}
			got = e.Message + " | " + e.Hint
		}
		if got != test.want {
			t.Errorf("%s %s: got %q, want %q", test.name, test.runtime, got, test.want)
		}
	}
	if _, err := NewChooser("process").Prepare(t.Context(), "", SandboxSpec{Runtime: "quickjs"}); !strings.Contains(core.AsError(err).Hint, "doctor") {
		t.Errorf("without backends: %v", err)
	}
	if err := c.Close(); err != nil || closed != 3 {
		t.Errorf("closed %d backends, %v", closed, err)
	}
}

// TestChooserByRisk checks that the auto mode chooses the weakest backend that satisfies the program's required
// strength, or returns an error. It also checks that a request can name a stronger backend, but not a weaker one.
func TestChooserByRisk(t *testing.T) {
	var prepared string
	var closed int
	backends := func(docker *core.Error) []Backend {
		return []Backend{
			named{Capabilities{Name: "process", Strength: Process, Runtimes: []string{"quickjs"}}, &prepared, &closed},
			named{Capabilities{Name: "docker", Strength: Container, Runtimes: []string{"quickjs"}, Unavailable: docker}, &prepared, &closed},
			named{Capabilities{Name: "vm", Strength: Machine, Runtimes: []string{"quickjs"}}, &prepared, &closed},
		}
	}
	gone := core.Errorf(core.KindSandboxUnavailable, "", "no daemon").WithHint("start it")
	for _, test := range []struct {
		standard, asked string
		floor           int
		backends        []Backend
		want            string
	}{
		{Auto, "", 0, backends(nil), "process"},
		{Auto, "", Container, backends(nil), "docker"},
		{Auto, "", Container, backends(gone), "vm"},
		{Auto, "", Machine, backends(nil), "vm"},
		{Auto, "vm", 0, backends(nil), "vm"},
		{Auto, "process", Container, backends(nil), "the program needs the docker sandbox, or a stronger one, to run quickjs, because it may burn"},
		{Auto, "", Container, backends(gone)[:2], "the program needs the docker sandbox to run quickjs, because it may burn"},
		{Auto, "", Machine, backends(nil)[:2], "the program needs a stronger sandbox to run quickjs, because it may burn"},
		{"docker", "process", 0, backends(nil), "the settings require sandboxMode: docker, but the process sandbox is weaker"},
		{"docker", "vm", 0, backends(nil), "vm"},
		{"docker", "auto", 0, backends(nil), "docker"},
		{Auto, "", Container, nil, "the program needs a stronger sandbox to run quickjs, because it may burn"},
		{Auto, "", 0, nil, "no sandbox on this machine can run quickjs"},
	} {
		prepared = ""
		_, err := NewChooser(test.standard, test.backends...).Prepare(t.Context(), test.asked, SandboxSpec{Runtime: "quickjs", Floor: MinimumStrength{test.floor, "it may burn"}})
		got := prepared
		if err != nil {
			got = core.AsError(err).Message
		}
		if got != test.want {
			t.Errorf("%s, %s, %d: got %q, want %q", test.standard, test.asked, test.floor, got, test.want)
		}
	}
}

// TestProxied checks that a program that needs a proxy gets a backend with proxy support, or an error.
func TestProxied(t *testing.T) {
	var prepared string
	var closed int
	plain := named{Capabilities{Name: "docker", Strength: Container, Runtimes: []string{"python"}}, &prepared, &closed}
	proxying := named{Capabilities{Name: "process", Strength: Process, Runtimes: []string{"python"}, Proxies: true}, &prepared, &closed}
	for _, test := range []struct {
		standard, name string
		floor          int
		want           string
	}{
		{"process", "", 0, "process"},
		{"process", "docker", 0, "in the docker sandbox, python has no network"},
		{Auto, "", 0, "process"},
		{Auto, "", Container, "in the docker sandbox, python has no network"},
	} {
		prepared = ""
		c := NewChooser(test.standard, proxying, plain)
		_, err := c.Prepare(t.Context(), test.name, SandboxSpec{Runtime: "python", Proxied: true, Floor: MinimumStrength{test.floor, "its risk is high"}})
		if got := prepared; err == nil && got != test.want || err != nil && (!strings.Contains(err.Error(), test.want) || !strings.Contains(core.AsError(err).Hint, "TypeScript") || prepared != "") {
			t.Errorf("%+v: %v %q", test, err, got)
		}
	}
}

// started implements both Sandbox and CommandStarter, for tests of programs that start commands.
type started struct{ Sandbox }

func (started) Start(context.Context, HostCommand) (CommandResult, error) {
	return CommandResult{Code: 5}, nil
}

func TestOnlySomeSandboxesStartCommands(t *testing.T) {
	if ended, err := (labelledSandbox{started{}, BackendKind{Name: "process"}, ""}).Start(t.Context(), HostCommand{}); err != nil || ended.Code != 5 {
		t.Error(ended, err)
	}
	_, err := (labelledSandbox{struct{ Sandbox }{}, BackendKind{Name: "vm"}, ""}).Start(t.Context(), HostCommand{})
	if e := core.AsError(err); e == nil || e.Kind != core.KindSandboxUnavailable || !strings.Contains(e.Message, "the vm sandbox") || !strings.Contains(e.Hint, "the sandboxes of Linux") {
		t.Error(err)
	}
}
