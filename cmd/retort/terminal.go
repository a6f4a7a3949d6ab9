package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"retort/internal/core"
)

// openTerminal opens the controlling terminal of this process, even if standard input and output are redirected. It
// fails if the process has no terminal. For example, a program that an agent has started in the background has none.
func openTerminal() (*os.File, error) { return os.OpenFile("/dev/tty", os.O_RDWR, 0) }

// withTerminalApproval returns a context in which executions ask for approval at the terminal. Without a terminal, it
// returns ctx unchanged.
func (a *app) withTerminalApproval(ctx context.Context) context.Context {
	tty, err := openTerminal()
	if err != nil {
		return ctx
	}
	_ = tty.Close() // opened when somebody is asked
	var one sync.Mutex
	ctx = core.WithPeer(ctx, &core.ClientPeer{ID: "terminal", Pages: true, Ask: a.askPage(&one)})
	return core.WithChannel(core.WithBrowser(ctx, nil), func(ctx context.Context, q core.Approval) (core.ApprovalAnswer, bool) {
		one.Lock()
		defer one.Unlock()
		a.asking.Store(true)
		defer a.asking.Store(false)
		tty, err := openTerminal()
		if err != nil {
			return core.ApprovalAnswer{}, false
		}
		defer tty.Close()
		answer, ok := askAtTerminal(ctx, tty, q)
		answer.By = "terminal"
		return answer, ok
	})
}

// askPage returns a function that asks the user at the terminal to open a web page for a server. The function locks
// one while it asks, so that the terminal shows one question at a time.
func (a *app) askPage(one *sync.Mutex) func(context.Context, core.ServerRequest) (json.RawMessage, *core.Error) {
	return func(ctx context.Context, q core.ServerRequest) (json.RawMessage, *core.Error) {
		one.Lock()
		defer one.Unlock()
		a.asking.Store(true)
		defer a.asking.Store(false)
		nobody := core.Errorf(core.KindPolicy, "approvals", "nobody can be asked: a terminal can show only pages to open")
		tty, err := openTerminal()
		if err != nil || q.Page == "" {
			return nil, nobody
		}
		defer tty.Close()
		var said struct{ Message string }
		_ = json.Unmarshal(q.Params, &said) // what is no text is not shown
		fmt.Fprintf(tty, "\r\x1b[K\n%s wants you to open a page for its tool %s; it is not Retort that asks:\n%s\n\n%s\n",
			replaceControls(q.Server), replaceControls(q.Tool), replaceControls(said.Message), replaceControls(q.Page))
		answer, ok := askChoice(ctx, tty, "y = I opened it · n = no", core.Approval{})
		switch {
		case !ok:
			return nil, nobody
		case answer.Approve:
			return json.RawMessage(`{"action":"accept"}`), nil
		}
		return json.RawMessage(`{"action":"decline"}`), nil
	}
}

// askAtTerminal shows a question, and repeats it until the user has chosen an answer.
func askAtTerminal(ctx context.Context, tty *os.File, q core.Approval) (core.ApprovalAnswer, bool) {
	choices := "y = yes, once · n = no"
	if q.Login != "" {
		choices = "y = I opened it · n = no"
	}
	switch {
	case q.Start:
		choices = "y = yes, these calls · e = ask me about each call · r = yes, and all other calls of these tools in this run · r 40 = at most 40 calls of each · n = no"
		if slices.Contains(q.Scopes(), core.ScopeAlways) {
			choices = strings.Replace(choices, "n = no", "a = always, for arguments with the same names and types · n = no", 1)
		}
	case q.HasScopes():
		choices = "y = yes, once · r = yes, for the rest of this run · r 20 = for at most 20 calls · a = always, for arguments with the same names and types · n = no"
	}
	fmt.Fprintf(tty, "\r\x1b[K\n%s\n", replaceControls(q.RenderText()))
	return askChoice(ctx, tty, choices, q)
}

// askChoice asks until the user has typed one of the choices.
func askChoice(ctx context.Context, tty *os.File, choices string, q core.Approval) (core.ApprovalAnswer, bool) {
	for {
		fmt.Fprintf(tty, "%s\n? ", choices)
		line, err := readLine(ctx, tty)
		if err != nil {
			return core.ApprovalAnswer{}, false
		}
		switch first, rest, _ := strings.Cut(line, " "); {
		case first == "y" || first == "yes":
			return core.ApprovalAnswer{Approve: true}, true
		case first == "e" && slices.Contains(q.Scopes(), core.ScopeEach):
			return core.ApprovalAnswer{Approve: true, Scope: core.ScopeEach}, true
		case first == "r" && slices.Contains(q.Scopes(), core.ScopeRun):
			calls, err := strconv.Atoi(cmp.Or(rest, "0"))
			if err != nil || rest != "" && calls < q.LeastCalls() {
				continue
			}
			return core.ApprovalAnswer{Approve: true, Scope: core.ScopeRun, Calls: calls}, true
		case first == "a" && slices.Contains(q.Scopes(), core.ScopeAlways):
			return core.ApprovalAnswer{Approve: true, Scope: core.ScopeAlways}, true
		case first == "n" || first == "no":
			return core.ApprovalAnswer{Note: rest}, true
		}
	}
}

// readLine reads a line from a terminal, without white space at its ends.
func readLine(ctx context.Context, tty *os.File) (string, error) {
	stop := context.AfterFunc(ctx, func() { _ = tty.SetReadDeadline(time.Now()) })
	defer stop()
	var line []byte
	in := bufio.NewReaderSize(oneByteReader{tty}, 16)
	for {
		b, err := in.ReadByte()
		if err != nil {
			return "", cmp.Or(ctx.Err(), err)
		}
		if b == '\n' {
			return strings.TrimSpace(string(line)), nil
		}
		if len(line) < 4096 {
			line = append(line, b)
		}
	}
}

// oneByteReader reads one byte at a time, so that a later reader gets the input after the line.
type oneByteReader struct{ r io.Reader }

func (o oneByteReader) Read(p []byte) (int, error) { return o.r.Read(p[:min(1, len(p))]) }

// withResumeHint adds a hint to an Outcome that waits for approval. The hint says that the execution ends with this
// command, so that it cannot be resumed later. withResumeHint returns other Outcomes unchanged.
func withResumeHint(o core.Outcome) core.Outcome {
	if o.Status == core.StatusPendingApproval && o.Error != nil {
		o.Error = o.Error.WithHint(
			"the program ended here without the call: run it in a terminal and answer there; or set approval.wait, and answer with retort approvals while it waits",
		)
	}
	return o
}
