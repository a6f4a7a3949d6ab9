package pipeline

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"retort/internal/core"
	"retort/internal/sandbox"
)

// arrivingHost implements the Host of a program that may name tools of servers which are still starting. If the program
// names an unknown tool, the Host waits once for such servers.
type arrivingHost struct {
	*execution
	once sync.Once

	mu   sync.Mutex
	host sandbox.Host
}

func (a *arrivingHost) currentHost() sandbox.Host {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.host
}

// Call implements sandbox.Host.
func (a *arrivingHost) Call(ctx context.Context, c core.ToolCall) (core.CallResult, error) {
	result, err := a.currentHost().Call(ctx, c)
	if c.Server != "" || c.Tool != "call" || !missesTool(err) {
		return result, err
	}
	a.once.Do(func() { a.awaitServers(ctx) })
	if result, err = a.currentHost().Call(ctx, c); missesTool(err) {
		err = a.pipeline.explainUnknown(core.AsError(err))
	}
	return result, err
}

// awaitServers waits for servers that have not listed their tools, and lets the program call the tools known then. Its calls
// count together with earlier ones.
func (a *arrivingHost) awaitServers(ctx context.Context) {
	a.pipeline.Tools.WaitForPending(ctx, startTimeout)
	now := a.visibleTools()
	if now == a.tools {
		return
	}
	r := a.relayExecution(now)
	r.Tally = a.tally
	host, _ := a.pipeline.Relay.Open(r)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.host = host
}

func missesTool(err error) bool {
	var missing *core.NoTool
	return errors.As(err, &missing)
}

// noSuch extracts the unknown name from a checker's error.
var noSuch = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`there is no (?:server|tool) ("(?:[^"\\]|\\.)*")`)
})

// explainUnknown explains an error about an unknown tool or name. If the name belongs to a configured server, the error
// says why its tools are unknown.
func (p *Pipeline) explainUnknown(e *core.Error) *core.Error {
	if e == nil {
		return e
	}
	var unknown *core.UnknownNames
	if errors.As(e, &unknown) {
		return p.explainedNames(e, unknown.Names)
	}
	if e.Kind != core.KindToolNotFound {
		return e
	}
	var missing *core.NoTool
	var name string
	if errors.As(e, &missing) {
		name = missing.Name
	} else if m := noSuch().FindStringSubmatch(e.Message); m != nil {
		name, _ = strconv.Unquote(m[1])
	}
	server, why := p.Tools.FindDown(name)
	if why == nil {
		return e
	}
	return serverDownError(e, server, why)
}

// explainedNames returns an error about unbound names. If one of them names a server that is down, the error explains
// that.
func (p *Pipeline) explainedNames(e *core.Error, names []string) *core.Error {
	for _, name := range names {
		if server, why := p.Tools.FindDown(name); why != nil && foldName(name) == foldName(server) {
			return serverDownError(e, server, why)
		}
	}
	return e
}

// foldName returns a name without the characters in which its spellings differ.
func foldName(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// serverDownError returns e as an error about a server whose tools are unknown, with the reason why.
func serverDownError(e *core.Error, server string, why *core.Error) *core.Error {
	c := *e
	said, between := strings.TrimSuffix(e.Message, "."), ": "
	if strings.Contains(said, "\n") {
		between = "\n" // it speaks of several things
	}
	c.Kind, c.Message = core.KindToolNotFound, fmt.Sprintf(
		"%s%sthe server %s is configured, but its tools are not known: %s", said, between, server, why.Message,
	)
	if c.Hint = why.Hint; c.Hint == "" {
		c.Hint = "retort doctor says what is wrong with it; try again when it runs"
	}
	return &c
}
