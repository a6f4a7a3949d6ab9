package engine_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
)

// scriptedServer is a server in this process that answers calls and stores the arguments that it receives.
type scriptedServer struct {
	tools  func() string // returns the result of tools/list
	answer func(tool string, arguments json.RawMessage) string

	mu   sync.Mutex
	sent []string // arguments of the calls
}

func (p *scriptedServer) got() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.sent, "\n")
}

func (p *scriptedServer) dial(context.Context) (io.ReadWriteCloser, error) {
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	go func() {
		lines := bufio.NewScanner(toServer)
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			var m struct {
				ID     json.RawMessage
				Method string
				Params struct {
					Name      string
					Arguments json.RawMessage
				}
			}
			if json.Unmarshal(lines.Bytes(), &m) != nil || m.ID == nil {
				continue
			}
			result := "{}"
			switch m.Method {
			case "initialize":
				result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"party","version":"1"}}`
			case "tools/list":
				result = `{"tools":[` + p.tools() + `]}`
			case "tools/call":
				p.mu.Lock()
				p.sent = append(p.sent, string(m.Params.Arguments))
				p.mu.Unlock()
				result = p.answer(m.Params.Name, m.Params.Arguments)
			}
			fmt.Fprintf(fromServer, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result)
		}
	}()
	return duplex{toClient, fromClient}, nil
}

type duplex struct {
	io.ReadCloser
	io.WriteCloser
}

func (d duplex) Close() error {
	_ = d.ReadCloser.Close()
	return d.WriteCloser.Close()
}
