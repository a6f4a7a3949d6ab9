package typescript

import (
	"bufio"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/microsoft/typescript-go/tsc"

	"retort/internal/pipeline/check/rules"
)

// The compiler cannot be stopped: types that double grow without an end, and so
// does the time and memory that it needs for them. So it works in processes of
// its own, one program at a time each, which end with a program that takes too
// long. A process that has done well checks the next program.

// ProcessStarter starts a process that calls ServeCompiler, and returns the connection to it. Closing the connection
// ends the process at once.
type ProcessStarter func() (io.ReadWriteCloser, error)

const (
	// checkTime bounds how long one program may occupy a compiler process. The compiler's own time limit is shorter,
	// and is normally reached first.
	checkTime = 7 * time.Second
	// idleTime is how long unused processes are kept after several programs were checked at the same time.
	idleTime = 30 * time.Second
	// maxMessage bounds the answer of a compiler process, in bytes.
	maxMessage = 128 << 20
)

// compilerRequest asks a compiler process for one of the two steps of package tsc: parse or check.
type compilerRequest struct {
	Text  string // to be parsed
	Kind  tsc.Kind
	Input *tsc.Input // if it is set, the text parsed last is checked against it
}

// compilerResponse holds the answer to a request, or an error.
type compilerResponse struct {
	Parsed  tsc.Parsed
	Report  rules.RuleReport // with Parsed
	Checked tsc.Checked
	Early   bool // Checked is there with Parsed, for a program that reaches no server
	Fault   string
	Reason  int // index in reasons, +1
	Line    int
}

// knownErrors lists the errors of package tsc that errors.Is still recognises after they were sent from a compiler
// process to the engine.
var knownErrors = []error{tsc.ErrTooLarge, tsc.ErrTooDeep, tsc.ErrUnclear, tsc.ErrTime, tsc.ErrBusy, tsc.ErrInternal}

// compilerFault is an error that occurred in a compiler process. It wraps the error of package tsc that caused it.
type compilerFault struct {
	text   string
	reason error
}

func (f *compilerFault) Error() string { return f.text }
func (f *compilerFault) Unwrap() error { return f.reason }

func (r *compilerResponse) setError(err error) {
	r.Fault = err.Error()
	for i, reason := range knownErrors {
		if errors.Is(err, reason) {
			r.Reason = i + 1
		}
	}
	var refusal *tsc.Refusal
	if errors.As(err, &refusal) {
		r.Line = refusal.Line
	}
}

func (r *compilerResponse) asError() error {
	if r.Fault == "" {
		return nil
	}
	f := &compilerFault{text: r.Fault, reason: tsc.ErrInternal}
	if r.Reason > 0 && r.Reason <= len(knownErrors) {
		f.reason = knownErrors[r.Reason-1]
	}
	if r.Line > 0 {
		f.reason = &tsc.Refusal{Err: f.reason, Line: r.Line}
	}
	return f
}

// compilerPool starts, reuses and ends the compiler processes.
type compilerPool struct {
	start ProcessStarter
	slots chan struct{} // one for each process that is in use

	mu     sync.Mutex
	limit  time.Duration // time limit per program; it applies to processes started from now on
	idle   []*compilerProcess
	made   bool          // a process was started before
	warmed chan struct{} // closed when the process that warm started is ready; nil if it started none
	closed bool
	thin   *time.Timer
}

func newCompilers(start ProcessStarter) *compilerPool {
	c := &compilerPool{start: start, limit: checkTime, slots: make(chan struct{}, max(2, runtime.GOMAXPROCS(0)))}
	c.thin = time.AfterFunc(idleTime, c.keepOne)
	return c
}

// takeProcess returns an idle process, or a new one, for checking one program. The caller must pass it to
// returnProcess.
func (c *compilerPool) takeProcess(ctx context.Context) (*compilerProcess, error) {
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, endedError(ctx, tsc.ErrBusy)
	}
	if warmed := c.warmingDone(); warmed != nil {
		select {
		case <-warmed:
		case <-ctx.Done():
			<-c.slots
			return nil, endedError(ctx, tsc.ErrBusy)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		<-c.slots
		return nil, errClosed
	}
	c.made = true
	if n := len(c.idle); n > 0 {
		p := c.idle[n-1]
		c.idle = c.idle[:n-1]
		return p, nil
	}
	return newProcess(c.start, c.limit), nil
}

// warmingDone returns a channel that is closed when the process that warmProcess has started is ready. It returns nil
// if warmProcess has started none. takeProcess waits for that process instead of starting a second one.
func (c *compilerPool) warmingDone() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.warmed
}

// warmProcess starts a process unless one was started before, and returns when it is ready. The process parses an
// empty program, so that the compiler has loaded the declarations that all programs share.
func (c *compilerPool) warmProcess() {
	p := c.firstProcess()
	if p == nil {
		return
	}
	_, _ = p.parseText(context.Background(), "", tsc.TypeScript) // an error would happen again for the first program, which reports it
	c.returnProcess(p)
	close(c.warmed)
}

// firstProcess returns a new compiler process if there has been none so far. Otherwise it returns nil.
func (c *compilerPool) firstProcess() *compilerProcess {
	c.slots <- struct{}{}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.made {
		<-c.slots
		return nil
	}
	c.made, c.warmed = true, make(chan struct{})
	return newProcess(c.start, c.limit)
}

// returnProcess returns a process to the pool. A process that has failed is ended.
func (c *compilerPool) returnProcess(p *compilerProcess) {
	defer func() { <-c.slots }()
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.broken || c.closed {
		p.closeProcess()
		return
	}
	c.idle = append(c.idle, p)
	c.thin.Reset(idleTime)
}

func (c *compilerPool) keepOne() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.idle) > 1 {
		c.idle[0].closeProcess()
		c.idle = c.idle[1:]
	}
}

// closePool ends the idle processes, and waits until the processes in use were returned and ended.
func (c *compilerPool) closePool() {
	c.mu.Lock()
	c.closed = true
	c.thin.Stop()
	for _, p := range c.idle {
		p.closeProcess()
	}
	c.idle = nil
	c.mu.Unlock()
	for range cap(c.slots) { // no program uses a process any more
		c.slots <- struct{}{}
	}
	for range cap(c.slots) {
		<-c.slots
	}
}

var errClosed = fmt.Errorf("%w: it is closed", tsc.ErrInternal)

// endedError returns the error for a context that has ended: ctx.Err() if it was cancelled, otherwise reason.
func endedError(ctx context.Context, reason error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return reason
}

// compilerProcess is the engine's connection to a process that runs ServeCompiler. Only one goroutine may use it at a
// time.
type compilerProcess struct {
	start  ProcessStarter
	limit  time.Duration
	conn   io.ReadWriteCloser
	in     *gob.Decoder
	bound  *io.LimitedReader
	out    *gob.Encoder
	buffer *bufio.Writer
	broken bool
	early  *tsc.Checked     // of the text that was parsed last
	report rules.RuleReport // of that too
}

func newProcess(start ProcessStarter, limit time.Duration) *compilerProcess {
	return &compilerProcess{start: start, limit: limit}
}

// startProcess starts the process and prepares the connection to it.
func (p *compilerProcess) startProcess() (err error) {
	if p.conn, err = p.start(); err != nil {
		p.broken = true
		return fmt.Errorf("%w: %w", tsc.ErrInternal, err)
	}
	p.bound = &io.LimitedReader{R: bufio.NewReaderSize(p.conn, 64<<10)}
	p.in = gob.NewDecoder(p.bound)
	p.buffer = bufio.NewWriterSize(p.conn, 64<<10)
	p.out = gob.NewEncoder(p.buffer)
	return nil
}

func (p *compilerProcess) closeProcess() {
	if p.conn != nil {
		_ = p.conn.Close()
	}
}

// parseText sends a text to the process to be parsed. If the process has died, for example because the system was out
// of memory, parseText starts another one.
func (p *compilerProcess) parseText(ctx context.Context, text string, kind tsc.Kind) (*tsc.Source, error) {
	reused := p.conn != nil
	answer, err := p.sendRequest(ctx, compilerRequest{Text: text, Kind: kind})
	if reused && errors.Is(err, errGone) && ctx.Err() == nil {
		p.closeProcess()
		*p = *newProcess(p.start, p.limit)
		answer, err = p.sendRequest(ctx, compilerRequest{Text: text, Kind: kind})
	}
	if err != nil {
		return nil, err
	}
	p.early, p.report = nil, answer.Report
	if answer.Early {
		p.early = &answer.Checked
	}
	return answer.Parsed.Source(text), nil
}

// checkSource type-checks the text that was parsed last. bare means that the program uses no servers, skills or
// modules. The process may have checked such a program together with parsing it; then that result is returned.
func (p *compilerProcess) checkSource(ctx context.Context, src *tsc.Source, in tsc.Input, bare bool) (*tsc.Result, error) {
	if bare && p.early != nil {
		return p.early.Result(src)
	}
	answer, err := p.sendRequest(ctx, compilerRequest{Input: &in})
	if errors.Is(err, errGone) {
		return nil, errCrash
	}
	if err != nil {
		return nil, err
	}
	return answer.Checked.Result(src)
}

var (
	errGone  = fmt.Errorf("%w: its process ended", tsc.ErrInternal)
	errCrash = errors.New("the type check exceeded its memory limit")
)

// sendRequest sends a request and waits for the answer. If the answer is missing, or the process may still be working
// on the request, the process is marked as broken.
func (p *compilerProcess) sendRequest(ctx context.Context, r compilerRequest) (*compilerResponse, error) {
	if p.conn == nil {
		if err := p.startProcess(); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	release := context.AfterFunc(ctx, p.closeProcess)
	answer, err := p.exchangeMessages(r)
	inTime := release()
	switch {
	case !inTime:
		p.broken = true
		return nil, endedError(ctx, tsc.ErrTime)
	case err != nil:
		p.broken = true
		return nil, fmt.Errorf("%w: %w", errGone, err)
	}
	err = answer.asError()
	p.broken = errors.Is(err, tsc.ErrTime) || errors.Is(err, tsc.ErrInternal)
	return answer, err
}

func (p *compilerProcess) exchangeMessages(r compilerRequest) (*compilerResponse, error) {
	if err := p.out.Encode(&r); err != nil {
		return nil, err
	}
	if err := p.buffer.Flush(); err != nil {
		return nil, err
	}
	answer := &compilerResponse{}
	p.bound.N = maxMessage
	return answer, p.in.Decode(answer)
}
