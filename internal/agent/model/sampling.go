package model

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"retort/internal/core"
)

// ClientModel uses the model of the MCP client, through MCP sampling.
type ClientModel struct{}

// Name returns a text for users in place of a model name, because the client chooses the model.
func (ClientModel) Name() string { return "the client's" }

type samplingContent struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// Reply asks the client's model. The client may ask its user first.
func (ClientModel) Reply(ctx context.Context, p ModelPrompt) (ModelReply, *core.Error) {
	peer := core.PeerOf(ctx)
	if peer.Ask == nil || !peer.Samples {
		return ModelReply{}, core.Errorf(core.KindInvalidArguments, "model", "the client does not offer its model")
	}
	type message struct {
		Role    string          `json:"role"`
		Content samplingContent `json:"content"`
	}
	var messages []message
	for _, m := range p.Messages {
		messages = append(messages, message{m.Role, samplingContent{"text", m.Text}})
	}
	params, err := json.Marshal(map[string]any{"messages": messages, "systemPrompt": p.System, "maxTokens": p.MaxTokens})
	if err != nil {
		return ModelReply{}, core.AsError(err)
	}
	answer, refused := peer.Ask(ctx, core.ServerRequest{Server: "retort", Tool: "execute_task", Method: core.MethodSample, Params: params})
	if refused != nil {
		return ModelReply{}, refused
	}
	return parseSampled(answer, p)
}

func parseSampled(answer json.RawMessage, p ModelPrompt) (ModelReply, *core.Error) {
	var r struct {
		Content json.RawMessage `json:"content"`
		Model   string          `json:"model"`
		Stop    string          `json:"stopReason"`
	}
	if err := json.Unmarshal(answer, &r); err != nil {
		return ModelReply{}, goneError("the client's answer cannot be read: %v", err)
	}
	var parts []samplingContent
	if c := bytes.TrimSpace(r.Content); len(c) > 0 && c[0] == '{' {
		r.Content = append(append(json.RawMessage("["), c...), ']')
	}
	if err := json.Unmarshal(r.Content, &parts); err != nil {
		return ModelReply{}, goneError("the client's answer cannot be read: %v", err)
	}
	var text strings.Builder
	for _, c := range parts {
		if c.Type == "text" {
			text.WriteString(c.Text)
		}
	}
	if r.Stop == "refusal" {
		return ModelReply{}, declinedError(text.String())
	}
	most := max(p.MaxTokens, 1) * bytesOfToken
	full := text.Len() > most
	return estimateTokens(
		ModelReply{Text: clipText(text.String(), most), Model: core.EscapeIllegible(clipText(r.Model, 100)), Cut: full || r.Stop == "maxTokens"},
		p,
	), nil
}
