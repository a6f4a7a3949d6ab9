package upstream

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// header is what goes with a message besides its content: session, version, and
// since 2026-07-28 what the message is about.
func (h *streamable) header(msg jsonrpc.Message) http.Header {
	header := http.Header{}
	h.mu.Lock()
	session, protocol := h.session, h.protocol
	h.mu.Unlock()
	if session != "" {
		header.Set(headerSession, session)
	}
	if req, ok := msg.(*jsonrpc.Request); ok {
		if modern := h.about(header, req); modern != "" {
			protocol = modern
		}
	}
	if protocol != "" {
		header.Set(headerProtocol, protocol)
	}
	return header
}

// about sets the headers that repeat what a request of the newer versions says,
// and returns its version; it is empty for the older ones.
func (h *streamable) about(header http.Header, req *jsonrpc.Request) string {
	var params struct {
		Name      string          `json:"name"`
		URI       string          `json:"uri"`
		Arguments json.RawMessage `json:"arguments"`
		Meta      map[string]any  `json:"_meta"`
	}
	_ = json.Unmarshal(req.Params, &params)
	protocol, _ := params.Meta[mcp.MetaKeyProtocolVersion].(string)
	if protocol < protocolModern {
		return ""
	}
	header.Set("Mcp-Method", req.Method)
	if req.Method == methodCall {
		header.Set("Mcp-Name", params.Name)
		h.bindings.apply(header, params.Name, params.Arguments)
	} else if name := cmp.Or(params.Name, params.URI); name != "" {
		header.Set("Mcp-Name", name)
	}
	return protocol
}

// apply sets the headers for a call of a tool.
func (b *bindings) apply(header http.Header, tool string, args json.RawMessage) {
	b.mu.Lock()
	bound := b.tools[tool]
	b.mu.Unlock()
	for _, one := range bound {
		if value, ok := headerValue(argument(args, one.path)); ok {
			header.Set("Mcp-Param-"+one.header, value)
		}
	}
}

func argument(args json.RawMessage, path []string) json.RawMessage {
	for _, name := range path {
		var object map[string]json.RawMessage
		if json.Unmarshal(args, &object) != nil {
			return nil
		}
		args = object[name]
	}
	return args
}

// headerValue is a string, a boolean or a safe integer as a header carries it;
// what is not plain ASCII is encoded.
func headerValue(raw json.RawMessage) (string, bool) {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return "", false
	}
	switch v := v.(type) {
	case bool:
		return strconv.FormatBool(v), true
	case float64:
		const safe = 1<<53 - 1
		return strconv.FormatInt(int64(v), 10), v == math.Trunc(v) && math.Abs(v) <= safe
	case string:
		return encodeHeader(v), true
	}
	return "", false
}

const encodedPrefix, encodedSuffix = "=?base64?", "?="

func encodeHeader(s string) string {
	plain := s == strings.Trim(s, " \t") && !(strings.HasPrefix(s, encodedPrefix) && strings.HasSuffix(s, encodedSuffix))
	for i := 0; i < len(s); i++ {
		plain = plain && s[i] >= ' ' && s[i] <= '~'
	}
	if plain {
		return s
	}
	return encodedPrefix + base64.StdEncoding.EncodeToString([]byte(s)) + encodedSuffix
}

// isToken reports whether s can be part of a header's name (RFC 9110, 5.6.2).
func isToken(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		alnum := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !alnum && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}
