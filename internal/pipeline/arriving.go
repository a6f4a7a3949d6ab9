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

// arrivingHost implements sandbox.ToolHost for a program that may name tools of servers which are still starting.
// When the program first calls an unknown tool, arrivingHost waits for these servers.
type arrivingHost struct {
	*programExecution
	once sync.Once

	mu   sync.Mutex
	host sandbox.ToolHost
}

func (a *arrivingHost) currentHost() sandbox.ToolHost {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.host
}

// Call implements sandbox.ToolHost.
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

// awaitServers waits for servers that have not listed their tools yet. Afterwards the program can call the tools of
// these servers, too. These calls count towards the same budget as the program's earlier calls.
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

// noSuch returns a regular expression that matches a checker's message "there is no server" or "there is no tool",
// and captures the quoted name after it.
var noSuch = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`there is no (?:server|tool) ("(?:[^"\\]|\\.)*")`)
})

// explainUnknown adds an explanation to an error about a tool or name that is unknown. If the name belongs to a
// configured server whose tools could not be listed, the explanation says why.
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

// explainedNames returns the error e about unknown names. If one of the names is that of a server that is down, the
// returned error explains that.
func (p *Pipeline) explainedNames(e *core.Error, names []string) *core.Error {
	for _, name := range names {
		if server, why := p.Tools.FindDown(name); why != nil && foldName(name) == foldName(server) {
			return serverDownError(e, server, why)
		}
	}
	return e
}

// foldName returns a name in lower case without punctuation, so that different spellings of a name become equal.
func foldName(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// serverDownError returns a copy of e that says that a server's tools are unknown, and why.
func serverDownError(e *core.Error, server string, why *core.Error) *core.Error {
	c := *e
	said, between := strings.TrimSuffix(e.Message, "."), ": "
	if strings.Contains(said, "\n") {
		between = "\n" // it speaks of several things
	}
	c.Kind, c.Message = core.KindToolNotFound, fmt.Sprintf(
		"%s%sthe server %s is configured, but its tools could not be listed: %s", said, between, server, why.Message,
	)
	if c.Hint = why.Hint; c.Hint == "" {
		c.Hint = "run retort doctor to see what is wrong with it; try again when it runs"
	}
	return &c
}
