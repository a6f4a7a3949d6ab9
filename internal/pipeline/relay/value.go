package relay

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	fastjson "github.com/segmentio/encoding/json"

	"retort/internal/core"
)

// FileStore stores files from tools in a workspace. Save chooses a name that ends in suffix and returns the path
// within the workspace.
type FileStore interface {
	Save(ctx context.Context, suffix string, data []byte) (path string, err error)
	// Create begins a file whose data is written in several steps.
	Create(ctx context.Context, suffix string) (IncomingFile, error)
}

// toolAnswer holds the parts of MCP's CallToolResult that programs see.
type toolAnswer struct {
	Content           []answerPart    `json:"content"`
	StructuredContent json.RawMessage `json:"structuredContent"`
	IsError           bool            `json:"isError"`
}

type answerPart struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Data     string `json:"data"`
	MIMEType string `json:"mimeType"`
	Resource struct {
		URI      string  `json:"uri"`
		MIMEType string  `json:"mimeType"`
		Text     *string `json:"text"`
		Blob     *string `json:"blob"`
	} `json:"resource"`
	raw json.RawMessage
}

// unmarshalExact works like json.Unmarshal but matches member names exactly, as MCP requires. encoding/json would accept
// "Content" for "content".
func unmarshalExact(data []byte, v any) error {
	_, err := fastjson.Parse(data, v, fastjson.DontMatchCaseInsensitiveStructFields)
	return err
}

// readResult parses a tool result. It keeps the original bytes of all content items other than text. Text is only
// decoded, because it can be large.
func (a *toolAnswer) readResult(result json.RawMessage) error {
	if !json.Valid(result) {
		return errors.New("it is not valid JSON")
	}
	if text := bytes.TrimSpace(result); text[0] != '{' && string(text) != "null" {
		return errors.New("it is not a JSON object")
	}
	if err := unmarshalExact(result, a); err != nil {
		return err
	}
	if err := a.checkUnambiguous(result); err != nil {
		return err
	}
	if !slices.ContainsFunc(a.Content, func(p answerPart) bool { return p.Type != "text" }) {
		return nil
	}
	var again struct {
		Content []json.RawMessage `json:"content"`
	}
	if err := unmarshalExact(result, &again); err != nil {
		return err
	}
	for i := range a.Content {
		if a.Content[i].Type != "text" {
			a.Content[i].raw = again.Content[i]
		}
	}
	return nil
}

// savedBlob describes a file in which the bytes of a blob were saved. Programs get it in place of the blob.
type savedBlob struct {
	Path     string `json:"path"`
	MIMEType string `json:"mimeType"`
	Bytes    int    `json:"bytes"`
}

// toValue converts a tool result to the value that a program sees: structuredContent if present, otherwise the text
// parsed as JSON, otherwise the text itself. Several content items become a list, and images and blobs become files.
// A result marked as an error becomes a *core.Error.
func toValue(ctx context.Context, result json.RawMessage, x ExecutionContext) (json.RawMessage, error) {
	var a toolAnswer
	if err := a.readResult(result); err != nil {
		return nil, core.Errorf(core.KindToolError, "relay.value", "the server's answer is not a tool result: %v", err)
	}
	if a.IsError {
		return nil, toolError(a)
	}
	if s := bytes.TrimSpace(a.StructuredContent); len(s) > 0 && string(s) != "null" {
		return a.StructuredContent, nil
	}
	values := make([]json.RawMessage, 0, len(a.Content))
	for i := range a.Content {
		v, err := a.Content[i].programValue(ctx, x.Files)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	switch len(values) {
	case 0:
		return json.RawMessage("null"), nil
	case 1:
		return values[0], nil
	}
	return json.Marshal(values)
}

func (p *answerPart) programValue(ctx context.Context, files FileStore) (json.RawMessage, error) {
	switch {
	case p.Type == "text":
		return textValue(p.Text)
	case p.Type == "image" || p.Type == "audio":
		return saveEncoded(ctx, files, p.Data, p.MIMEType)
	case p.Type == "resource" && p.Resource.Blob != nil:
		return saveEncoded(ctx, files, *p.Resource.Blob, p.Resource.MIMEType)
	case p.Type == "resource" && p.Resource.Text != nil:
		return json.Marshal(map[string]string{"uri": p.Resource.URI, "mimeType": p.Resource.MIMEType, "text": *p.Resource.Text})
	}
	return p.raw, nil
}

func textValue(text string) (json.RawMessage, error) {
	if trimmed := json.RawMessage(strings.TrimSpace(text)); json.Valid(trimmed) {
		return trimmed, nil
	}
	return quoteText(text)
}

func quoteText(text string) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(text); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func saveEncoded(ctx context.Context, files FileStore, encoded, mime string) (json.RawMessage, error) {
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, core.Errorf(core.KindToolError, "relay.blob", "the server sent bytes that are not base64: %v", err)
	}
	stored, path := len(data), ""
	if hiding, ok := files.(hidingFiles); ok {
		path, stored, err = hiding.saveAs(ctx, mime, fileExtension(mime), data)
	} else {
		path, err = files.Save(ctx, fileExtension(mime), data)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(savedBlob{Path: path, MIMEType: mime, Bytes: stored})
}

// fileExtension returns the file name extension for a MIME type that tools frequently send, or ".bin".
func fileExtension(mime string) string {
	kind, _, _ := strings.Cut(mime, ";")
	switch kind = strings.TrimSpace(strings.ToLower(kind)); kind {
	case "image/png", "image/gif", "image/webp", "application/pdf", "application/zip", "application/json", "text/csv", "text/html":
		_, ext, _ := strings.Cut(kind, "/")
		return "." + ext
	case "image/jpeg":
		return ".jpg"
	case "image/svg+xml":
		return ".svg"
	case "audio/wav", "audio/x-wav":
		return ".wav"
	case "audio/mpeg":
		return ".mp3"
	case "text/plain":
		return ".txt"
	}
	return ".bin"
}

// maxErrorText bounds how much of a tool's error text is used, in bytes.
const maxErrorText = 4 << 10

func toolError(a toolAnswer) error {
	var texts []string
	for _, p := range a.Content {
		if p.Type == "text" && p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	text := strings.Join(texts, "\n")
	if text == "" && len(a.StructuredContent) > 0 {
		text = string(a.StructuredContent)
	}
	if text == "" {
		text = "the tool reported an error without a message"
	}
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + fmt.Sprintf("… (%d bytes in all)", len(text))
	}
	return &core.Error{Kind: core.KindToolError, Op: "relay.value", Message: text}
}
