// Package modeltest provides a fake model for tests. It is a real HTTP server that implements the API formats of
// OpenAI and Anthropic. A function decides the answers, and can simulate a broken or hostile endpoint.
package modeltest

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"
)

// ScriptedStep describes one answer of the fake model. The zero value answers with an empty text.
type ScriptedStep struct {
	Text    string
	Refuse  string            // text with which the model refuses to answer; "" if it answers
	Status  int               // HTTP status of an error response; 0 for no error
	Header  map[string]string // headers of the response
	Raw     string            // body to send instead of a reply of the model
	Hang    bool              // whether to send nothing
	Endless bool              // whether to send text without an end
	Plain   bool              // whether to send one document instead of a stream
	Broken  bool              // whether to cut the stream off before its end
	Tokens  int               // number of input tokens that streams report; at least 100
}

// ReceivedRequest holds one request that the fake model has received.
type ReceivedRequest struct {
	Path   string
	Header http.Header
	Body   string
	Last   string // text of the last message
}

// FakeServer represents a fake model behind a real HTTP server.
type FakeServer struct {
	URL string

	server *httptest.Server
	script func(n int, a ReceivedRequest) ScriptedStep
	end    chan struct{}
	mu     sync.Mutex
	asked  []ReceivedRequest
}

// New starts a fake model. For the n-th request, counted from 1, it calls script to get the answer.
func New(script func(n int, a ReceivedRequest) ScriptedStep) *FakeServer {
	s := &FakeServer{script: script, end: make(chan struct{})}
	s.server = httptest.NewServer(http.HandlerFunc(s.handleRequest))
	s.URL = s.server.URL + "/v1"
	return s
}

// Serve runs a fake model on a listener until the listener is closed.
func Serve(l net.Listener, script func(n int, a ReceivedRequest) ScriptedStep) error {
	s := &FakeServer{script: script, end: make(chan struct{})}
	return http.Serve(l, http.HandlerFunc(s.handleRequest))
}

// Close stops the server.
func (s *FakeServer) Close() {
	close(s.end)
	s.server.Close()
}

// Requests returns the requests received so far.
func (s *FakeServer) Requests() []ReceivedRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]ReceivedRequest{}, s.asked...)
}

func (s *FakeServer) handleRequest(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var m struct {
		Messages []struct {
			Content string `json:"content"`
		} `json:"messages"`
	}
	_ = json.Unmarshal(body, &m)
	a := ReceivedRequest{Path: r.URL.Path, Header: r.Header.Clone(), Body: string(body)}
	if n := len(m.Messages); n > 0 {
		a.Last = m.Messages[n-1].Content
	}
	s.mu.Lock()
	s.asked = append(s.asked, a)
	n := len(s.asked)
	s.mu.Unlock()
	s.writeReply(w, r, s.script(n, a))
}

func (s *FakeServer) writeReply(w http.ResponseWriter, r *http.Request, step ScriptedStep) {
	for name, value := range step.Header {
		w.Header().Set(name, value)
	}
	anthropic := strings.HasSuffix(r.URL.Path, "/messages")
	switch {
	case step.Hang:
		select {
		case <-s.end:
		case <-r.Context().Done():
		}
	case step.Status != 0:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(step.Status)
		fmt.Fprintf(w, `{"error":{"type":"e","message":%s}}`, quoteJSON("status "+fmt.Sprint(step.Status)+step.Text))
	case step.Raw != "":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, step.Raw)
	case step.Plain:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, plainReply(step, anthropic))
	default:
		s.streamReply(w, r, step, anthropic)
	}
}

func quoteJSON(s string) string {
	text, _ := json.Marshal(s)
	return string(text)
}

func plainReply(step ScriptedStep, anthropic bool) string {
	if anthropic {
		return fmt.Sprintf(
			`{"type":"message","model":"scripted","content":[{"type":"text","text":%s}],"stop_reason":"end_turn","usage":{"input_tokens":100,"output_tokens":20}}`,
			quoteJSON(step.Text),
		)
	}
	return fmt.Sprintf(
		`{"model":"scripted","choices":[{"message":{"content":%s},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":20}}`,
		quoteJSON(step.Text),
	)
}

// streamReply sends the text in several events.
func (s *FakeServer) streamReply(w http.ResponseWriter, r *http.Request, step ScriptedStep, anthropic bool) {
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(format string, args ...any) bool {
		_, err := fmt.Fprintf(w, "data: "+format+"\n\n", args...)
		w.(http.Flusher).Flush()
		return err == nil && r.Context().Err() == nil
	}
	delta := func(text string) bool {
		if anthropic {
			return send(`{"type":"content_block_delta","delta":{"type":"text_delta","text":%s}}`, quoteJSON(text))
		}
		return send(`{"model":"scripted","choices":[{"delta":{"content":%s}}]}`, quoteJSON(text))
	}
	if anthropic {
		send(`{"type":"message_start","message":{"model":"scripted","usage":{"input_tokens":%d,"output_tokens":1}}}`, max(step.Tokens, 100))
	}
	for step.Endless && delta(strings.Repeat("and so on ", 50)) {
		select {
		case <-s.end:
			return
		case <-time.After(time.Millisecond):
		}
	}
	for text := step.Text; text != ""; {
		n := min(len(text), 40)
		delta(text[:n])
		text = text[n:]
	}
	switch {
	case step.Broken:
	case anthropic && step.Refuse != "":
		delta(step.Refuse)
		send(`{"type":"message_delta","delta":{"stop_reason":"refusal"},"usage":{"output_tokens":20}}`)
	case anthropic:
		send(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":20}}`)
		send(`{"type":"message_stop"}`)
	case step.Refuse != "":
		send(`{"choices":[{"delta":{"refusal":%s}}]}`, quoteJSON(step.Refuse))
		send(`{"choices":[{"delta":{},"finish_reason":"stop"}]}`)
	default:
		send(`{"choices":[{"delta":{},"finish_reason":"stop"}]}`)
		send(`{"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":20}}`, max(step.Tokens, 100))
		send(`[DONE]`)
	}
}
