package mcpserver

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// lines is what a client writes, one message on a line, without what the SDK takes for
// the end of the connection or answers with an error that the protocol does not know.
// Such lines are answered here, and the client goes on.
type lines struct {
	io.Closer
	in    *bufio.Reader
	out   *lineWriter
	rest  []byte // of the line that is being read
	begun bool   // initialize has come: requests need not say their version
}

// maxCancelled is how many calls are remembered that were cancelled and not answered.
const maxCancelled = 1_000

// lineWriter keeps whole messages apart that are written at once, and answers to calls
// that the client has cancelled from it: nobody waits for them.
type lineWriter struct {
	mu sync.Mutex
	io.WriteCloser
	cancelled []string // ids, oldest first
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unwanted(p) {
		return len(p), nil
	}
	return w.WriteCloser.Write(p)
}

func (w *lineWriter) cancel(id json.RawMessage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.cancelled) == maxCancelled {
		w.cancelled = slices.Delete(w.cancelled, 0, 1)
	}
	w.cancelled = append(w.cancelled, idText(id))
}

// unwanted reports whether a message answers a call that was cancelled.
func (w *lineWriter) unwanted(message []byte) bool {
	if len(w.cancelled) == 0 {
		return false
	}
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if json.Unmarshal(message, &m) != nil || m.ID == nil || m.Method != "" {
		return false
	}
	i := slices.Index(w.cancelled, idText(m.ID))
	if i < 0 {
		return false
	}
	w.cancelled = slices.Delete(w.cancelled, i, i+1)
	return true
}

// idText is an id as it can be compared: the number 1 is not the text "1".
func idText(id json.RawMessage) string {
	var text string
	if json.Unmarshal(id, &text) == nil {
		return "text " + text
	}
	return string(id)
}

func newLines(in io.ReadCloser, out io.WriteCloser) (*lines, *lineWriter) {
	w := &lineWriter{WriteCloser: out}
	return &lines{Closer: in, in: bufio.NewReaderSize(in, 64<<10), out: w}, w
}

// Read is of the lines that the SDK is to see.
func (l *lines) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		line, whole, err := l.next()
		if err != nil && len(line) == 0 {
			return 0, err
		}
		id, refused := json.RawMessage("null"), errTooLong
		if whole {
			id, refused = l.check(line)
		}
		if refused == nil {
			l.rest = append(liftTask(line), '\n')
		} else if err := l.refuse(id, refused); err != nil {
			return 0, err
		}
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// next is the next line that is not empty, without its end. One that is too long is
// read past, and is not whole.
func (l *lines) next() (line []byte, whole bool, err error) {
	whole = true
	for {
		part, err := l.in.ReadSlice('\n')
		if whole = whole && len(line)+len(part) <= maxLine; whole {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		line = bytes.TrimSpace(line)
		if len(line) > 0 || !whole || err != nil {
			return line, whole, err
		}
	}
}

var (
	errTooLong = &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf("a message is larger than %d MB", maxLine>>20)}
	errNoJSON  = &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: "a line is not JSON"}
)

// check says what is wrong with a message, and whose it is; nil lets the SDK see it.
// Every request of the newer protocol says its version and what its client can do.
func (l *lines) check(line []byte) (json.RawMessage, *jsonrpc.Error) {
	null := json.RawMessage("null")
	if !json.Valid(line) {
		return null, errNoJSON
	}
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Meta      map[string]json.RawMessage `json:"_meta"`
			RequestID json.RawMessage            `json:"requestId"`
		} `json:"params"`
	}
	if json.Unmarshal(line, &m) != nil {
		return null, nil // the SDK says what is wrong with its shape
	}
	if m.Method == "notifications/cancelled" && m.Params.RequestID != nil {
		l.out.cancel(m.Params.RequestID)
	}
	if m.Method == "" || m.ID == nil || string(m.ID) == "null" {
		return null, nil
	}
	raw, declared := m.Params.Meta[mcp.MetaKeyProtocolVersion]
	switch {
	case declared:
		return m.ID, l.checkVersion(raw)
	case m.Method == "initialize":
		l.begun = true
	case !l.begun && m.Method != "ping":
		return m.ID, invalidParams("_meta lacks %q; a client of a version before %s begins with initialize", mcp.MetaKeyProtocolVersion, multiRoundTrip)
	}
	return m.ID, nil
}

// checkVersion holds the version that a request declares against those that need no
// initialize.
func (l *lines) checkVersion(raw json.RawMessage) *jsonrpc.Error {
	var version string
	if json.Unmarshal(raw, &version) != nil {
		return invalidParams("_meta has a %q that is not a string", mcp.MetaKeyProtocolVersion)
	}
	supported := mcp.SupportedProtocolVersions()
	known := slices.Contains(supported, version)
	switch {
	case known && (version >= multiRoundTrip || l.begun):
		return nil
	case known:
		return invalidParams("version %s begins with initialize", version)
	}
	data, _ := json.Marshal(mcp.UnsupportedProtocolVersionData{Supported: supported, Requested: version})
	return &jsonrpc.Error{Code: mcp.CodeUnsupportedProtocolVersion, Message: "Unsupported protocol version", Data: data}
}

func invalidParams(format string, args ...any) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}

// refuse answers a message in the SDK's place.
func (l *lines) refuse(id json.RawMessage, why *jsonrpc.Error) error {
	answer, err := json.Marshal(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   *jsonrpc.Error  `json:"error"`
	}{"2.0", id, why})
	if err != nil {
		return err
	}
	_, err = l.out.Write(append(answer, '\n'))
	return err
}
