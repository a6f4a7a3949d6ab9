// Package model sends prompts to a language model, which writes the programs of agent tasks. It reaches the model
// through an OpenAI-compatible API, the Messages API, or MCP sampling, which uses the model of the MCP client. The
// package sends only what its caller passes, and trusts nothing in the answer.
package model

import (
	"context"

	"retort/internal/core"
)

// Roles of messages.
const (
	User      = "user"
	Assistant = "assistant"
)

// PromptMessage holds one message of a conversation with a model.
type PromptMessage struct {
	Role string // User or Assistant
	Text string
}

// ModelPrompt holds a request to a model. The caller has already removed everything that the model must not see.
type ModelPrompt struct {
	System    string
	Messages  []PromptMessage
	MaxTokens int       // maximum number of tokens of the answer
	Told      func(int) // called with the number of bytes received; may be nil
	// Count returns the number of tokens of a text. It is used if the endpoint reports no counts. If it is nil, a
	// quarter of the number of bytes is used.
	Count func(string) int
}

// ModelReply holds the answer of a model and the number of tokens used.
type ModelReply struct {
	Text   string
	Model  string // name by which the model calls itself
	Input  int    // number of tokens of the prompt
	Output int
	// Estimated means that Retort has estimated token counts because the endpoint did not report them.
	Estimated bool
	// Cut means that the model stopped because the answer reached the requested maximum length.
	Cut bool
}

// Model answers prompts. If the model declines to answer, the error is of kind policy. For failures of the endpoint
// the kind is upstream_timeout or upstream_gone. If ctx was cancelled, the kind is cancelled.
type Model interface {
	Reply(ctx context.Context, p ModelPrompt) (ModelReply, *core.Error)
	// Name returns the model's name to show to users.
	Name() string
}

// estimateTokens returns the reply with estimates of the token counts that the endpoint did not report.
func estimateTokens(r ModelReply, p ModelPrompt) ModelReply {
	count := p.Count
	if count == nil {
		count = func(s string) int { return (len(s) + 3) / 4 }
	}
	if r.Input == 0 {
		r.Estimated = true
		r.Input = count(p.System)
		for _, m := range p.Messages {
			r.Input += count(m.Text)
		}
	}
	if r.Output == 0 && r.Text != "" {
		r.Estimated = true
		r.Output = count(r.Text)
	}
	return r
}

func goneError(format string, args ...any) *core.Error {
	return core.Errorf(core.KindUpstreamGone, "model", format, args...)
}

// declinedError returns the error for a model that declines to answer.
func declinedError(why string) *core.Error {
	return core.Errorf(core.KindPolicy, "model", "the model declined: %s", core.EscapeIllegible(clipText(why, maxQuotedError))).
		WithHint("rephrase the task, or write the program yourself")
}

// maxQuotedError bounds how much of an endpoint's error message is quoted, in bytes.
const maxQuotedError = 300
