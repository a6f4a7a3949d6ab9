package server

import (
	"bytes"
	"io"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Stateless names the first version of the protocol without sessions over HTTP.
const Stateless = multiRoundTrip

// The headers of the protocol.
const (
	SessionHeader = "Mcp-Session-Id"
	VersionHeader = "Mcp-Protocol-Version"
)

// HTTP answers the clients of one principal over HTTP. Hosts, origins and quotas are checked before.
type HTTP struct {
	server *Server
	// Stateless answers the versions from Stateless on, Sessions those before, and Events
	// the transport that those had in the beginning.
	Stateless, Sessions, Events http.Handler
}

// maxEvents sets how many bytes of events are kept for clients that lost their stream.
const maxEvents = 4 << 20

// HTTP makes handlers for a server. Bodies must be bounded by the caller.
func (s *Server) HTTP() *HTTP {
	served := func(*http.Request) *mcp.Server { return s.mcp }
	events := mcp.NewMemoryEventStore(nil)
	events.SetMaxBytes(maxEvents)
	return &HTTP{
		server: s,
		Stateless: s.checkMirrored(
			mcp.NewStreamableHTTPHandler(served, &mcp.StreamableHTTPOptions{
				Stateless: true, PropagateRequestCancellation: true, DisableLocalhostProtection: true, MaxRequestBodyBytes: -1,
			}),
		),
		Sessions: liftTasks(
			mcp.NewStreamableHTTPHandler(served, &mcp.StreamableHTTPOptions{
				EventStore: events, DisableLocalhostProtection: true, MaxRequestBodyBytes: -1,
			}),
		),
		Events: mcp.NewSSEHandler(served, &mcp.SSEOptions{DisableLocalhostProtection: true, MaxRequestBodyBytes: -1}),
	}
}

// liftTasks returns a handler that sees what clients say of tasks; see liftTask.
func liftTasks(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.Body != nil {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				http.Error(w, "the body can't be read: "+err.Error(), http.StatusRequestEntityTooLarge)
				return
			}
			body = liftTask(body)
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		}
		h.ServeHTTP(w, r)
	})
}

// End ends a session once what it is answering has ended. It does not wait.
func (h *HTTP) End(id string) {
	for session := range h.server.mcp.Sessions() {
		if session.ID() == id {
			go session.Close()
		}
	}
}
