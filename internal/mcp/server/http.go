package server

import (
	"bytes"
	"io"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Stateless is the first protocol version without sessions over HTTP.
const Stateless = multiRoundTrip

// SessionHeader and the following constants are HTTP headers that MCP defines.
const (
	SessionHeader = "Mcp-Session-Id"
	VersionHeader = "Mcp-Protocol-Version"
)

// HTTPHandlers answers the clients of one principal over HTTP. The caller must have checked hosts, origins and
// quotas.
type HTTPHandlers struct {
	server *Server
	// Stateless handles requests of protocol versions without sessions. Sessions handles those of older versions, and
	// Events those of the oldest HTTP transport, HTTP with SSE.
	Stateless, Sessions, Events http.Handler
}

// maxEvents bounds how many bytes of events are kept for clients that lose their connection and resume the stream.
const maxEvents = 4 << 20

// NewHTTPHandlers returns HTTP handlers for the server. The caller must bound the size of request bodies.
func (s *Server) NewHTTPHandlers() *HTTPHandlers {
	served := func(*http.Request) *mcp.Server { return s.mcp }
	events := mcp.NewMemoryEventStore(nil)
	events.SetMaxBytes(maxEvents)
	return &HTTPHandlers{
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

// liftTasks returns a handler that applies liftTask to the body of each request and then calls h. liftTask moves a
// client's request for a task to _meta, because the SDK drops the member anywhere else.
func liftTasks(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.Body != nil {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				http.Error(w, "the body cannot be read: "+err.Error(), http.StatusRequestEntityTooLarge)
				return
			}
			body = liftTask(body)
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		}
		h.ServeHTTP(w, r)
	})
}

// EndSession ends a session after its pending requests are answered. It does not wait.
func (h *HTTPHandlers) EndSession(id string) {
	for session := range h.server.mcp.Sessions() {
		if session.ID() == id {
			go session.Close()
		}
	}
}
