// Package model is where the text of a program comes from that a person has only described:
// a model behind an OpenAI-compatible endpoint or the Messages API, or that of the MCP client.
// It sends what it is given and nothing else, and believes nothing of what comes back.
package model

import (
	"context"

	"retort/internal/core"
)

// The roles of messages.
const (
	User      = "user"
	Assistant = "assistant"
)

// Message is one turn of a conversation with a model.
type Message struct {
	Role string // User or Assistant
	Text string
}

// Prompt is what a model is asked. Whoever makes it has hidden what a model may not see.
type Prompt struct {
	System    string
	Messages  []Message
	MaxTokens int              // of the answer
	Told      func(int)        // is told how many bytes have come; may be nil
	Count     func(string) int // tokens of a text, where the endpoint does not say; nil counts bytes by four
}

// Reply is what a model answers.
type Reply struct {
	Text   string
	Model  string // as it names itself
	Input  int    // tokens
	Output int
	// Estimated says that the tokens were counted here: nobody has told them.
	Estimated bool
	// Cut says that the answer was longer than was asked for.
	Cut bool
}

// Model answers prompts. Errors name what is wrong with the endpoint, and are of kind policy where the model
// declines, upstream_timeout or upstream_gone.
type Model interface {
	Reply(ctx context.Context, p Prompt) (Reply, *core.Error)
	// Name is how a person calls it.
	Name() string
}

// estimated fills in what nobody has told.
func estimated(r Reply, p Prompt) Reply {
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

func gone(format string, args ...any) *core.Error {
	return core.Errorf(core.KindUpstreamGone, "model", format, args...)
}

// declined is the error of a model that does not want to.
func declined(why string) *core.Error {
	return core.Errorf(core.KindPolicy, "model", "the model declined: %s", core.Legible(clipped(why, maxSaid))).
		WithHint("say the task in other words, or write the program yourself")
}

// maxSaid bounds what is told of an endpoint's own words, in bytes.
const maxSaid = 300
