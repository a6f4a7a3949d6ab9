package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"retort/internal/core"
)

// Terminal styles, as parameters of ANSI escape sequences.
const (
	bold  = "1"
	dim   = "2"
	red   = "31"
	green = "32"
	amber = "33"
)

// styleText adds a terminal style to text if f is a terminal and colors are enabled.
func (a *app) styleText(f *os.File, code, text string) string {
	if a.noColor || os.Getenv("NO_COLOR") != "" || !term.IsTerminal(int(f.Fd())) {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (a *app) printWarning(text string) {
	fmt.Fprintln(a.stderr, a.styleText(a.stderr, amber, "warning:"), text)
}

func (a *app) printError(err error) {
	var e *core.Error
	if !errors.As(err, &e) {
		fmt.Fprintln(a.stderr, a.styleText(a.stderr, red, "error:"), err)
		return
	}
	where := ""
	if e.Line > 0 {
		where = fmt.Sprintf(" (line %d, column %d)", e.Line, e.Column)
	}
	fmt.Fprintf(a.stderr, "%s %s%s\n", a.styleText(a.stderr, red, "error:"), replaceControls(e.Message), where)
	for _, block := range []string{e.Frame, e.Stack} {
		if block != "" {
			fmt.Fprintln(a.stderr, a.styleText(a.stderr, dim, replaceControls(strings.TrimRight(block, "\n"))))
		}
	}
	if e.Hint != "" {
		fmt.Fprintln(a.stderr, a.styleText(a.stderr, amber, "hint:"), replaceControls(e.Hint))
	}
}

// replaceControls replaces characters by which text from servers and programs could control the terminal. These are
// control characters, characters that change the direction of text, and tag characters.
func replaceControls(s string) string {
	return strings.Map(func(r rune) rune {
		turns := 0x202a <= r && r <= 0x202e || 0x2066 <= r && r <= 0x2069 || 0xe0000 <= r && r <= 0xe007f
		if r == '\n' || r == '\t' || r >= 0x20 && r != 0x7f && (r < 0x80 || r > 0x9f) && !turns {
			return r
		}
		return '\uFFFD'
	}, s)
}

// printJSON prints a value as one line of JSON to standard output.
func (a *app) printJSON(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := a.stdout.Write(b.Bytes())
	return err
}

// printOutcome prints an Outcome as text for users or, with --json, as JSON. The returned error has the exit code.
func (a *app) printOutcome(o core.Outcome) error {
	if a.asJSON {
		if err := a.printJSON(o); err != nil {
			return err
		}
		return outcomeCode(o)
	}
	fmt.Fprint(a.stdout, a.escapeForTerminal(a.stdout, o.Output))
	if o.Result != nil {
		fmt.Fprintln(a.stdout, a.escapeForTerminal(a.stdout, prettyResult(o.Result)))
	}
	for _, f := range o.Artifacts {
		if f.Preview != "" {
			fmt.Fprintln(a.stdout, a.escapeForTerminal(a.stdout, f.Preview))
		}
	}
	for i, e := range o.Effects {
		fmt.Fprintf(
			a.stdout, "%d. %s.%s (%s) %s\n   %s\n", i+1, replaceControls(e.Server), replaceControls(e.Tool), e.Effect,
			a.escapeForTerminal(a.stdout, string(e.Arguments)), replaceControls(e.Reason),
		)
	}
	for _, w := range o.Warnings {
		a.printWarning(replaceControls(w))
	}
	for _, f := range o.Artifacts {
		fmt.Fprintf(a.stderr, "%s workspace/%s (%d bytes)\n", a.styleText(a.stderr, bold, "file:"), f.Path, f.Bytes)
	}
	if o.Error != nil {
		a.printError(o.Error)
	}
	fmt.Fprintln(a.stderr, a.styleText(a.stderr, dim, outcomeSummary(o)))
	return outcomeCode(o)
}

// escapeForTerminal replaces control characters in text if f is a terminal. For a file or pipe it returns text
// unchanged.
func (a *app) escapeForTerminal(f *os.File, text string) string {
	if term.IsTerminal(int(f.Fd())) {
		return replaceControls(text)
	}
	return text
}

// prettyResult formats a result for users: a string as plain text, anything else as indented JSON.
func prettyResult(result json.RawMessage) string {
	var text string
	if json.Unmarshal(result, &text) == nil {
		return text
	}
	var b bytes.Buffer
	if json.Indent(&b, result, "", "  ") != nil {
		return string(result)
	}
	return b.String()
}

func outcomeSummary(o core.Outcome) string {
	if o.Status == core.StatusRejected {
		return "rejected · nothing ran"
	}
	status := string(o.Status)
	if o.DryRun {
		status = "dry run: " + status
	}
	parts := []string{status, fmt.Sprintf("%.0f ms", o.Stats.DurationMS)}
	if o.Stats.Runtime != "" {
		parts = append(parts, o.Stats.Sandbox+"/"+o.Stats.Runtime)
	}
	if o.Stats.ToolCalls > 0 {
		parts = append(parts, fmt.Sprintf("%d tool calls", o.Stats.ToolCalls))
	}
	if t := o.Stats.Tokens; t != nil {
		parts = append(parts, fmt.Sprintf("%s tokens returned, %s avoided", groupThousands(t.Returned), groupThousands(t.Avoided)))
	}
	return strings.Join(parts, " · ")
}

func groupThousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func outcomeCode(o core.Outcome) error {
	switch {
	case o.Status == core.StatusOK:
		return nil
	case o.Status == core.StatusDenied, o.Status == core.StatusPendingApproval, o.Error != nil && o.Error.IsDenial():
		return exitError(exitDenied)
	case o.Error != nil && o.Error.Kind == core.KindInternal:
		return exitError(exitInternal)
	case o.Error != nil && o.Error.Kind == core.KindSandboxUnavailable:
		return exitError(exitUsage)
	}
	return exitError(exitFailed)
}

// startProgress shows on standard error that a command is still running if it runs for more than a second. say sets
// the detail that is shown; any goroutine may call it. done stops the display and clears the line.
func (a *app) startProgress(what string) (say func(string), done func()) {
	return a.newProgress(what).start()
}

type progressLine struct {
	app      *app
	what     string
	began    time.Time
	question func() string // if not nil, returns what a person must do so that work can continue, or ""
	end      chan struct{}
	wait     sync.WaitGroup

	mu     sync.Mutex
	detail string
}

func (a *app) newProgress(what string) *progressLine {
	return &progressLine{app: a, what: what, began: time.Now(), end: make(chan struct{})}
}

// start starts to show the line, as described at startProgress.
func (p *progressLine) start() (say func(string), done func()) {
	p.wait.Go(p.showUntilEnd)
	return p.setDetail, sync.OnceFunc(func() { close(p.end); p.wait.Wait() })
}

// text returns the current text of the line.
func (p *progressLine) text() string {
	p.mu.Lock()
	detail := p.detail
	p.mu.Unlock()
	if p.question != nil {
		if asked := p.question(); asked != "" {
			detail = asked
		}
	}
	return fmt.Sprintf("%s… %.0f s %s", p.what, time.Since(p.began).Seconds(), detail)
}

func (p *progressLine) setDetail(detail string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.detail = detail
}

// showUntilEnd shows the progress line until the command ends. On a terminal it redraws the line every 200 ms;
// elsewhere it prints a new line every 10 s.
func (p *progressLine) showUntilEnd() {
	terminal := term.IsTerminal(int(p.app.stderr.Fd()))
	pause := time.Second
	for {
		select {
		case <-p.end:
			if terminal && time.Since(p.began) > time.Second {
				fmt.Fprint(p.app.stderr, "\r\x1b[K")
			}
			return
		case <-time.After(pause):
		}
		if p.app.asking.Load() {
			continue
		}
		line := p.text()
		if terminal {
			fmt.Fprint(p.app.stderr, "\r\x1b[K"+line)
			pause = 200 * time.Millisecond
		} else {
			fmt.Fprintln(p.app.stderr, line)
			pause = 10 * time.Second
		}
	}
}

func (a *app) printWarnings(warnings []string) {
	for _, w := range warnings {
		a.printWarning(replaceControls(w))
	}
}

func (a *app) printIndented(text string) {
	if text == "" {
		return
	}
	for line := range strings.SplitSeq(text, "\n") {
		fmt.Fprintln(a.stdout, a.styleText(a.stdout, dim, "    "+replaceControls(line)))
	}
}

func (a *app) printMark(ok bool, line string) {
	sign := a.styleText(a.stdout, green, "ok ")
	if !ok {
		sign = a.styleText(a.stdout, red, "no ")
	}
	fmt.Fprintln(a.stdout, sign, line)
}

// printAbsent prints why an optional component is unavailable. It also prints how to get the component if that is
// known.
func (a *app) printAbsent(what string, why *core.Error) {
	fmt.Fprintln(a.stdout, a.styleText(a.stdout, dim, " -  "+what+": "+replaceControls(why.Message)))
	if why.Hint != "" {
		fmt.Fprintln(a.stdout, "     ", a.styleText(a.stdout, dim, replaceControls(why.Hint)))
	}
}
