package server

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/base/canonjson"
	"retort/internal/core"
)

// RequestStates signs the state that a client keeps between a question and its answer, and accepts each state only
// once. Its key exists only in memory, so that open questions do not survive a restart. All Servers at the same
// address must share one RequestStates. It is safe for concurrent use.
type RequestStates struct {
	key   []byte
	mu    sync.Mutex
	spent map[string]time.Time // used nonces, each with the time at which its state expires
}

// NewRequestStates returns a RequestStates with a new key.
func NewRequestStates() *RequestStates {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // does not fail
	return &RequestStates{key: key, spent: map[string]time.Time{}}
}

// requestState is the state that a client sends back with its answers.
type requestState struct {
	// Conversation is the id of the conversation that continues in the background.
	Conversation string `json:"conversation,omitempty"`
	Execution    string `json:"execution_id,omitempty"`
	Round        int    `json:"round"`
	// Digests maps the ids of the approvals that were shown to their digests.
	Digests   map[string]string `json:"digests,omitempty"`
	Principal string            `json:"principal,omitempty"`
	Call      string            `json:"call"` // digest of the call's tool and arguments
	Nonce     string            `json:"nonce"`
	Expires   time.Time         `json:"expires"`
}

// issueState returns a state as a signed text. The client keeps the text and sends it back with its next call.
func (r *RequestStates) issueState(s requestState) (string, error) {
	s.Nonce = rand.Text()
	text, err := json.Marshal(s)
	if err != nil {
		return "", err
	}
	return encodeBase64(text) + "." + encodeBase64(r.signText(text)), nil
}

func encodeBase64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func (r *RequestStates) signText(text []byte) []byte {
	mac := hmac.New(sha256.New, r.key)
	mac.Write(text)
	return mac.Sum(nil)
}

// takeState verifies and decodes a state that a principal's client has sent back. A state is valid once, for the call
// that it was issued for, until it expires.
func (r *RequestStates) takeState(state, principal, call string, now time.Time) (requestState, *core.Error) {
	s, ok := r.openState(state)
	switch {
	case !ok:
		return s, errNoRound()
	case s.Principal != principal || s.Call != call:
		return s, core.Errorf(
			core.KindInvalidArguments, "mcpserver", "the requestState is for another call; nothing ran",
		).WithHint("repeat the call that returned this requestState, with the same arguments")
	case !now.Before(s.Expires):
		return s, core.Errorf(
			core.KindInvalidArguments, "mcpserver", "the requestState has expired; nothing ran",
		).WithHint("call resume_execution with the execution_id %s", s.Execution)
	case !r.spendNonce(s, now):
		return s, core.Errorf(
			core.KindInvalidArguments, "mcpserver", "the requestState was already used; nothing ran",
		).WithHint("call resume_execution with the execution_id %s", s.Execution)
	}
	return s, nil
}

func errNoRound() *core.Error {
	return core.Errorf(
		core.KindInvalidArguments, "mcpserver", "the requestState was not issued by this server; nothing ran",
	).WithHint("call the tool without requestState")
}

// roundOf returns the state that the client has sent back with a repeated call. ctx is the context of that call; ok
// is false if the client has sent no state.
func roundOf(ctx context.Context) (s requestState, ok bool) {
	round := requestValuesOf(ctx).round
	if round == nil {
		return requestState{}, false
	}
	return *round, true
}

// openState verifies and decodes the signed text of a state. ok is false if the signature is wrong or the text is
// malformed.
func (r *RequestStates) openState(state string) (s requestState, ok bool) {
	body, mac, _ := strings.Cut(state, ".")
	text, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		return s, false
	}
	given, err := base64.RawURLEncoding.DecodeString(mac)
	if err != nil || !hmac.Equal(given, r.signText(text)) {
		return s, false
	}
	return s, json.Unmarshal(text, &s) == nil
}

// spendNonce marks a state as used by recording its nonce, a number that no other state has. It reports whether this
// was the first use of the state.
func (r *RequestStates) spendNonce(s requestState, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for nonce, until := range r.spent {
		if !now.Before(until) {
			delete(r.spent, nonce)
		}
	}
	if _, used := r.spent[s.Nonce]; used {
		return false
	}
	r.spent[s.Nonce] = s.Expires
	return true
}

// digestOf returns a hash of a call's tool and arguments. It does not depend on the order of keys or on white space.
func digestOf(method string, req mcp.Request) string {
	name, text := "", []byte(nil)
	switch p := req.GetParams().(type) {
	case *mcp.CallToolParamsRaw:
		name, text = p.Name, canonjson.OrRaw(p.Arguments)
	case *mcp.GetPromptParams:
		name = p.Name
		text, _ = json.Marshal(p.Arguments) // of strings
	case *mcp.ReadResourceParams:
		name = p.URI
	}
	sum := sha256.Sum256(append([]byte(method+"\x00"+name+"\x00"), text...))
	return hex.EncodeToString(sum[:])
}
