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

// openNetwork opens the network for a program that is about to run, and returns the ToolHost that serves the program.
// The caller must call end to close the network.
func (x *programExecution) openNetwork() (host sandbox.ToolHost, end func()) {
	network := x.allowedNetwork()
	host = &arrivingHost{programExecution: x, host: x.host}
	if network.IsClosed() {
		return host, func() {}
	}
	to := egress.ExecutionHooks{Note: x.noteAttempt, Rehearses: x.isDryRun(), InForce: x.reach.currentNetwork}
	if x.pipeline.Secrets != nil {
		to.Mask = x.pipeline.Secrets.Mask
	}
	x.network = network.Open(to)
	return proxyHost{host, x.network}, x.network.Close
}

// usesProxy reports whether the program's language makes network connections through the proxy. JavaScript does not:
// its fetch is a call to the host.
func (x *programExecution) usesProxy(v *check.Verdict) bool {
	return !x.allowedNetwork().IsClosed() && v.Program.Language == core.Python && v.Risk.UsesNetwork()
}

// noteAttempt records in the audit log that a program tries to reach an address. If the attempt was refused and the
// program used a token in place of the host name, noteAttempt also finds out whether the real host is blacklisted.
func (x *programExecution) noteAttempt(a egress.ConnectionAttempt) *core.Error {
	if a.Decision == egress.Refused && !a.Blacklisted && x.screen != nil {
		a.Blacklisted = x.pipeline.Network.IsBlacklisted(x.screen.ShowText(a.Host))
	}
	return x.recordAttempt(a)
}

// allowedNetwork returns the execution's network, or nil if the request wants none.
func (x *programExecution) allowedNetwork() *egress.Network {
	if x.req.AllowNetwork != nil && !*x.req.AllowNetwork {
		return nil
	}
	return x.reach.currentNetwork()
}

// proxyHost extends a ToolHost with a proxy for the network connections of its program.
type proxyHost struct {
	sandbox.ToolHost
	sandbox.ConnectionProxy
}

// networkFunctions returns the functions through which a program makes network requests.
func (x *programExecution) networkFunctions() map[string]relay.EngineFunction {
	own := map[string]relay.EngineFunction{}
	for _, name := range []string{"fetch", "fetch_abort"} {
		own[name] = func(ctx context.Context, raw json.RawMessage) (any, error) {
			if x.network == nil {
				return nil, x.refuseUnreachable(raw)
			}
			return x.network.HostFunctions()[name](ctx, raw)
		}
	}
	return own
}

// refuseUnreachable refuses a network request of a program without network access and records that in the audit log.
// It returns the error for the program.
func (x *programExecution) refuseUnreachable(raw json.RawMessage) *core.Error {
	var r egress.Request
	_ = json.Unmarshal(raw, &r) // an invalid URL has no host
	refused := egress.NoNetworkError(r.URL)
	_ = x.recordAttempt(egress.ConnectionAttempt{
		Decision: egress.Refused, Host: egress.HostIn(r.URL), Reason: refused,
	}) // it is refused all the same
	return refused
}

// refusedNetwork adds warnings about refused addresses to the report of a program's run. The program itself may have
// seen only an error message of its language's HTTP client.
func (x *programExecution) refusedNetwork(r sandbox.RunReport) sandbox.RunReport {
	if x.network == nil {
		return r
	}
	const most = 3
	for i, refused := range x.network.Refusals() {
		if r.Error != nil && strings.Contains(r.Error.Message, egress.StatusPhrase(refused.Message)) {
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

// recordAttempt records in the audit log that a program tries to reach an address. If the request is allowed, the
// entry is durable before the request is sent.
func (x *execution) recordAttempt(a egress.ConnectionAttempt) *core.Error {
	if a.Decision == egress.Refused {
		x.counts.mu.Lock()
		x.counts.unreached++
		n := x.counts.unreached
		x.counts.mu.Unlock()
		if n > maxRefusals {
			return nil
		}
	}
	e := x.newEvent(core.EventNetwork)
	e.Status, e.Duration, e.Bytes = string(a.Decision), a.Took, a.Received
	if x.pipeline.Recorder == nil {
		return nil
	}
	e.Facts = map[string]any{"host": x.hideText(clipHost(a.Host))}
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
		e.Body = bodyOf(errorBody{Error: x.hideText(a.Reason.Message)})
	}
	return x.recordEvent(e, a.Decision == egress.Allowed)
}

// clipHost shortens a host name from a program to at most 253 bytes of valid UTF-8.
func clipHost(host string) string {
	const most = 253
	return strings.ToValidUTF8(host[:min(len(host), most)], "")
}
