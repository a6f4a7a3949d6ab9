package demo

import (
	"bytes"
	"context"
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

// definitionFiles has the tool definitions: tools/<server>.json is the array that tools/list returns.
//
//go:embed tools/*.json
var definitionFiles embed.FS

// toolDefinition holds a tool as tools/list returns it.
type toolDefinition struct {
	name   string
	raw    json.RawMessage // compact JSON, otherwise as in the file
	schema func() (*jsonschema.Schema, error)
}

func loadDefinitions(server string) ([]*toolDefinition, error) {
	file, err := definitionFiles.ReadFile("tools/" + server + ".json")
	if err != nil {
		return nil, err
	}
	var raws []json.RawMessage
	if err := json.Unmarshal(file, &raws); err != nil {
		return nil, fmt.Errorf("tools/%s.json: %w", server, err)
	}
	var list []*toolDefinition
	for _, raw := range raws {
		var head struct {
			Name        string          `json:"name"`
			InputSchema json.RawMessage `json:"inputSchema"`
		}
		var line bytes.Buffer
		if err := errors.Join(json.Unmarshal(raw, &head), json.Compact(&line, raw)); err != nil {
			return nil, fmt.Errorf("tools/%s.json: %w", server, err)
		}
		list = append(list, &toolDefinition{name: head.Name, raw: line.Bytes(), schema: sync.OnceValues(func() (*jsonschema.Schema, error) {
			return inputFormats().Compile(head.InputSchema)
		})})
	}
	return list, nil
}

// checkArguments checks arguments against the tool's schema. The error names the invalid arguments, at most five of
// them.
func (d *toolDefinition) checkArguments(args json.RawMessage) error {
	s, err := d.schema()
	if err != nil {
		return err
	}
	value, err := jsonschema.Decode(args)
	if err != nil {
		return err
	}
	var complaints []string
	for _, v := range s.ListViolations(value, 5) {
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

// serverBase implements what all demo servers share: the lock for the data, the log of changes, and the identifiers
// that cause errors on purpose.
type serverBase struct {
	lock    sync.RWMutex
	effects []RecordedEffect
	written int          // total bytes of the arguments of calls that write
	close   func() error // frees what the tools hold; nil: nothing to free

	limiting sync.Mutex
	asked    map[string]int
}

// RecordedEffect represents one change that a call made to a server's data.
type RecordedEffect struct {
	ID     string    `json:"id"` // "evt_000001", "evt_000002", …
	Time   time.Time `json:"time"`
	Tool   string    `json:"tool"`
	Target string    `json:"target"` // name of what was changed
	Detail string    `json:"detail,omitempty"`
}

// Bounds on what one instance stores: the number of changes, and the total bytes of the arguments of calls that may
// write.
const (
	maxEffects = 100_000
	maxGiven   = 512 << 20
)

// recordEffect records a change. Tools that write call it once for each change.
func (b *serverBase) recordEffect(tool, target, format string, args ...any) RecordedEffect {
	n := len(b.effects) + 1
	e := RecordedEffect{fmt.Sprintf("evt_%06d", n), b.nextTime(), tool, target, fmt.Sprintf(format, args...)}
	b.effects = append(b.effects, e)
	return e
}

// nextTime returns the time of the next change, one second after the previous one.
func (b *serverBase) nextTime() time.Time {
	return demoToday.Add(time.Duration(len(b.effects)+1) * time.Second)
}

// effectsOn returns the recorded changes of one target, or all changes if target is empty, newest first.
func (b *serverBase) effectsOn(target string) []RecordedEffect {
	list := []RecordedEffect{}
	for i := len(b.effects) - 1; i >= 0; i-- {
		if target == "" || b.effects[i].Target == target {
			list = append(list, b.effects[i])
		}
	}
	return list
}

// provokedError returns an error if id is one of the identifiers that cause errors on purpose, otherwise nil.
func (b *serverBase) provokedError(id string) error {
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

// missingError returns the error for an unknown identifier.
func (b *serverBase) missingError(kind, id string) error {
	if err := b.provokedError(id); err != nil {
		return err
	}
	return notFound(kind, id)
}

func notFound(kind, id string) error {
	return fmt.Errorf("404 Not found: there is no %s '%s'", kind, id)
}

// toolFunc holds the implementation of a tool as a function.
type toolFunc struct {
	writes bool // whether it changes data and therefore runs alone; other tools run concurrently
	call   func(ctx context.Context, args json.RawMessage) (toolResult, error)
}

// readTool converts a function of decoded arguments to a tool that only reads. writeTool does the same for tools that
// write. The arguments have already been checked against the schema.
func readTool[T any](f func(T) (toolResult, error)) toolFunc {
	return toolFunc{call: decodeArguments(withoutContext(f))}
}

func writeTool[T any](f func(T) (toolResult, error)) toolFunc {
	return toolFunc{writes: true, call: decodeArguments(withoutContext(f))}
}

func withoutContext[T any](f func(T) (toolResult, error)) func(context.Context, T) (toolResult, error) {
	return func(_ context.Context, in T) (toolResult, error) { return f(in) }
}

func decodeArguments[T any](f func(context.Context, T) (toolResult, error)) func(context.Context, json.RawMessage) (toolResult, error) {
	return func(ctx context.Context, args json.RawMessage) (toolResult, error) {
		var in T
		var wrong *json.UnmarshalTypeError
		err := json.Unmarshal(args, &in)
		if errors.As(err, &wrong) {
			return toolResult{}, fmt.Errorf("%s: a %s does not fit", wrong.Field, wrong.Value)
		}
		if err != nil {
			return toolResult{}, err
		}
		return f(ctx, in)
	}
}

// runToolCall runs a tool and returns the encoded result. An error of the tool becomes a result with isError.
func (s *DemoServer) runToolCall(ctx context.Context, d *toolDefinition, args json.RawMessage) []byte {
	if len(args) == 0 || string(args) == "null" {
		args = json.RawMessage("{}")
	}
	if err := d.checkArguments(args); err != nil {
		return failureResult(err).encodeResult()
	}
	t := s.tools()[d.name]
	if !t.writes {
		s.base.lock.RLock()
		defer s.base.lock.RUnlock()
		return t.runTool(ctx, args)
	}
	s.base.lock.Lock()
	defer s.base.lock.Unlock()
	if s.base.written += len(args); len(s.base.effects) >= maxEffects || s.base.written > maxGiven {
		return failureResult(
			fmt.Errorf("507 Insufficient storage: this instance keeps at most %d changes and %d bytes", maxEffects, maxGiven),
		).encodeResult()
	}
	return t.runTool(ctx, args)
}

func (t toolFunc) runTool(ctx context.Context, args json.RawMessage) []byte {
	r, err := t.call(ctx, args)
	if err != nil {
		r = failureResult(err)
	}
	return r.encodeResult() // under the lock, as results share memory with the data
}

// toolResult holds the result of a tool.
type toolResult struct {
	content    []any
	structured json.RawMessage // structured content; may be nil
	isError    bool
}

// encodeResult returns the tool's result as MCP encodes it. Structured content, which may have megabytes, is included
// without being parsed again.
func (r toolResult) encodeResult() []byte {
	b := append([]byte(`{"content":`), encodeJSON(r.content)...)
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
	Type     string          `json:"type"`
	Resource resourceContent `json:"resource"`
}

// resourceContent holds an embedded resource, with either text or a blob.
type resourceContent struct {
	URI      string `json:"uri"`
	MimeType string `json:"mimeType"`
	Text     string `json:"text,omitempty"`
	Blob     []byte `json:"blob,omitempty"`
}

// textResult returns a result that consists of one text.
func textResult(format string, args ...any) (toolResult, error) {
	return partsResult(textPart{"text", fmt.Sprintf(format, args...)})
}

// jsonText returns a result whose text is JSON, like the results of real servers that declare no outputSchema.
func jsonText(v any) (toolResult, error) { return partsResult(textPart{"text", string(encodeJSON(v))}) }

// structuredResult returns a result with structured content and a text with the same JSON.
func structuredResult(v any) (toolResult, error) {
	raw := encodeJSON(v)
	return toolResult{content: []any{textPart{"text", string(raw)}}, structured: raw}, nil
}

func partsResult(content ...any) (toolResult, error) { return toolResult{content: content}, nil }

func failureResult(err error) toolResult {
	return toolResult{content: []any{textPart{"text", err.Error()}}, isError: true}
}

// encodeJSON encodes v as JSON without HTML escapes and without a newline. It cannot fail, because it is called only
// with types of this package that can be encoded.
func encodeJSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// pageByToken returns the page of items for a page token, and the token of the next page or "". Tokens are opaque. A
// token is valid only together with the scope for which it was made, such as the same query.
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

// pageByOffset returns the items from index offset on, at most limit of them. If offset is beyond the last item, the
// list is empty but not nil.
func pageByOffset[T any](items []T, offset, limit int) []T {
	if items == nil {
		items = []T{}
	}
	offset = min(max(offset, 0), len(items))
	return items[offset : min(len(items)-offset, max(limit, 0))+offset]
}

// orDefault returns v, or the default d if v is the zero value.
func orDefault[T comparable](v, d T) T {
	var zero T
	if v == zero {
		return d
	}
	return v
}

// containsFold reports whether text contains part, ignoring case.
func containsFold(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}
