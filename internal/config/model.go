package config

import (
	"regexp"
	"time"

	"retort/internal/core"
)

// Model selects the model that writes the programs of agent tasks. The zero Model selects the model that the client
// offers.
type Model struct {
	Provider  Provider
	URL       string // "": the provider's usual URL
	Model     string
	Key       string // API key; "keyring": the key is in the system's keyring
	MaxTokens int    // tokens of one response
	Timeout   time.Duration
	Price     ModelPrice
}

// Provider names the kind of service that runs a model.
type Provider string

// The providers. With ProviderAuto, programs are written by a model at an endpoint if the settings name a URL or a
// model, and otherwise by the model of the client.
const (
	ProviderAuto      Provider = "auto"
	ProviderOpenAI    Provider = "openai" // OpenAI and compatible endpoints
	ProviderAnthropic Provider = "anthropic"
	ProviderSampling  Provider = "sampling" // the client's model, through MCP sampling
	ProviderNone      Provider = "none"
)

// ModelPrice holds the prices of a million tokens. 0 means that the price is unknown.
type ModelPrice struct {
	Input, Output float64
	Currency      string
}

// Orchestrator limits one agent task, for which a model writes programs.
type Orchestrator struct {
	Attempts int // programs that the model may write for the task
	Tools    int // tools that the model is offered
	Tokens   int // tokens that the model may use
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

func (m *Model) reader() settingReader {
	whole := readObject(
		fieldReader{"provider", "Kind of service that runs the model. auto means an endpoint if url or model is set, otherwise the client's model.", readOneOf(&m.Provider, ProviderAuto, ProviderOpenAI, ProviderAnthropic, ProviderSampling, ProviderNone)},
		fieldReader{"url", "Address of the endpoint. The default is that of the provider.", readTrustworthy(&m.URL, "https://example.com/v1")},
		fieldReader{"model", "Name of the model at the endpoint.", readText(&m.Model)},
		fieldReader{"key", "API key, or keyring if it is stored in the system's keyring.", secret(readText(&m.Key))},
		fieldReader{"maxTokens", "Maximum number of tokens of one answer.", readInt(&m.MaxTokens, 256, 1_000_000)},
		fieldReader{"timeout", "Maximum time of one request.", readDuration(&m.Timeout, time.Second, time.Hour)},
		fieldReader{"price", "Price of a million tokens, for statistics.", readObject(
			fieldReader{"input", "Price of a million tokens that the model reads.", readFloat(&m.Price.Input, 0, 1_000_000)},
			fieldReader{"output", "Price of a million tokens that the model writes.", readFloat(&m.Price.Output, 0, 1_000_000)},
			fieldReader{"currency", "Currency, as it is shown before the amount.", readCurrency(&m.Price.Currency)},
		)},
	)
	return whole.checkedBy(func(r *nodeReader, n *valueNode) {
		whole.read(r, n)
		if m.Model == "" && (m.URL != "" || m.IsEndpoint()) && n.kind == objectKind && n.findEntry("model") == nil {
			r.addProblem(n, "set model to the name that the endpoint uses", "model is missing")
		}
	})
}

func readCurrency(s *string) settingReader {
	return readChecked(s, "a currency such as $ or EUR", func(s string) bool { return regexp.MustCompile(`^[\p{Sc}A-Za-z ]{1,8}$`).MatchString(s) })
}

func (o *Orchestrator) reader() settingReader {
	return readObject(
		fieldReader{"attempts", "Maximum number of programs that the model may write for one agent task.", readInt(&o.Attempts, 1, 10)},
		fieldReader{"tools", "Maximum number of tools whose definitions the model receives.", readInt(&o.Tools, 1, 50)},
		fieldReader{"tokens", "Maximum number of tokens that one agent task may use.", readInt(&o.Tokens, 1000, 100_000_000)},
	)
}
