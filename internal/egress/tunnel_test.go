package egress

import (
	"strings"
	"testing"
)

// TestRequestsInTunnel holds that clients which open tunnels for http, too, get their answers.
func TestRequestsInTunnel(t *testing.T) {
	w := newWorld(t, nil)
	answer := w.proxy(t, "CONNECT plain.example.com:80 HTTP/1.1\r\nHost: plain.example.com:80\r\n\r\nGET /a HTTP/1.1\r\nHost: plain.example.com\r\n\r\nGET /b HTTP/1.1\r\nHost: plain.example.com\r\nConnection: close\r\n\r\n")
	if !strings.HasPrefix(answer, established) || !strings.Contains(answer, "GET plain.example.com /a") || !strings.Contains(answer, "GET plain.example.com /b") || w.refusedNotes() != 0 {
		t.Error(answer, w.notes)
	}
	answer = w.proxy(t, "CONNECT key.example.com:80 HTTP/1.1\r\n\r\nGET /echo HTTP/1.1\r\nHost: key.example.com\r\n\r\n")
	if !strings.Contains(answer, "[SECRET]") || w.seen[len(w.seen)-1].TLS == nil {
		t.Error(answer)
	}
}
