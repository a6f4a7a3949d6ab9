package sandbox

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"retort/internal/core"
)

// Auto is the name that makes a BackendChooser select the weakest backend that is strong enough for the program.
const Auto = "auto"

// Process and the following constants are the strengths of backends. Each is named after what separates a program from
// the host. On systems whose kernel cannot confine a process well, the actual strength of a process sandbox is lower
// than Process.
const (
	Process    = 50 // the program runs in a process that the kernel confines
	Container  = 60 // the program runs in its own container
	UserKernel = 75 // the program runs on its own user-space kernel
	Machine    = 90 // the program runs in its own virtual machine
)

// MinimumStrength states how strong a program's sandbox must be at least, and why. The zero value requires nothing.
type MinimumStrength struct {
	Strength int
	Why      string // reason in words, such as "its risk is high (62): it can call …"
}

// BackendChooser creates sandboxes with one of several backends. It uses the requested backend or returns an error.
// It never falls back to a weaker one.
type BackendChooser struct {
	standard string
	backends []Backend
}

// NewChooser returns a BackendChooser for the backends, which must be in ascending order of strength. The argument
// standard names the backend that is used if a request names none. It may also be Auto.
func NewChooser(standard string, backends ...Backend) *BackendChooser {
	return &BackendChooser{standard: standard, backends: backends}
}

// Capabilities returns the capabilities of every backend, available or not.
func (c *BackendChooser) Capabilities() []Capabilities { return askCapabilities(c.backends) }

// askCapabilities returns the capabilities of all backends. It queries them in parallel, because some start a
// container to answer.
func askCapabilities(backends []Backend) []Capabilities {
	all := make([]Capabilities, len(backends))
	var asked sync.WaitGroup
	for i, b := range backends { // some of which find out by starting a container
		asked.Go(func() { all[i] = b.Capabilities() })
	}
	asked.Wait()
	return all
}

// Prepare creates a sandbox with the named backend; an empty name means the standard backend. A request may name a
// backend that is stronger than the standard, but not a weaker one. The error is a *core.Error of kind
// sandbox_unavailable if the backend does not exist, is unavailable, lacks the runtime or is weaker than s.Floor.
func (c *BackendChooser) Prepare(ctx context.Context, backend string, s SandboxSpec) (Sandbox, error) {
	chosen, refusal := c.chooseBackend(backend, s)
	if refusal != nil {
		return nil, refusal
	}
	sandbox, err := chosen.Prepare(ctx, s)
	if err != nil {
		return nil, err
	}
	return labelledSandbox{sandbox, chosen.Kind(), IsolationName(chosen.Capabilities().Strength)}, nil
}

// labelledSandbox wraps a sandbox and adds the name of the sandbox's isolation strength to its reports.
type labelledSandbox struct {
	Sandbox
	kind      BackendKind
	isolation string
}

func (l labelledSandbox) Run(ctx context.Context, p core.CheckedProgram, h ToolHost) (RunReport, error) {
	r, err := l.Sandbox.Run(ctx, p, h)
	r.Isolation = l.isolation
	return r, err
}

// IsolationName returns the name of an isolation strength, such as "machine", "container" or "weak process".
func IsolationName(strength int) string {
	switch {
	case strength >= Machine:
		return "machine"
	case strength >= UserKernel:
		return "kernel"
	case strength >= Container:
		return "container"
	case strength >= Process:
		return "process"
	}
	return "weak process"
}

// CheckAvailable returns the error that Prepare would return, or nil. It creates no sandbox, so it cannot detect
// errors that occur while a sandbox is created.
func (c *BackendChooser) CheckAvailable(backend string, s SandboxSpec) *core.Error {
	_, refusal := c.chooseBackend(backend, s)
	return refusal
}

func (c *BackendChooser) chooseBackend(name string, s SandboxSpec) (Backend, *core.Error) {
	if name == "" || name == Auto {
		name = c.standard
	}
	if name == Auto {
		return c.weakestBackend(s)
	}
	b, standard := c.findBackend(name), c.findBackend(c.standard)
	if b != nil && standard != nil && b.Kind().Strength < standard.Kind().Strength {
		return nil, core.Errorf(
			core.KindSandboxUnavailable, "isolate.choose", "the settings require sandboxMode: %s, but the %s sandbox is weaker",
			c.standard, name,
		).
			WithHint("leave out the sandbox; only the settings can choose a weaker one")
	}
	if b == nil {
		return nil, core.Errorf(core.KindSandboxUnavailable, "isolate.choose", "this machine has no %s sandbox", name).
			WithHint("%s", c.describeAlternatives(s.Runtime))
	}
	if refusal := c.checkBackend(b, s); refusal != nil {
		return nil, refusal
	}
	return b, nil
}

// findBackend returns the backend with the given name, or nil.
func (c *BackendChooser) findBackend(name string) Backend {
	for _, b := range c.backends {
		if b.Kind().Name == name {
			return b
		}
	}
	return nil
}

// checkBackend returns the reason why a backend cannot create the sandbox that s describes, or nil if it can.
func (c *BackendChooser) checkBackend(b Backend, s SandboxSpec) *core.Error {
	have := b.Capabilities()
	switch {
	case have.Unavailable != nil:
		return have.Unavailable
	case have.missingRuntimeError(s.Runtime) != nil:
		return have.missingRuntimeError(s.Runtime)
	case !slices.Contains(have.Runtimes, s.Runtime):
		return core.Errorf(core.KindSandboxUnavailable, "isolate.choose", "%s cannot run %s", b.Kind().Title(), s.Runtime).
			WithHint("%s", c.describeAlternatives(s.Runtime))
	case have.Strength < s.Floor.Strength:
		return c.tooWeak(s)
	case s.Proxied && !have.Proxies:
		return c.noProxyError(b, s)
	}
	return nil
}

// weakestBackend returns the weakest backend that satisfies s. It queries the backends in ascending order of strength
// and stops at the backend that it returns, because some start a sandbox to find out their capabilities.
func (c *BackendChooser) weakestBackend(s SandboxSpec) (Backend, *core.Error) {
	var closed Backend
	for _, b := range c.backends {
		have := b.Capabilities()
		switch {
		case !have.supportsSpec(s):
		case s.Proxied && !have.Proxies:
			closed = b
		default:
			return b, nil
		}
	}
	if closed != nil {
		return nil, c.noProxyError(closed, s)
	}
	return nil, c.tooWeak(s)
}

// noProxyError returns the error for a program that needs network access, if the backend b offers none for the
// program's runtime.
func (c *BackendChooser) noProxyError(b Backend, s SandboxSpec) *core.Error {
	e := core.Errorf(
		core.KindSandboxUnavailable, "isolate.choose", "the program uses the network, but in %s, %s has no network",
		b.Kind().Title(), s.Runtime,
	)
	const other = "write it in TypeScript, where fetch can reach the allowed domains from every sandbox, or look for a tool with search_tools"
	if s.Floor.Strength > Process {
		return e.WithHint("%s; it needs such a strong sandbox, because %s", other, s.Floor.Why)
	}
	for _, have := range c.Capabilities() {
		if have.Proxies && have.supportsSpec(s) {
			return e.WithHint("%s; or use sandboxMode: %s, where it has network access", other, have.Name)
		}
	}
	return e.WithHint("%s", other)
}

func (c Capabilities) supportsSpec(s SandboxSpec) bool {
	return c.Unavailable == nil && slices.Contains(c.Runtimes, s.Runtime) && c.Strength >= s.Floor.Strength
}

// tooWeak returns the error for a program that needs a stronger backend than any that is available.
func (c *BackendChooser) tooWeak(s SandboxSpec) *core.Error {
	if s.Floor.Strength <= Process {
		return core.Errorf(
			core.KindSandboxUnavailable, "isolate.choose", "no sandbox on this machine can run %s", s.Runtime,
		).WithHint("%s", c.describeAlternatives(s.Runtime))
	}
	strong := slices.DeleteFunc(slices.Clone(c.backends), func(b Backend) bool { return b.Kind().Strength < s.Floor.Strength })
	e := core.Errorf(
		core.KindSandboxUnavailable, "isolate.choose", "the program needs %s to run %s, because %s", describeNeed(strong), s.Runtime, s.Floor.Why,
	)
	for i, have := range askCapabilities(strong) {
		if have.Unavailable != nil {
			return e.WithHint("%s: %s. %s", strong[i].Kind().Name, have.Unavailable.Message, have.Unavailable.Hint)
		}
	}
	return e.WithHint("this machine does not have it: the user can set it up (see retort doctor) or choose another sandboxMode")
}

// describeNeed returns a text for error messages that says which backend a program needs. Its argument lists the
// backends that are strong enough, weakest first. The text is the title of the weakest of them, and adds "or a
// stronger one" if there are several.
func describeNeed(strong []Backend) string {
	switch len(strong) {
	case 0:
		return "a stronger sandbox"
	case 1:
		return strong[0].Kind().Title()
	}
	return strong[0].Kind().Title() + ", or a stronger one,"
}

// describeAlternatives returns a hint that lists the backends that can run the given runtime. If no other backend can,
// the hint lists the available backends with the runtimes that they can run.
func (c *BackendChooser) describeAlternatives(runtime string) string {
	var able, others []string
	for _, have := range c.Capabilities() {
		switch {
		case have.Unavailable != nil:
		case slices.Contains(have.Runtimes, runtime):
			able = append(able, have.Name)
		default:
			others = append(others, have.Name+" ("+strings.Join(have.Runtimes, ", ")+")")
		}
	}
	switch {
	case len(able) > 0:
		return "this machine can run " + runtime + " in: " + strings.Join(able, ", ") + "; use one of these, or leave out the sandbox"
	case len(others) > 0:
		return "this machine has: " + strings.Join(others, ", ")
	}
	return "this machine has no sandbox; run `retort doctor` to see why"
}

// Close closes every backend.
func (c *BackendChooser) Close() error {
	var err error
	for _, b := range c.backends {
		err = errors.Join(err, b.Close())
	}
	return err
}

// missingRuntimeError returns the recorded reason why the backend cannot run the given runtime, or nil if none is
// recorded.
func (c Capabilities) missingRuntimeError(runtime string) *core.Error {
	for _, m := range c.Missing {
		if m.Runtime == runtime {
			return m.Why
		}
	}
	return nil
}
