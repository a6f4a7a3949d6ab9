package deadline

import (
	"context"
	"time"

	"retort/internal/core"
)

// recheckInterval is the interval at which WhilePermitted checks that a running operation is still permitted.
const recheckInterval = 500 * time.Millisecond

// WhilePermitted returns a context that ends when the core.Permit of ctx becomes invalid, at most recheckInterval
// later. Its cause is the reason for that. The caller must call stop when it no longer needs the context.
func WhilePermitted(ctx context.Context) (permitted context.Context, stop context.CancelFunc) {
	p := core.PermitOf(ctx)
	permitted, end := context.WithCancelCause(ctx)
	if p.Check != nil {
		go func() {
			every := time.NewTicker(recheckInterval)
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
