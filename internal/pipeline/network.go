package pipeline

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"retort/internal/core"
	"retort/internal/egress"
	"retort/internal/pipeline/check"
	"retort/internal/pipeline/relay"
	"retort/internal/sandbox"
)

// connect opens the network for a program that is about to run and returns the Host it runs with. end must be called
// to close what was opened.
func (x *execution) connect() (host sandbox.Host, end func()) {
	network := x.reachable()
	host = &arriving{execution: x, host: x.host}
	if network.Closed() {
		return host, func() {}
	}
	to := egress.Execution{Note: x.attempted, Rehearses: x.rehearses(), InForce: x.reach.network}
	if x.pipeline.Secrets != nil {
		to.Mask = x.pipeline.Secrets.Mask
	}
	x.network = network.Open(to)
	return proxying{host, x.network}, x.network.Close
}

// proxied reports whether a program makes network connections of its own. JavaScript does not: it has fetch, which is
// a call.
func (x *execution) proxied(v *check.Verdict) bool {
	return !x.reachable().Closed() && v.Program.Language == core.Python && v.Risk.Reaches()
}

// attempted records an address that a program tries to reach. If the program knows the host only as a token, the
// value behind it is compared with the blacklist.
func (x *execution) attempted(a egress.Attempt) *core.Error {
	if a.Decision == egress.Refused && !a.Blacklisted && x.screen != nil {
		a.Blacklisted = x.pipeline.Network.Lists(x.screen.Show(a.Host))
	}
	return x.flight.record.attempt(a)
}

// reachable returns the execution's network, or nil if the request wants none.
func (x *execution) reachable() *egress.Network {
	if x.req.AllowNetwork != nil && !*x.req.AllowNetwork {
		return nil
	}
	return x.reach.network()
}

// proxying extends a Host with the other end of a program's connections.
type proxying struct {
	sandbox.Host
	sandbox.Proxy
}

// reaching returns the functions with which a program makes network requests.
func (x *execution) reaching() map[string]relay.Function {
	own := map[string]relay.Function{}
	for _, name := range []string{"fetch", "fetch_abort"} {
		own[name] = func(ctx context.Context, raw json.RawMessage) (any, error) {
			if x.network == nil {
				return nil, x.unreached(raw)
			}
			return x.network.Functions()[name](ctx, raw)
		}
	}
	return own
}

// unreached refuses a network request if no network is open.
func (x *execution) unreached(raw json.RawMessage) *core.Error {
	var r egress.Request
	_ = json.Unmarshal(raw, &r) // an invalid URL has no host
	refused := egress.Off(r.URL)
	_ = x.flight.record.attempt(egress.Attempt{Decision: egress.Refused, Host: egress.HostIn(r.URL), Reason: refused}) // it is refused all the same
	return refused
}

// refusedNetwork adds the refused addresses to the Outcome. A program that uses its language's own client sees only
// that client's error message.
func (x *execution) refusedNetwork(r sandbox.Report) sandbox.Report {
	if x.network == nil {
		return r
	}
	const most = 3
	for i, refused := range x.network.Refusals() {
		if r.Error != nil && strings.Contains(r.Error.Message, egress.Phrase(refused.Message)) {
			if r.Error.Kind == core.KindRuntime {
				e := *r.Error
				e.Kind, e.Hint = refused.Kind, refused.Hint
				r.Error = &e
			}
			continue
		}
		if said := "network: " + refused.Message; i < most && !slices.Contains(r.Warnings, said) {
			r.Warnings = append(r.Warnings, said)
		}
	}
	return r
}

// attempt records an address that a program tries to reach. The entry of an allowed request is on disk before the
// request is sent.
func (r *record) attempt(a egress.Attempt) *core.Error {
	if a.Decision == egress.Refused {
		r.mu.Lock()
		r.unreached++
		n := r.unreached
		r.mu.Unlock()
		if n > maxRefusals {
			return nil
		}
	}
	e := r.event(core.EventNetwork)
	e.Status, e.Duration, e.Bytes = string(a.Decision), a.Took, a.Received
	if r.to == nil {
		return nil
	}
	e.Facts = map[string]any{"host": r.text(clipped(a.Host))}
	for name, value := range map[string]any{"port": a.Port, "protocol": a.Protocol, "sent": int(a.Sent)} {
		if value != 0 && value != "" {
			e.Facts[name] = value
		}
	}
	if a.Blacklisted {
		e.Facts["blacklist"] = true
	}
	if a.Reason != nil {
		e.Facts["error"] = a.Reason.Kind
		e.Body = bodyOf(said{Error: r.text(a.Reason.Message)})
	}
	return r.add(e, a.Decision == egress.Allowed)
}

// clipped returns a host as a program wrote it, shortened for an entry.
func clipped(host string) string {
	const most = 253
	return strings.ToValidUTF8(host[:min(len(host), most)], "")
}
