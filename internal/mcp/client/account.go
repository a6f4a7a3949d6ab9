package client

import (
	"context"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"retort/internal/base/memory"
	"retort/internal/core"
)

// memoryAccount counts the memory that the answers of one server take. The zero value counts nothing.
type memoryAccount struct {
	budget *memory.Budget
	server string
}

// messageMemory counts the memory of a message that is being read.
type messageMemory struct {
	memoryAccount
	held *memory.MemoryHold
	n    int64
}

// reserveBytes reserves memory for a message that has grown to n bytes. It returns false if the memory budget has no
// room for it.
func (c *messageMemory) reserveBytes(n int64) bool {
	if c.budget == nil || n <= memory.Small || n <= c.n {
		return true
	}
	fits := false
	if c.held == nil {
		c.held, fits = c.budget.FreshPool().TryTake(c.server, n)
	} else {
		fits = c.held.TryGrow(n - c.n)
	}
	if fits {
		c.n = n
	}
	return fits
}

// takeOver moves the memory that the argument other has reserved to c. It first releases the memory that c had
// reserved before.
func (c *messageMemory) takeOver(other *messageMemory) {
	c.releaseBytes()
	c.held, c.n = other.held, other.n
	other.held, other.n = nil, 0
}

// releaseBytes releases the memory of a message that is no longer in memory.
func (c *messageMemory) releaseBytes() {
	c.held.Free()
	c.held, c.n = nil, 0
}

// holdAnswer counts the memory of an answer from its arrival until the caller of the tool fetches it.
func (a memoryAccount) holdAnswer(m *jsonrpc.Response) *memory.MemoryHold {
	if n := int64(len(m.Result)); a.budget != nil && n > memory.Small {
		return a.budget.FreshPool().ForceTake(a.server, n)
	}
	return nil
}

// waitForTurn waits until the memory budget allows another large message to be scanned; done must be called after the
// scan. It returns immediately if there is no budget or ctx has ended.
func (a memoryAccount) waitForTurn(ctx context.Context) (done func()) {
	if a.budget == nil {
		return func() {}
	}
	done, err := a.budget.TakeTurn(ctx, a.server)
	if err != nil {
		return func() {}
	}
	return done
}

// reserveForLoad waits until the memory budget has room to load a message of n bytes from disk, and reserves these
// bytes. They do not count as memory that callers have reserved for their calls.
func (a memoryAccount) reserveForLoad(ctx context.Context, n int64) (core.HeldMemory, error) {
	if a.budget == nil {
		return (*memory.MemoryHold)(nil), nil
	}
	return a.budget.ReserveLoad(ctx, a.server, n)
}

// admitAnswer waits until the memory budget has room to convert the answer to the call x, and then loads the answer
// into memory if it is on disk. An answer that is too large for memory as a whole stays on disk.
func (l *serverLink) admitAnswer(ctx context.Context, x *pendingCall) error {
	b, claim := l.account.budget, core.ClaimOf(ctx)
	defer x.unadmittedMemory.Free()
	switch {
	case b == nil:
	case x.spooled != nil:
		if err := b.AdmitPiecewise(ctx, claim, l.account.server); err != nil {
			return errUnadmitted(x.spooled.Bytes, err)
		}
	default:
		n := int64(len(x.result))
		if x.parked != nil {
			n = x.parked.size
		}
		if err := b.AdmitAnswer(ctx, claim, l.account.server, n); err != nil {
			return errUnadmitted(n, err)
		}
	}
	return x.loadFromDisk()
}

// errUnadmittedAnswer marks the error of a call whose answer arrived but was never read, because there was no memory
// for the answer. Callers test for it with errors.Is.
var errUnadmittedAnswer = errors.New("the answer was not admitted")

// errUnadmitted returns the error of a call that ended while its answer waited for memory.
func errUnadmitted(n int64, cause error) *core.Error {
	e := core.Errorf(
		core.KindLimit, "upstream.receive",
		"the server answered with %s, but the call ended before there was memory for it: %w", bytesText(n), cause,
	)
	e.Err = errors.Join(cause, errUnadmittedAnswer)
	return e.WithHint("request less data, or less at once; or raise the setting memory")
}

// loadFromDisk loads the call's answer into memory, if the answer was stored on disk because there was no room for it
// in memory.
func (x *pendingCall) loadFromDisk() error {
	m := x.parked
	if m == nil {
		return nil
	}
	x.parked = nil
	defer m.Close()
	data, err := m.loadMessage()
	if err != nil {
		return core.Errorf(core.KindInternal, "upstream.receive", "the server's answer cannot be read back from disk: %w", err)
	}
	msgs, ok := decodeMessages(data)
	if !ok || len(msgs) != 1 {
		return core.Errorf(core.KindToolError, "upstream.receive", "the server's answer of %s cannot be read", bytesText(m.size))
	}
	resp, ok := msgs[0].(*jsonrpc.Response)
	if !ok {
		return core.Errorf(core.KindToolError, "upstream.receive", "the server's answer of %s cannot be read", bytesText(m.size))
	}
	x.result, x.err = resp.Result, resp.Error
	return nil
}
