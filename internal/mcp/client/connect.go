package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/core"
)

// transportStdio and the following constants name the transports to a server.
const (
	transportStdio = "stdio"
	transportHTTP  = "http"
	transportSSE   = "sse"
	transportDial  = "dial"
)

const (
	// protocolLegacy is the newest protocol version with a handshake. Servers of older versions answer the handshake
	// with their own version.
	protocolLegacy = "2025-11-25"
	// protocolModern is the first protocol version without a handshake.
	protocolModern = "2026-07-28"

	maxAttempts = 5
)

// protocolEra holds a transport and a protocol version with which the client tries to connect to a server. If
// protocol is empty, the client must find out the version: it tries server/discover first, and then initialize.
type protocolEra struct {
	transport string
	protocol  string
	probe     time.Duration // timeout for server/discover
}

func firstEra(spec ServerSpec) protocolEra {
	e := protocolEra{transport: spec.Transport, probe: spec.probe}
	switch {
	case e.transport != "":
	case spec.Dial != nil:
		e.transport = transportDial
	case spec.URL != "":
		e.transport = transportHTTP
	default:
		e.transport = transportStdio
	}
	if e.transport == transportSSE {
		e.protocol = protocolLegacy // the transport is older than the probe
	}
	return e
}

// connector establishes sessions with one server.
type connector struct {
	spec     ServerSpec
	opts     Options
	rubbish  *strayOutput
	stderr   io.Writer
	changed  func()
	news     func(method string, params json.RawMessage)
	level    func() string
	bindings *headerBindings
	tasks    *taskTools
	spool    *spoolDir
}

func (c *connector) newAccount() memoryAccount { return memoryAccount{c.opts.Memory, c.spec.Name} }

// connectServer establishes a session. It first tries the transport and protocol version in e. If the server refuses
// these, it tries others that the refusal suggests. The session stores what was successful.
func (c *connector) connectServer(ctx context.Context, e protocolEra) (*serverSession, *core.Error) {
	var first *core.Error
	for range maxAttempts {
		s, next, err := c.tryEra(ctx, e)
		if err == nil {
			return s, nil
		}
		if first == nil || next == nil && e.transport != transportSSE {
			first = err // of an SSE attempt, why it was made says more
		}
		if next == nil || ctx.Err() != nil {
			return nil, first
		}
		e = *next
	}
	return nil, first
}

// tryEra tries to connect with the transport and the protocol version of one protocolEra. If it fails, it may return
// another protocolEra to try.
func (c *connector) tryEra(ctx context.Context, e protocolEra) (*serverSession, *protocolEra, *core.Error) {
	w, pid, err := c.openWire(ctx, e)
	if err != nil {
		return nil, nil, err
	}
	l := newLink(w, c.rubbish, e.probe, c.changed)
	l.client, l.news, l.account = c.spec.Client, c.news, c.newAccount()
	self := &mcp.Implementation{Name: "retort", Version: c.opts.ClientVersion}
	client := mcp.NewClient(self, &mcp.ClientOptions{
		Capabilities:               c.spec.Client.toCapabilities(),
		MultiRoundTrip:             &mcp.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) {}, // has the SDK subscribe; the link listens
		PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) {},
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) {},
	})
	cs, cause := client.Connect(ctx, l, &mcp.ClientSessionOptions{ProtocolVersion: e.protocol})
	if cause == nil {
		e.protocol = cs.InitializeResult().ProtocolVersion
		if e.protocol >= protocolModern {
			e.probe = c.spec.ConnectTimeout // next time there is no doubt
		}
		s := &serverSession{
			sdk: cs, link: l, era: e, meta: requestMeta(self, e.protocol, nil, ""), pid: pid, client: c.spec.Client,
			self: self, level: c.level, sharedStream: c.spec.URL != "", streams: map[string]context.CancelFunc{},
			listed: newListed(),
		}
		s.setLevel(c.level())
		l.awaitSubscription(ctx)
		return s, nil, nil
	}
	next := c.nextEra(e, l, cause)
	l.failAll(errClosed())
	w.close()
	return nil, next, errConnect(ctx, cause)
}

func (c *connector) openWire(ctx context.Context, e protocolEra) (messageWire, int, *core.Error) {
	switch e.transport {
	case transportStdio:
		return startStdio(c.spec, c.opts.Processes, c.stderr, c.newAccount(), c.spool)
	case transportDial:
		w, err := startDial(ctx, c.spec, c.newAccount(), c.spool)
		return w, 0, err
	case transportHTTP:
		w, err := startHTTP(c.spec, c.bindings, c.newAccount(), c.spool)
		return w, 0, err
	case transportSSE:
		w, err := startSSE(ctx, c.spec, c.newAccount(), c.spool)
		return w, 0, err
	}
	return nil, 0, core.Errorf(core.KindInternal, "upstream.connect", "unknown transport %q", e.transport)
}

// nextEra returns another protocol era to try after a failed attempt, or nil.
func (c *connector) nextEra(e protocolEra, l *serverLink, cause error) *protocolEra {
	probed := e.protocol == "" || e.protocol >= protocolModern
	switch {
	case l.answeredLate():
		e.protocol, e.probe = protocolModern, c.spec.ConnectTimeout
	case probed && l.diedProbing():
		e.protocol = protocolLegacy
	case olderProtocol(e.protocol, cause) != "":
		e.protocol = olderProtocol(e.protocol, cause)
	case e.transport == transportHTTP && refusesStreamable(cause):
		e.transport, e.protocol = transportSSE, protocolLegacy
	default:
		return nil
	}
	return &e
}

// olderProtocol returns the protocol version to try after a server has answered the requested version with an error:
// the newest version that is older than the requested one and, if the error lists supported versions, in that list.
// It returns "" if the error is about something else or no version is left.
func olderProtocol(asked string, cause error) string {
	var rpc *jsonrpc.Error
	if !errors.As(cause, &rpc) || !strings.Contains(strings.ToLower(rpc.Message), "version") {
		return ""
	}
	if asked == "" || asked >= protocolModern {
		asked = protocolLegacy
	}
	var data struct {
		Supported []string `json:"supported"`
	}
	_ = unmarshalExact(rpc.Data, &data)
	for _, v := range mcp.SupportedProtocolVersions() {
		if v < asked && (len(data.Supported) == 0 || slices.Contains(data.Supported, v)) {
			return v
		}
	}
	return ""
}

// errConnect converts the failure of a handshake to an error for users.
func errConnect(ctx context.Context, cause error) *core.Error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return core.Errorf(core.KindUpstreamTimeout, "upstream.connect", "the server did not answer while connecting").
			WithHint("start it by hand to see what it waits for; if it is only slow, set a longer connect timeout")
	}
	var known *core.Error
	if errors.As(cause, &known) {
		return known
	}
	return core.Errorf(core.KindUpstreamGone, "upstream.connect", "the server refused to connect: %w", cause)
}

// diedProbing reports whether the connection broke after the request server/discover, with which the client finds out
// the protocol version, and the server has answered nothing. Some servers end when they get any request before
// initialize.
func (l *serverLink) diedProbing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause != nil && l.probing.IsValid() && !l.answered
}

// answeredLate reports whether the server answered server/discover after the link had stopped waiting for it.
func (l *serverLink) answeredLate() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.modern
}
