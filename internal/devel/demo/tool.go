package demo

import (
	"bytes"
	"embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"retort/internal/base/jsonschema"
)

// tools/<server>.json is the array that tools/list answers with.
//
//go:embed tools/*.json
var definitionFiles embed.FS

// definition is a tool as tools/list returns it.
type definition struct {
	name   string
	raw    json.RawMessage // compact, otherwise as in the file
	schema func() (*jsonschema.Schema, error)
}

func loadDefinitions(server string) ([]*definition, error) {
	file, err := definitionFiles.ReadFile("tools/" + server + ".json")
	if err != nil {
		return nil, err
	}
	var raws []json.RawMessage
	if err := json.Unmarshal(file, &raws); err != nil {
		return nil, fmt.Errorf("tools/%s.json: %w", server, err)
	}
	var list []*definition
	for _, raw := range raws {
		var head struct {
			Name        string          `json:"name"`
			InputSchema json.RawMessage `json:"inputSchema"`
		}
		var line bytes.Buffer
		if err := errors.Join(json.Unmarshal(raw, &head), json.Compact(&line, raw)); err != nil {
			return nil, fmt.Errorf("tools/%s.json: %w", server, err)
		}
		list = append(list, &definition{name: head.Name, raw: line.Bytes(), schema: sync.OnceValues(func() (*jsonschema.Schema, error) {
			return formats().Compile(head.InputSchema)
		})})
	}
	return list, nil
}

// check returns an error that names every argument that does not fit, or the
// first five.
func (d *definition) check(args json.RawMessage) error {
	s, err := d.schema()
	if err != nil {
		return err
	}
	value, err := jsonschema.Decode(args)
	if err != nil {
		return err
	}
	var complaints []string
	for _, v := range s.Violations(value, 5) {
		text := v.String()
		if len(v.Path) > 0 {
			text = strings.Join(v.Path, ".") + ": " + text
		}
		complaints = append(complaints, text)
	}
	if complaints == nil {
		return nil
	}
	return fmt.Errorf("invalid arguments for tool %s: %s", d.name, strings.Join(complaints, "; "))
}

// base is the part that all servers share: the lock for the data, the log of changes, and the identifiers that fail
// on purpose.
type base struct {
	lock    sync.RWMutex
	effects []Effect
	given   int // bytes of the arguments of calls that write

	limiting sync.Mutex
	asked    map[string]int
}

// Effect represents one change that a call made to a server's data.
type Effect struct {
	ID     string    `json:"id"` // "evt_000001", counting up
	Time   time.Time `json:"time"`
	Tool   string    `json:"tool"`
	Target string    `json:"target"` // what was changed
	Detail string    `json:"detail,omitempty"`
}

// Bounds on what one instance stores: the number of changes, and the bytes of arguments of all calls that may write.
const (
	maxEffects = 100_000
	maxGiven   = 512 << 20
)

// did records a change. Tools that write call it once for each change.
func (b *base) did(tool, target, format string, args ...any) Effect {
	n := len(b.effects) + 1
	e := Effect{fmt.Sprintf("evt_%06d", n), b.clock(), tool, target, fmt.Sprintf(format, args...)}
	b.effects = append(b.effects, e)
	return e
}

// clock returns the time of the next change, one second after the previous one.
func (b *base) clock() time.Time { return now.Add(time.Duration(len(b.effects)+1) * time.Second) }

// effectsOn returns the recorded changes of one target, or all if target is empty, newest first.
func (b *base) effectsOn(target string) []Effect {
	list := []Effect{}
	for i := len(b.effects) - 1; i >= 0; i-- {
		if target == "" || b.effects[i].Target == target {
			list = append(list, b.effects[i])
		}
	}
	return list
}

// provoked returns an error for the identifiers that clients may use to see one.
func (b *base) provoked(id string) error {
	switch id {
	case "forbidden":
		return errors.New("403 Permission denied: the account sales@nordlys.example may not access 'forbidden'")
	case "rate-limited":
		b.limiting.Lock()
		defer b.limiting.Unlock()
		if b.asked == nil {
			b.asked = map[string]int{}
		}
		if b.asked[id]++; b.asked[id]%2 == 1 {
			return errors.New("429 Too Many Requests: quota of 60 requests per minute exceeded, retry after 1 s")
		}
	}
	return nil
}

// missing returns the error for an unknown identifier.
func (b *base) missing(kind, id string) error {
	if err := b.provoked(id); err != nil {
		return err
	}
	return notFound(kind, id)
}

func notFound(kind, id string) error {
	return fmt.Errorf("404 Not found: there is no %s '%s'", kind, id)
}

// tool implements one definition.
type tool struct {
	writes bool // runs alone; others run concurrently
	call   func(args json.RawMessage) (result, error)
}

// read and write make a tool from a function of decoded arguments. The arguments have passed the schema, so f need
// not check what the schema guarantees.
func read[T any](f func(T) (result, error)) tool { return tool{call: decoded(f)} }

func write[T any](f func(T) (result, error)) tool { return tool{writes: true, call: decoded(f)} }

func decoded[T any](f func(T) (result, error)) func(json.RawMessage) (result, error) {
	return func(args json.RawMessage) (result, error) {
		var in T
		var wrong *json.UnmarshalTypeError
		err := json.Unmarshal(args, &in)
		if errors.As(err, &wrong) {
			return result{}, fmt.Errorf("%s: a %s does not fit", wrong.Field, wrong.Value)
		}
		if err != nil {
			return result{}, err
		}
		return f(in)
	}
}

// call runs a tool and returns the encoded result. An error of the tool becomes a result with isError.
func (s *Server) call(d *definition, args json.RawMessage) []byte {
	if len(args) == 0 || string(args) == "null" {
		args = json.RawMessage("{}")
	}
	if err := d.check(args); err != nil {
		return failure(err).encode()
	}
	t := s.tools()[d.name]
	if !t.writes {
		s.base.lock.RLock()
		defer s.base.lock.RUnlock()
		return t.run(args)
	}
	s.base.lock.Lock()
	defer s.base.lock.Unlock()
	if s.base.given += len(args); len(s.base.effects) >= maxEffects || s.base.given > maxGiven {
		return failure(fmt.Errorf("507 Insufficient storage: this instance keeps at most %d changes and %d bytes", maxEffects, maxGiven)).encode()
	}
	return t.run(args)
}

func (t tool) run(args json.RawMessage) []byte {
	r, err := t.call(args)
	if err != nil {
		r = failure(err)
	}
	return r.encode() // under the lock, as results share memory with the data
}

// result represents the result of a tool.
type result struct {
	content    []any
	structured json.RawMessage // nil if there is none
	isError    bool
}

// encode joins the parts into an MCP result. Structured content, which may have megabytes, is not parsed again.
func (r result) encode() []byte {
	b := append([]byte(`{"content":`), encode(r.content)...)
	if r.structured != nil {
		b = append(append(b, `,"structuredContent":`...), r.structured...)
	}
	if r.isError {
		b = append(b, `,"isError":true`...)
	}
	return append(b, '}')
}

type textPart struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type imagePart struct {
	Type     string `json:"type"`
	Data     []byte `json:"data"`
	MimeType string `json:"mimeType"`
}

type linkPart struct {
	Type     string `json:"type"`
	URI      string `json:"uri"`
	Name     string `json:"name"`
	MimeType string `json:"mimeType"`
}

type resourcePart struct {
	Type     string   `json:"type"`
	Resource resource `json:"resource"`
}

// resource has either text or a blob.
type resource struct {
	URI      string `json:"uri"`
	MimeType string `json:"mimeType"`
	Text     string `json:"text,omitempty"`
	Blob     []byte `json:"blob,omitempty"`
}

// plain returns a result with text.
func plain(format string, args ...any) (result, error) {
	return parts(textPart{"text", fmt.Sprintf(format, args...)})
}

// jsonText returns a result with JSON as text, as servers without outputSchema do.
func jsonText(v any) (result, error) { return parts(textPart{"text", string(encode(v))}) }

// structured returns a result with structured content and the same as text.
func structured(v any) (result, error) {
	raw := encode(v)
	return result{content: []any{textPart{"text", string(raw)}}, structured: raw}, nil
}

func parts(content ...any) (result, error) { return result{content: content}, nil }

func failure(err error) result {
	return result{content: []any{textPart{"text", err.Error()}}, isError: true}
}

// encode returns v as JSON without HTML escapes and without a newline. The values are our own and can always be
// encoded.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// pageByToken returns the page of items that token names, and the token of the next page or "". Tokens are opaque and
// valid for one scope only.
func pageByToken[T any](items []T, scope, token string, size int) (page []T, next string, err error) {
	offset := 0
	if token != "" {
		plain, err := base64.RawURLEncoding.DecodeString(token)
		number, ok := strings.CutPrefix(string(plain), scope+":")
		if offset, _ = strconv.Atoi(number); err != nil || !ok || offset <= 0 || offset > len(items) {
			return nil, "", fmt.Errorf("400 Bad request: page token '%s' is not one that this query returned", token)
		}
	}
	page = pageByOffset(items, offset, size)
	if end := offset + len(page); end < len(items) {
		next = base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%s:%d", scope, end))
	}
	return page, next, nil
}

// pageByOffset returns at most limit items from offset on. Beyond the end the list is empty but not nil.
func pageByOffset[T any](items []T, offset, limit int) []T {
	if items == nil {
		items = []T{}
	}
	offset = min(max(offset, 0), len(items))
	return items[offset : min(len(items)-offset, max(limit, 0))+offset]
}

// or returns v, or the default d if v is the zero value.
func or[T comparable](v, d T) T {
	var zero T
	if v == zero {
		return d
	}
	return v
}

// has reports whether text contains part, ignoring case.
func has(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}
