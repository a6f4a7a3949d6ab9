package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// fakeUpstream implements an MCP server in this process. It lists given tools and answers every call without
// delay, so that the measured time is that of the engine alone.
type fakeUpstream struct{ tools []json.RawMessage }

// dialPipe opens a connection to the server. Closing it ends the server's side, too.
func (u fakeUpstream) dialPipe(context.Context) (io.ReadWriteCloser, error) {
	client, server := net.Pipe()
	go func() {
		defer server.Close()
		u.serveRequests(server, server)
	}()
	return client, nil
}

// connectSDK connects a client of the MCP SDK to the server.
func (u fakeUpstream) connectSDK(ctx context.Context) (*mcp.ClientSession, error) {
	conn, err := u.dialPipe(ctx)
	if err != nil {
		return nil, err
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	return client.Connect(ctx, &mcp.IOTransport{Reader: conn, Writer: conn}, nil)
}

// serveRequests reads requests from the stream in and writes the answers to the stream out, until in ends or writing
// fails.
func (u fakeUpstream) serveRequests(in io.Reader, out io.Writer) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if json.Unmarshal(lines.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		if _, err := fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,%s}`+"\n", m.ID, u.answerMethod(m.Method)); err != nil {
			return
		}
	}
}

func (u fakeUpstream) answerMethod(method string) string {
	switch method {
	case "initialize":
		return `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"bench","version":"1"}}`
	case "tools/list":
		list, err := json.Marshal(map[string]any{"tools": u.tools})
		if err != nil {
			return `"error":{"code":-32603,"message":"marshal"}`
		}
		return `"result":` + string(list)
	case "tools/call":
		return `"result":{"content":[{"type":"text","text":"{\"ok\":true,\"id\":42}"}]}`
	}
	return `"error":{"code":-32601,"message":"method not found"}`
}

// ServeTools runs an MCP server with n generated tools, which reads from the stream in and writes to the stream
// out. It is for measurements that need a server in a separate process.
func ServeTools(n int, in io.Reader, out io.Writer) {
	u := fakeUpstream{tools: makeDefinitions(n)}
	u.serveRequests(in, out)
}
