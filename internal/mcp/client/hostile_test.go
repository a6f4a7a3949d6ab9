//go:build unix

package client

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"retort/internal/base/reaper"
)

// TestMain lets the test binary also run as a hostile server, a reaper, an engine or a conformance client.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "hostile":
			hostile(os.Args[2])
			return
		case "reaper":
			reaper.Serve()
			return
		case "engine":
			engine()
			return
		case "conformance":
			os.Exit(conformanceClient(os.Args[len(os.Args)-1]))
		}
	}
	os.Exit(m.Run())
}

// request represents a message that a test server receives.
type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Cursor    string          `json:"cursor"`
		Protocol  string          `json:"protocolVersion"`
		RequestID json.RawMessage `json:"requestId"`
	} `json:"params"`
}

// scripted is a server of the latest protocol version with a handshake. The map on can hold a function for each
// method, which is called instead of the correct behaviour. If the function returns false, the request is answered
// correctly.
type scripted struct {
	in  *bufio.Scanner
	out io.Writer
	on  map[string]func(s *scripted, r request) bool
}

func newScripted(in io.Reader, out io.Writer) *scripted {
	s := &scripted{in: bufio.NewScanner(in), out: out, on: map[string]func(*scripted, request) bool{}}
	s.in.Buffer(nil, 256<<20)
	return s
}

func (s *scripted) serve() {
	for s.in.Scan() {
		var r request
		if json.Unmarshal(s.in.Bytes(), &r) != nil {
			continue
		}
		if f := s.on[r.Method]; f != nil && f(s, r) {
			continue
		}
		s.proper(r)
	}
}

func (s *scripted) proper(r request) {
	switch {
	case r.ID == nil:
	case r.Method == "initialize":
		s.reply(r, `{"protocolVersion":"%s","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"scripted","version":"0"}}`, min(r.Params.Protocol, "2025-11-25"))
	case r.Method == "tools/list":
		s.reply(r, `{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}`)
	case r.Method == "tools/call":
		s.reply(r, `{"content":[{"type":"text","text":"%s"}]}`, r.Params.Name)
	case r.Method == "ping":
		s.reply(r, `{}`)
	default:
		s.fail(r, -32601, "Method not found")
	}
}

func (s *scripted) reply(r request, format string, args ...any) {
	s.line(`{"jsonrpc":"2.0","id":%s,"result":%s}`, r.ID, fmt.Sprintf(format, args...))
}

func (s *scripted) fail(r request, code int, message string) {
	s.line(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, r.ID, code, message)
}

func (s *scripted) line(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }

// forever blocks until the process is killed.
func forever() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGWINCH) // or else the runtime reports a deadlock
	select {}
}

// hostile runs a server over standard input and output. mode names the way in which the server misbehaves.
func hostile(mode string) {
	s := newScripted(os.Stdin, os.Stdout)
	if prepare := atStart[mode]; prepare != nil {
		prepare(s)
	}
	for method, f := range onMethod[mode] {
		s.on[method] = f
	}
	s.serve()
	for _, f := range atEnd[mode] {
		f()
	}
}

var atStart = map[string]func(s *scripted){
	"hang at start": func(*scripted) { forever() },
	"die at start": func(*scripted) {
		fmt.Fprintln(os.Stderr, "\x1b[31mcannot open the database\x1b[0m")
		os.Exit(3)
	},
	"rubbish": func(s *scripted) {
		fmt.Fprint(s.out, "> starting up\nnpm notice\n\n{\"level\":\"info\"}\n42\nno newline before the first message: ")
	},
	"flood stderr": func(*scripted) { writeLongLine(os.Stderr, 100<<20) },
	"ignore term": func(*scripted) {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	},
	"grandchildren": func(*scripted) { _ = exec.Command("sh", "-c", "sleep 1000 & sleep 1000").Start() },
}

var heard []string // everything that the server of this process was sent, for the mode that repeats it

var atEnd = map[string][]func(){
	"ignore term": {forever},
}

var onMethod = map[string]map[string]func(s *scripted, r request) bool{
	"die on discover": {"server/discover": func(*scripted, request) bool {
		fmt.Fprintln(os.Stderr, "Error: Received request before initialization")
		os.Exit(1)
		return true
	}},
	"mute on discover": {"server/discover": func(*scripted, request) bool { return true }},
	"text on discover": {"server/discover": func(s *scripted, r request) bool {
		s.line("Error: unknown method server/discover")
		return true
	}},
	"error without id": {"server/discover": func(s *scripted, r request) bool {
		s.line(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request"}}`)
		return true
	}},
	"die on initialize": {"initialize": func(*scripted, request) bool { os.Exit(4); return true }},
	"large initialize": {"initialize": func(s *scripted, r request) bool {
		s.reply(r, `{"protocolVersion":"2025-11-25","capabilities":{"experimental":{"a":%s}},"serverInfo":{"name":"scripted","version":"0"}}`, strings.Repeat("[", 900)+strings.Repeat("1,", 4<<20)+"1"+strings.Repeat("]", 900))
		return true
	}},
	"refuse versions": {"initialize": func(s *scripted, r request) bool {
		if r.Params.Protocol > "2025-03-26" {
			s.fail(r, -32602, "Unsupported protocol version")
			return true
		}
		return false
	}},
	"hang in call": {"tools/call": func(*scripted, request) bool { return true }},
	"die in call": {"tools/call": func(s *scripted, r request) bool {
		if r.Params.Name != "die" {
			fmt.Fprintln(os.Stderr, "called", r.Params.Name)
			return r.Params.Name == "hang"
		}
		fmt.Fprintln(os.Stderr, "panic: boom")
		os.Exit(7)
		return true
	}},
	"leave a daemon": {"tools/call": func(_ *scripted, r request) bool {
		if r.Params.Name == "die" {
			os.Exit(5)
		}
		daemon := exec.Command("sleep", "3600") // the pool must not kill it; the test does
		daemon.Env = []string{}
		daemon.Stdout, daemon.Stderr = os.Stdout, os.Stderr
		daemon.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := daemon.Start(); err != nil {
			panic(err)
		}
		fmt.Fprintln(os.Stderr, "daemon", daemon.Process.Pid)
		return true
	}},
	"die loudly": {"tools/call": func(*scripted, request) bool {
		for i := range 20_000 {
			fmt.Fprintf(os.Stderr, "line %d of a long trace\n", i)
		}
		fmt.Fprintln(os.Stderr, "the very last word")
		os.Exit(6)
		return true
	}},
	"count and die": {"tools/call": func(*scripted, request) bool {
		f, err := os.OpenFile(os.Getenv("COUNT_FILE"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		_, _ = f.Write([]byte("x"))
		os.Exit(9)
		return true
	}},
	"300 MB": {"tools/call": func(s *scripted, r request) bool {
		if r.Params.Name != "huge" {
			return false
		}
		fmt.Fprintf(s.out, `{"jsonrpc":"2.0","result":{"content":[{"type":"text","id":99,"text":"`)
		writeLongLine(s.out, 300<<20)
		fmt.Fprintf(s.out, "\"}]},\"id\":%s}\n", r.ID)
		return true
	}},
	"endless line": {"tools/call": func(s *scripted, r request) bool {
		writeLongLine(s.out, 1<<40)
		return true
	}},
	"cursor loop": {"tools/list": func(s *scripted, r request) bool {
		next := map[string]string{"": "a", "a": "b", "b": "a"}[r.Params.Cursor]
		s.reply(r, `{"tools":[],"nextCursor":%q}`, next)
		return true
	}},
	"endless pages": {"tools/list": func(s *scripted, r request) bool {
		s.reply(r, `{"tools":[],"nextCursor":"%sx"}`, r.Params.Cursor)
		return true
	}},
	"endless tools": {"tools/list": func(s *scripted, r request) bool {
		s.reply(r, `{"tools":[%s],"nextCursor":"%sx"}`, strings.TrimSuffix(strings.Repeat(`{"name":"t"},`, 5000), ","), r.Params.Cursor)
		return true
	}},
	"10,000 tools": {"tools/list": func(s *scripted, r request) bool {
		var page bytes.Buffer
		var first int
		fmt.Sscan(r.Params.Cursor, &first)
		for i := range 500 {
			fmt.Fprintf(&page, `{"name":"tool_%d","description":%q,"inputSchema":{"type":"object"}},`, first+i, strings.Repeat("d", 400))
		}
		next := fmt.Sprintf(`,"nextCursor":"%d"`, first+500)
		if first+500 == 10000 {
			next = ""
		}
		s.reply(r, `{"tools":[%s]%s}`, strings.TrimSuffix(page.String(), ","), next)
		return true
	}},
	"no tools": {"tools/list": func(s *scripted, r request) bool { s.fail(r, -32601, "Method not found"); return true }},
	"bad list": {"tools/list": func(s *scripted, r request) bool { s.reply(r, `{"tools":{"a":1}}`); return true }},
	"wrong ids": {"tools/call": func(s *scripted, r request) bool {
		s.line(`{"jsonrpc":"2.0","id":"no such","result":{}}`)
		s.line(`{"jsonrpc":"2.0","id":999999,"result":{}}`)
		s.line(`{"jsonrpc":"2.0","id":-1,"result":{}}`)
		return r.Params.Name == "hang"
	}},
	"duplicates": {"tools/call": func(s *scripted, r request) bool {
		s.proper(r)
		s.proper(r)
		s.proper(r)
		return true
	}},
	"no result": {"tools/call": func(s *scripted, r request) bool {
		s.reply(r, "%s", map[string]string{"null": "null", "string": `"x"`, "list": "[]"}[r.Params.Name])
		return true
	}},
	"input required": {"tools/call": func(s *scripted, r request) bool {
		s.reply(r, `{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{}}},"requestState":"s"}`)
		return true
	}},
	"close stdout": {"tools/call": func(s *scripted, r request) bool {
		_ = os.Stdout.Close()
		forever()
		return true
	}},
	"deaf": {"tools/call": func(s *scripted, r request) bool { forever(); return true }},
	"asks back": {"tools/call": func(s *scripted, r request) bool {
		var answers []string
		for i, method := range []string{"ping", "roots/list", "sampling/createMessage", "elicitation/create", "no/such"} {
			s.line(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{}}`, i+1, method)
			s.in.Scan()
			answers = append(answers, s.in.Text())
		}
		quoted, _ := json.Marshal(strings.Join(answers, "\n"))
		s.reply(r, `{"content":[{"type":"text","text":%s}]}`, quoted)
		return true
	}},
	"asks without end": {"tools/call": func(s *scripted, r request) bool {
		for i := range 20_000 { // and reads no answer
			s.line(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i+1)
		}
		s.proper(r)
		return true
	}},
	"news": {"tools/call": func(s *scripted, r request) bool {
		for range 50 {
			s.line(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
			s.line(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`)
			s.line(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`)
			s.line(`{"jsonrpc":"2.0","method":"notifications/no/such"}`)
		}
		return false
	}},
	"error answers": {"tools/call": func(s *scripted, r request) bool {
		switch r.Params.Name {
		case "params":
			s.fail(r, -32602, "missing argument \"path\"")
		case "internal":
			s.fail(r, -32603, "disk on fire")
		case "url":
			s.fail(r, -32042, "open a page")
		default:
			s.reply(r, `{"content":[{"type":"text","text":"no"}],"isError":true}`)
		}
		return true
	}},
	"tells cancelled": {
		"tools/call": func(s *scripted, r request) bool {
			fmt.Fprintln(os.Stderr, "called", r.Params.Name)
			return r.Params.Name == "hang"
		},
		"notifications/cancelled": func(s *scripted, r request) bool {
			fmt.Fprintf(os.Stderr, "cancelled %s\n", r.Params.RequestID)
			return true
		},
	},
	"environment": {"tools/call": func(s *scripted, r request) bool {
		quoted, _ := json.Marshal(strings.Join(os.Environ(), "\n"))
		s.reply(r, `{"content":[{"type":"text","text":%s}]}`, quoted)
		return true
	}},
	"remembers": {"tools/call": func(s *scripted, r request) bool {
		heard = append(heard, string(r.Params.Arguments))
		quoted, _ := json.Marshal(strings.Join(heard, " "))
		s.reply(r, `{"content":[{"type":"text","text":%s},{"type":"text","text":"%d"}]}`, quoted, os.Getpid())
		return true
	}},
	"batches": {"tools/call": func(s *scripted, r request) bool {
		s.line(`[{"jsonrpc":"2.0","method":"notifications/message","params":{}},{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}]`, r.ID)
		return true
	}},
}

// writeLongLine writes one very long line: n bytes without a newline.
func writeLongLine(w io.Writer, n int64) {
	chunk := bytes.Repeat([]byte("0123456789abcdef"), 4<<10)
	for ; n > 0; n -= int64(len(chunk)) {
		if _, err := w.Write(chunk[:min(n, int64(len(chunk)))]); err != nil {
			return
		}
	}
}
