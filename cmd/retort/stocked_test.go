package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
)

// stocked is an MCP server for tests. Its answers come from a file that maps methods to results. It rejects other
// methods as unknown.
//
//	stocked FILE               serves protocol version 2025-06-18 over standard input and output
//	stocked FILE ADDRESS LOG   serves 2026-07-28 over HTTP, and writes the Mcp-… headers of each tool call
//	                           to LOG; it creates LOG when it listens
//
// A result {"many": N} stands for a list of N resources in pages of a thousand. A result {"large": N} stands for a
// resource of N MB.
func stocked() {
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	var stock map[string]json.RawMessage
	if err := json.Unmarshal(text, &stock); err != nil {
		panic(err)
	}
	if len(os.Args) > 2 {
		stockedHTTP(stock, os.Args[2], os.Args[3])
		return
	}
	out := bufio.NewWriter(os.Stdout)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var m stockedRequest
		if json.Unmarshal(lines.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		if m.Method == "initialize" {
			stock["initialize"] = json.RawMessage(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"resources":{},"prompts":{}},"serverInfo":{"name":"stocked","version":"1"}}`)
		}
		m.answer(out, stock)
		_ = out.WriteByte('\n')
		_ = out.Flush()
	}
}

type stockedRequest struct {
	ID     json.RawMessage
	Method string
	Params struct{ Cursor, URI string }
}

func (m stockedRequest) answer(out io.Writer, stock map[string]json.RawMessage) {
	result, known := stock[m.Method]
	var special struct{ Many, Large int }
	_ = json.Unmarshal(result, &special)
	switch {
	case !known:
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, m.ID)
		return
	case special.Large > 0:
		result = json.RawMessage(`{"contents":[{"uri":"test://large","text":"` + strings.Repeat("0123456 ", special.Large<<17) + `"}]}`)
	case special.Many > 0:
		result = manyResources(m.Params.Cursor, special.Many)
	}
	fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, strings.ReplaceAll(string(result), "\n", " "))
}

func manyResources(cursor string, n int) json.RawMessage {
	var from int
	_, _ = fmt.Sscan(cursor, &from)
	var items []string
	for i := from; i < min(from+1000, n); i++ {
		items = append(items, fmt.Sprintf(`{"uri":"test://%d","name":"r%d"}`, i, i))
	}
	next := ""
	if from+1000 < n {
		next = fmt.Sprintf(`,"nextCursor":"%d"`, from+1000)
	}
	return json.RawMessage(`{"resources":[` + strings.Join(items, ",") + `]` + next + `}`)
}

func stockedHTTP(stock map[string]json.RawMessage, address, log string) {
	stock["server/discover"] = json.RawMessage(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"resources":{}},"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"stocked","version":"1"}}}`)
	l, err := net.Listen("tcp", address)
	if err != nil {
		panic(err)
	}
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		panic(err)
	}
	panic(http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m stockedRequest
		if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&m) != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		if m.Method == "tools/call" || m.Method == "resources/read" {
			var said []string
			for name, values := range r.Header {
				if strings.HasPrefix(name, "Mcp-") {
					said = append(said, fmt.Sprintf("%s=%q", name, values))
				}
			}
			slices.Sort(said)
			f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				panic(err)
			}
			fmt.Fprintln(f, strings.Join(said, " "))
			_ = f.Close()
		}
		w.Header().Set("Content-Type", "application/json")
		if m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		if _, known := stock[m.Method]; !known {
			w.WriteHeader(http.StatusNotFound)
		}
		m.answer(w, stock)
	})))
}
