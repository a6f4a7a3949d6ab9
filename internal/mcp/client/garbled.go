package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"retort/internal/core"
)

// refuseText counts a text that is not a valid message. If the text looks like the answer to a pending call, that call
// fails immediately, because no other answer will come. It returns the id of that call, or an invalid id.
func (l *serverLink) refuseText(data []byte) jsonrpc.ID {
	why := "it is not a JSON-RPC 2.0 message"
	switch {
	case tooDeep(data):
		why = fmt.Sprintf("it is nested more than %d deep", maxDepth)
	case bytes.IndexByte(data, 0) >= 0: // what is left of UTF-16 without zeros is ASCII where an id stands
		why, data = "it is not UTF-8", bytes.ReplaceAll(data, []byte{0}, nil)
	}
	if id, ok := l.refuseBatch(data); ok {
		return id
	}
	l.rubbish.noteLine(data)
	var f idFinder
	f.scanBytes(data)
	id, ok := l.awaitedID(f.foundID())
	if !ok || !f.answers || f.asks {
		return jsonrpc.ID{}
	}
	l.failLost(id, errGarbled(why))
	return id
}

// refuseBatch handles a batch that contains invalid messages: it delivers the valid messages one by one and refuses
// the rest.
func (l *serverLink) refuseBatch(data []byte) (id jsonrpc.ID, ok bool) {
	var batch []json.RawMessage
	if firstByte(data) != '[' || tooDeep(data) || json.Unmarshal(data, &batch) != nil || len(batch) == 0 {
		return jsonrpc.ID{}, false
	}
	for _, raw := range batch {
		if msg, ok := decodeOne(raw); ok {
			l.deliverMessage(msg)
		} else if firstByte(raw) == '[' {
			l.rubbish.noteLine(raw)
		} else if lost := l.refuseText(raw); lost.IsValid() {
			id = lost
		}
	}
	return id, true
}

// awaitedID returns the id of the pending call that a message with this id refers to, exactly as the id was sent. A
// message with the string "7" may also refer to the call with the number 7.
func (l *serverLink) awaitedID(id jsonrpc.ID) (jsonrpc.ID, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.pending[id]; ok {
		return id, true
	}
	return l.misspelledID(id)
}

// misspelledID returns the id of a pending call if that id is a number and the argument id is the same number written
// as a string. The caller must hold mu.
func (l *serverLink) misspelledID(id jsonrpc.ID) (jsonrpc.ID, bool) {
	text, ok := id.Raw().(string)
	if !ok {
		return jsonrpc.ID{}, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return jsonrpc.ID{}, false
	}
	meant, err := jsonrpc.MakeID(float64(n))
	_, ok = l.pending[meant]
	return meant, ok && err == nil
}

// errGarbled returns the error of a call whose answer is not a valid message.
func errGarbled(why string) *core.Error {
	return core.Errorf(core.KindToolError, opReceive, "the server's answer to the call cannot be read: %s", why).
		WithHint("report it to the developer of the server")
}
