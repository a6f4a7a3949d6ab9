package upstream

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// sdkServer is a good server of the SDK with one tool, whose answer has an
// integer and an order of keys that don't survive decoding.
func sdkServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "good", Version: "1.2.3"}, &mcp.ServerOptions{Instructions: "be kind"})
	s.AddTool(&mcp.Tool{Name: "echo", InputSchema: json.RawMessage(`{"type":"object","zz":9007199254740993,"aa":1}`)},
		func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{StructuredContent: json.RawMessage(`{"z":9007199254740993,"args":` + string(r.Params.Arguments) + `}`)}, nil
		})
	return s
}

// dialSDK serves a server of the SDK over a pipe.
func dialSDK(t *testing.T, s *mcp.Server) func(context.Context) (io.ReadWriteCloser, error) {
	return func(context.Context) (io.ReadWriteCloser, error) {
		ours, theirs := net.Pipe()
		go func() { _ = s.Run(context.Background(), &mcp.IOTransport{Reader: theirs, Writer: theirs}) }()
		return ours, nil
	}
}

func TestDial(t *testing.T) {
	p := New([]Server{{Name: "good", Dial: dialSDK(t, sdkServer())}}, Options{ClientVersion: "1"})
	defer p.Close()
	l, err := p.List(t.Context(), "good")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v %s", l, l.Tools[0])
	r, err := p.Call(t.Context(), "good", "echo", json.RawMessage(`{"b":9007199254740993,"a":1}`))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", r)
	t.Logf("%+v", p.Status("good"))
}
