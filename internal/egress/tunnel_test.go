package egress

import (
	"strings"
	"testing"
)

// TestRequestsInTunnel checks that a client can send several requests in a tunnel that it has opened for plain http.
func TestRequestsInTunnel(t *testing.T) {
	w := newWorld(t, nil)
	answer := w.proxy(t, "CONNECT plain.example.com:80 HTTP/1.1\r\nHost: plain.example.com:80\r\n\r\nGET /a HTTP/1.1\r\nHost: plain.example.com\r\n\r\nGET /b HTTP/1.1\r\nHost: plain.example.com\r\nConnection: close\r\n\r\n")
	if !strings.HasPrefix(answer, establishedReply) || !strings.Contains(answer, "GET plain.example.com /a") || !strings.Contains(answer, "GET plain.example.com /b") || w.refusedNotes() != 0 {
		t.Error(answer, w.notes)
	}
	answer = w.proxy(t, "CONNECT key.example.com:80 HTTP/1.1\r\n\r\nGET /echo HTTP/1.1\r\nHost: key.example.com\r\n\r\n")
	if !strings.Contains(answer, "[SECRET]") || w.seen[len(w.seen)-1].TLS == nil {
		t.Error(answer)
	}
}

// TestSSHTunnel checks that a tunnel for ssh passes data that begins with the SSH greeting, and refuses other data.
func TestSSHTunnel(t *testing.T) {
	open := "CONNECT raw.example.com:22 HTTP/1.1\r\nHost: raw.example.com:22\r\n\r\n"
	for begins, allowed := range map[string]bool{"SSH-2.0-client\r\n": true, "GET / HTTP/1.1\r\n\r\n": false, "SSX-2.0": false, "\x16\x03\x01": false} {
		w := newWorld(t, func(o *Options, _ *ExecutionHooks) {
			o.Allow = append(o.Allow, Rule{Domain: "raw.example.com", Protocols: []string{ssh}})
		})
		answer := w.proxy(t, open+begins)
		if !strings.HasPrefix(answer, establishedReply) || (w.refusedNotes() == 0) != allowed {
			t.Errorf("%q: %q %v", begins, answer, w.notes)
		}
		if w.notes[0].Protocol != ssh {
			t.Error(w.notes)
		}
	}
	w := newWorld(t, nil)
	if answer := w.proxy(t, open+"SSH-2.0-client\r\n"); strings.HasPrefix(answer, establishedReply) {
		t.Error("a host that allows no ssh:", answer)
	}
}
