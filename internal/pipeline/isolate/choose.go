package isolate

import (
	"context"
	"errors"
	"slices"
	"strings"

	"retort/internal/run"
)

// Auto, as the name of a backend, asks for the strongest that is there.
const Auto = "auto"

// Chooser gives out sandboxes of the backends it knows. It gives the backend
// that was asked for or none: never a weaker one in its place.
type Chooser struct {
	standard string
	backends []Backend
}

// NewChooser knows backends. Standard is the name of the one to use where none
// is asked for.
func NewChooser(standard string, backends ...Backend) *Chooser {
	return &Chooser{standard: standard, backends: backends}
}

// Capabilities are those of every backend known, usable or not.
func (c *Chooser) Capabilities() []Capabilities {
	all := make([]Capabilities, len(c.backends))
	for i, b := range c.backends {
		all[i] = b.Capabilities()
	}
	return all
}

// Prepare makes a sandbox of the backend named; an empty name means the
// standard one. The error is a *run.Error of kind sandbox_unavailable if that
// backend is not there, cannot be used or lacks the runtime.
func (c *Chooser) Prepare(ctx context.Context, backend string, s Spec) (Sandbox, error) {
	if backend == "" {
		backend = c.standard
	}
	chosen, refusal := c.choose(backend, s.Runtime)
	if refusal != nil {
		return nil, refusal
	}
	return chosen.Prepare(ctx, s)
}

func (c *Chooser) choose(name, runtime string) (Backend, *run.Error) {
	if name == Auto {
		return c.strongest(runtime)
	}
	for _, b := range c.backends {
		have := b.Capabilities()
		switch {
		case have.Name != name:
			continue
		case have.Unavailable != nil:
			return nil, have.Unavailable
		case have.why(runtime) != nil:
			return nil, have.why(runtime)
		case !slices.Contains(have.Runtimes, runtime):
			return nil, run.Errorf(run.KindSandboxUnavailable, "isolate.choose", "the %s sandbox cannot run %s", name, runtime).
				WithHint("%s", c.offer(runtime))
		}
		return b, nil
	}
	return nil, run.Errorf(run.KindSandboxUnavailable, "isolate.choose", "there is no %s sandbox here", name).
		WithHint("%s", c.offer(runtime))
}

func (c *Chooser) strongest(runtime string) (Backend, *run.Error) {
	var best Backend
	for _, b := range c.backends {
		have := b.Capabilities()
		if have.Unavailable == nil && slices.Contains(have.Runtimes, runtime) && (best == nil || have.Strength > best.Capabilities().Strength) {
			best = b
		}
	}
	if best == nil {
		return nil, run.Errorf(run.KindSandboxUnavailable, "isolate.choose", "no sandbox here can run %s", runtime).
			WithHint("%s", c.offer(runtime))
	}
	return best, nil
}

// offer says what could be asked for instead.
func (c *Chooser) offer(runtime string) string {
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
		return "this machine can run " + runtime + " in: " + strings.Join(able, ", ") + "; ask for that, or leave the sandbox open"
	case len(others) > 0:
		return "this machine has: " + strings.Join(others, ", ")
	}
	return "this machine has no sandbox; `retort doctor` says why"
}

// Close closes every backend.
func (c *Chooser) Close() error {
	var err error
	for _, b := range c.backends {
		err = errors.Join(err, b.Close())
	}
	return err
}

// why says why a runtime that the backend knows cannot be run.
func (c Capabilities) why(runtime string) *run.Error {
	for _, m := range c.Missing {
		if m.Runtime == runtime {
			return m.Why
		}
	}
	return nil
}
