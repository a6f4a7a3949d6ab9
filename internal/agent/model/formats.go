package model

import (
	"cmp"
	"encoding/json"
	"net/http"

	"retort/internal/core"
)

// replyChunk holds the content of one event of a stream, or of a whole answer.
type replyChunk struct {
	text, model, refusal string
	input, output        int
	stop                 string // reason why the answer ended; "" while it continues
}

// chunkParser parses an event of a stream, or a whole answer.
type chunkParser func(data []byte) (replyChunk, *core.Error)

func (e *ModelEndpoint) requestPath() string {
	if e.o.Format == Anthropic {
		return "/messages"
	}
	return "/chat/completions"
}

func (e *ModelEndpoint) setHeaders(h http.Header) {
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "text/event-stream, application/json")
	switch {
	case e.o.Format == Anthropic:
		h.Set("Anthropic-Version", "2023-06-01")
		if e.o.Key != "" {
			h.Set("X-Api-Key", e.o.Key)
		}
	case e.o.Key != "":
		h.Set("Authorization", "Bearer "+e.o.Key)
	}
}

type wireMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

func (e *ModelEndpoint) requestBody(p ModelPrompt) any {
	var messages []wireMessage
	if e.o.Format != Anthropic && p.System != "" {
		messages = append(messages, wireMessage{"system", p.System})
	}
	for _, m := range p.Messages {
		messages = append(messages, wireMessage{m.Role, m.Text})
	}
	body := map[string]any{"model": e.o.Model, "messages": messages, "stream": true, "max_tokens": p.MaxTokens}
	if e.o.Format == Anthropic {
		body["system"] = p.System
	} else {
		body["stream_options"] = map[string]bool{"include_usage": true}
	}
	return body
}

func (e *ModelEndpoint) replyParser() chunkParser {
	if e.o.Format == Anthropic {
		return anthropicPiece
	}
	return openAIPiece
}

type openAIText struct {
	Content string `json:"content"`
	Refusal string `json:"refusal"`
}

func openAIPiece(data []byte) (replyChunk, *core.Error) {
	var m struct {
		Model   string `json:"model"`
		Choices []struct {
			Delta   openAIText `json:"delta"`
			Message openAIText `json:"message"` // set if the answer is not a stream
			Finish  string     `json:"finish_reason"`
		} `json:"choices"`
		Usage struct {
			Prompt     int `json:"prompt_tokens"`
			Completion int `json:"completion_tokens"`
		} `json:"usage"`
		Error json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return replyChunk{}, unreadableError(err)
	}
	if len(m.Error) > 0 && string(m.Error) != "null" {
		return replyChunk{}, endpointError(data)
	}
	out := replyChunk{model: m.Model, input: max(m.Usage.Prompt, 0), output: max(m.Usage.Completion, 0)}
	if len(m.Choices) > 0 {
		c := m.Choices[0]
		out.text, out.refusal, out.stop = c.Delta.Content+c.Message.Content, c.Delta.Refusal+c.Message.Refusal, c.Finish
	}
	return out, nil
}

func anthropicPiece(data []byte) (replyChunk, *core.Error) {
	type usage struct {
		Input  int `json:"input_tokens"`
		Output int `json:"output_tokens"`
	}
	type message struct {
		Model   string `json:"model"`
		Usage   usage  `json:"usage"`
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
		Stop string `json:"stop_reason"`
	}
	var m struct {
		Type    string  `json:"type"`
		Message message `json:"message"` // set in the event message_start
		Delta   struct {
			Text string `json:"text"`
			Stop string `json:"stop_reason"`
		} `json:"delta"`
		message // set if the answer is not a stream; usage is also set in the event message_delta
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return replyChunk{}, unreadableError(err)
	}
	if m.Type == "error" {
		return replyChunk{}, endpointError(data)
	}
	out := replyChunk{
		model: cmp.Or(m.Message.Model, m.Model), text: m.Delta.Text, stop: cmp.Or(m.Delta.Stop, m.Stop),
		input: max(m.Message.Usage.Input, m.Usage.Input), output: max(m.Message.Usage.Output, m.Usage.Output),
	}
	for _, c := range m.Content {
		out.text += c.Text
	}
	return out, nil
}

func unreadableError(err error) *core.Error {
	return goneError("the endpoint's answer cannot be read: %v", err).WithHint(
		"check model.provider and model.url in retort.yaml: the endpoint may use another format",
	)
}

func endpointError(data []byte) *core.Error {
	return goneError(
		"the endpoint failed in the middle of its answer: %s",
		core.EscapeIllegible(clipText(cmp.Or(errorOf(data), "it gives no reason"), maxQuotedError)),
	)
}
