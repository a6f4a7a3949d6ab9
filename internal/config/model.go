package config

import (
	"regexp"
	"time"

	"retort/internal/core"
)

// Model selects the model that writes the programs of agent tasks. The zero Model is the one that the client offers.
type Model struct {
	Provider  Provider
	URL       string // empty: that of the provider
	Model     string
	Key       string // "keyring": it is in the keyring of the system
	MaxTokens int    // of one answer
	Timeout   time.Duration
	Price     ModelPrice
}

// Provider names the kind of service that runs a model.
type Provider string

// The providers. Auto means an endpoint if a URL or a model is named, else the client.
const (
	ProviderAuto      Provider = "auto"
	ProviderOpenAI    Provider = "openai" // and compatible endpoints
	ProviderAnthropic Provider = "anthropic"
	ProviderSampling  Provider = "sampling" // the client's
	ProviderNone      Provider = "none"
)

// ModelPrice holds what a million tokens cost. 0 means unknown.
type ModelPrice struct {
	Input, Output float64
	Currency      string
}

// Orchestrator bounds one agent task.
type Orchestrator struct {
	Attempts int // programs that the model may write for the task
	Tools    int // that a model is offered
	Tokens   int // of the model
}

// Endpoint reports whether the model is reached at a URL.
func (m Model) Endpoint() bool {
	return m.Provider == ProviderOpenAI || m.Provider == ProviderAnthropic
}

func (m Model) defaults() Model {
	state(&m.Provider, ProviderAuto)
	if m.Provider == ProviderAuto && (m.URL != "" || m.Model != "") {
		m.Provider = ProviderOpenAI
	}
	switch {
	case m.URL != "":
	case m.Provider == ProviderOpenAI:
		m.URL = "https://api.openai.com/v1"
	case m.Provider == ProviderAnthropic:
		m.URL = "https://api.anthropic.com/v1"
	}
	state(&m.MaxTokens, core.DefaultModelTokens)
	state(&m.Timeout, core.DefaultModelTimeout)
	state(&m.Price.Currency, "$")
	return m
}

func (o Orchestrator) defaults() Orchestrator {
	state(&o.Attempts, core.DefaultTaskAttempts)
	state(&o.Tools, core.DefaultTaskTools)
	state(&o.Tokens, core.DefaultTaskTokens)
	return o
}

func (m *Model) read() into {
	whole := object(
		field{"provider", oneOf(&m.Provider, ProviderAuto, ProviderOpenAI, ProviderAnthropic, ProviderSampling, ProviderNone)},
		field{"url", checked(&m.URL, "an https address such as https://example.com/v1 (http is allowed for this machine only)", isTrustworthy)},
		field{"model", text(&m.Model)},
		field{"key", text(&m.Key)},
		field{"maxTokens", integer(&m.MaxTokens, 256, 1_000_000)},
		field{"timeout", duration(&m.Timeout, time.Second, time.Hour)},
		field{"price", object(
			field{"input", number(&m.Price.Input, 0, 1_000_000)},
			field{"output", number(&m.Price.Output, 0, 1_000_000)},
			field{"currency", checked(&m.Price.Currency, "a currency such as $ or EUR", regexp.MustCompile(`^[\p{Sc}A-Za-z ]{1,8}$`).MatchString)},
		)},
	)
	return func(r *reader, n *node) {
		whole(r, n)
		if m.Model == "" && (m.URL != "" || m.Endpoint()) && n.kind == objectKind && n.find("model") == nil {
			r.fail(n, "model: the name under which the endpoint offers it", "model is missing")
		}
	}
}

func (o *Orchestrator) read() into {
	return object(
		field{"attempts", integer(&o.Attempts, 1, 10)},
		field{"tools", integer(&o.Tools, 1, 50)},
		field{"tokens", integer(&o.Tokens, 1000, 100_000_000)},
	)
}
