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

// IsEndpoint reports whether the model is reached at a URL.
func (m Model) IsEndpoint() bool {
	return m.Provider == ProviderOpenAI || m.Provider == ProviderAnthropic
}

func (m Model) withDefaults() Model {
	setDefault(&m.Provider, ProviderAuto)
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
	setDefault(&m.MaxTokens, core.DefaultModelTokens)
	setDefault(&m.Timeout, core.DefaultModelTimeout)
	setDefault(&m.Price.Currency, "$")
	return m
}

func (o Orchestrator) withDefaults() Orchestrator {
	setDefault(&o.Attempts, core.DefaultTaskAttempts)
	setDefault(&o.Tools, core.DefaultTaskTools)
	setDefault(&o.Tokens, core.DefaultTaskTokens)
	return o
}

func (m *Model) readFunc() readFunc {
	whole := readObject(
		fieldReader{"provider", readOneOf(&m.Provider, ProviderAuto, ProviderOpenAI, ProviderAnthropic, ProviderSampling, ProviderNone)},
		fieldReader{"url", readChecked(&m.URL, "an https address such as https://example.com/v1 (http is allowed for this machine only)", isTrustworthy)},
		fieldReader{"model", readText(&m.Model)},
		fieldReader{"key", readText(&m.Key)},
		fieldReader{"maxTokens", readInt(&m.MaxTokens, 256, 1_000_000)},
		fieldReader{"timeout", readDuration(&m.Timeout, time.Second, time.Hour)},
		fieldReader{"price", readObject(
			fieldReader{"input", readFloat(&m.Price.Input, 0, 1_000_000)},
			fieldReader{"output", readFloat(&m.Price.Output, 0, 1_000_000)},
			fieldReader{"currency", readChecked(&m.Price.Currency, "a currency such as $ or EUR", regexp.MustCompile(`^[\p{Sc}A-Za-z ]{1,8}$`).MatchString)},
		)},
	)
	return func(r *nodeReader, n *valueNode) {
		whole(r, n)
		if m.Model == "" && (m.URL != "" || m.IsEndpoint()) && n.kind == objectKind && n.findEntry("model") == nil {
			r.addProblem(n, "set model to the name that the endpoint uses", "model is missing")
		}
	}
}

func (o *Orchestrator) readFunc() readFunc {
	return readObject(
		fieldReader{"attempts", readInt(&o.Attempts, 1, 10)},
		fieldReader{"tools", readInt(&o.Tools, 1, 50)},
		fieldReader{"tokens", readInt(&o.Tokens, 1000, 100_000_000)},
	)
}
