package web

import (
	"bytes"
	"hash/maphash"
	"io"
	"net/http"
	"sync"

	"retort/internal/mcp/server"
)

// maxEndedRequests bounds how many requests are remembered after their HTTP request has ended. A client that has closed
// the HTTP request can still cancel what it began.
const maxEndedRequests = 4096

// requestLedger records which requests the sessions of a principal have sent, so that a cancellation reaches only a
// request that was sent before it. The SDK handles cancellations in the background. Without the ledger, a cancellation
// that names an id in advance could cancel the request that later has this id. Requests are stored as hashes of session
// and id. The zero value is ready to use.
type requestLedger struct {
	mu    sync.Mutex
	known map[uint64]int // number of open HTTP requests and of entries in ended for each request
	ended []uint64       // ring buffer of the requests that ended most recently
	next  int            // index of the oldest entry in the ring buffer
}

var requestSeed = maphash.MakeSeed()

func hashRequest(session, request string) uint64 {
	return maphash.String(requestSeed, session+"\x00"+request)
}

// begin adds a request.
func (l *requestLedger) begin(request uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil {
		l.known = map[uint64]int{}
	}
	l.known[request]++
}

// end notes that the HTTP request of a request has ended. The request stays known until many others have ended.
func (l *requestLedger) end(request uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ended) < maxEndedRequests {
		l.ended = append(l.ended, request)
		return
	}
	oldest := l.ended[l.next]
	if l.known[oldest]--; l.known[oldest] <= 0 {
		delete(l.known, oldest)
	}
	l.ended[l.next] = request
	l.next = (l.next + 1) % maxEndedRequests
}

func (l *requestLedger) isKnown(request uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known[request] > 0
}

// admitMessages removes from the body of r the cancellations of requests that have not come yet, and notes the
// requests in it. The caller must call end when r has been answered. If nothing is left of the body, admitMessages has
// answered r and ok is false.
func (l *requestLedger) admitMessages(w http.ResponseWriter, r *http.Request, session string, a server.MessageContent) (end func(), ok bool) {
	var begun []uint64
	var kept [][]byte
	for _, p := range a.Parts {
		if p.Cancels != "" && !l.isKnown(hashRequest(session, p.Cancels)) {
			continue
		}
		if p.Request != "" {
			begun = append(begun, hashRequest(session, p.Request))
			l.begin(begun[len(begun)-1])
		}
		kept = append(kept, p.Text)
	}
	end = func() {
		for _, request := range begun {
			l.end(request)
		}
	}
	switch {
	case len(kept) == len(a.Parts):
		return end, true
	case len(kept) == 0:
		w.WriteHeader(http.StatusAccepted)
		return end, false
	}
	body := append(append([]byte("["), bytes.Join(kept, []byte(","))...), ']')
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return end, true
}
