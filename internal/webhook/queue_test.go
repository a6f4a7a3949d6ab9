package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

const secret = "a secret of more than 24 bytes"

// Messages arrive signed and in order, those that failed again, and none twice.
func TestQueue(t *testing.T) {
	var mu sync.Mutex
	var arrived []string
	failures := map[string]int{"a": 2, "c": 100, "d": -1}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		id, at := r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp")
		h := hmac.New(sha256.New, []byte(secret))
		fmt.Fprintf(h, "%s.%s.%s", id, at, body)
		if r.Header.Get("webhook-signature") != "v1,"+base64.StdEncoding.EncodeToString(h.Sum(nil)) {
			t.Errorf("not signed: %v", r.Header)
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case failures[id] > 0:
			failures[id]--
			w.WriteHeader(http.StatusBadGateway)
		case failures[id] < 0:
			w.WriteHeader(http.StatusBadRequest)
			failures[id]--
		default:
			arrived = append(arrived, id)
		}
	}))
	defer server.Close()
	to, err := New(server.URL, secret)
	if err != nil {
		t.Fatal(err)
	}
	q := newQueue(to, slog.New(slog.DiscardHandler), time.Millisecond)
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		if !q.Put(id, []byte(`{"of":"`+id+`"}`)) {
			t.Fatal("no room")
		}
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(arrived) != "[a b e]" || failures["c"] != 100-tries || failures["d"] != -2 {
		t.Errorf("%v, %v", arrived, failures)
	}
}

// Whoever puts a message never waits, and nobody waits long for an address that is silent.
func TestQueueNeverWaits(t *testing.T) {
	silent := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-silent:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(silent)
	to, _ := New(server.URL, secret)
	q := newQueue(to, slog.New(slog.DiscardHandler), time.Hour)
	put := 0
	for range 2 * maxQueued {
		if q.Put("x", []byte("{}")) {
			put++
		}
	}
	if put < maxQueued || put > maxQueued+1 {
		t.Errorf("%d were queued", put)
	}
	start := time.Now()
	_ = q.Close()
	if took := time.Since(start); took > 2*parting {
		t.Errorf("closing took %v", took)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, c := range [][2]string{{"http://example.org", secret}, {"ftp://x", secret}, {"https://example.org", "short"}, {"https://example.org", "whsec_?"}} {
		if _, err := New(c[0], c[1]); err == nil {
			t.Errorf("%q with %q is taken", c[0], c[1])
		}
	}
}
