package deadline

import (
	"context"
	"time"

	"retort/internal/core"
)

// recheck sets how often a Permit is asked for what goes on under it.
const recheck = 500 * time.Millisecond

// WhilePermitted returns a context that ends when the Permit of ctx does, at most recheck later,
// with the reason as its cause. The caller calls stop when it needs the context no longer.
func WhilePermitted(ctx context.Context) (permitted context.Context, stop context.CancelFunc) {
	p := core.PermitOf(ctx)
	permitted, end := context.WithCancelCause(ctx)
	if p.Check != nil {
		go func() {
			every := time.NewTicker(recheck)
			defer every.Stop()
			for permitted.Err() == nil {
				if refused := p.CheckValid(); refused != nil {
					end(refused)
					return
				}
				select {
				case <-permitted.Done():
				case <-every.C:
				}
			}
		}()
	}
	return permitted, func() { end(nil) }
}
