package search

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// TextEmbedder converts texts to vectors, so that texts with similar meaning get similar vectors. All vectors of a
// model have the same length. It must be safe for concurrent use.
type TextEmbedder interface {
	// Model returns the name of the model. Vectors of different models are never compared.
	Model() string
	// Embed returns one vector for each text, in the same order.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

const (
	maxDimensions = 8192
	numberBytes   = 32       // of one number in a response, with room to spare
	maxComplaint  = 64 << 10 // bytes of a response that is an error
)

// EmbeddingEndpoint implements TextEmbedder with an OpenAI-compatible embeddings endpoint.
type EmbeddingEndpoint struct {
	url, model, key string
	client          *http.Client
}

// NewEndpoint returns the endpoint at base, such as http://127.0.0.1:11434/v1. The API key may be empty. Redirects
// are not followed, because they could send the key elsewhere.
func NewEndpoint(base, model, apiKey string) *EmbeddingEndpoint {
	return &EmbeddingEndpoint{
		url: strings.TrimRight(base, "/") + "/embeddings", model: model, key: apiKey,
		client: &http.Client{
			Transport:     http.DefaultTransport.(*http.Transport).Clone(),
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// Model returns the model's name.
func (e *EmbeddingEndpoint) Model() string { return e.model }

// Close closes idle connections.
func (e *EmbeddingEndpoint) Close() error {
	e.client.CloseIdleConnections()
	return nil
}

// Embed sends one request to the endpoint.
func (e *EmbeddingEndpoint) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	body, err := json.Marshal(map[string]any{"model": e.model, "input": texts})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if e.key != "" {
		request.Header.Set("Authorization", "Bearer "+e.key)
	}
	response, err := e.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, responseError(response)
	}
	limit := int64(len(texts))*maxDimensions*numberBytes + maxComplaint
	data, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("the answer has more than %d bytes", limit)
	}
	return readEmbeddings(data, len(texts))
}

// responseError returns the error for a response with an HTTP status other than 200.
func responseError(response *http.Response) error {
	data, _ := io.ReadAll(io.LimitReader(response.Body, maxComplaint))
	var said struct {
		Error struct{ Message string }
	}
	text := response.Status
	if json.Unmarshal(data, &said) == nil && said.Error.Message != "" {
		text += ": " + said.Error.Message[:min(len(said.Error.Message), 200)]
	}
	return fmt.Errorf("it answered %q", text)
}

// readEmbeddings returns the vectors that the endpoint's response contains. There must be one for each of the n texts
// that were sent.
func readEmbeddings(data []byte, n int) ([][]float32, error) {
	var answer struct {
		Data []struct {
			Index     *int
			Embedding []float32
		}
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return nil, fmt.Errorf("the answer cannot be read: %w", err)
	}
	if len(answer.Data) != n {
		return nil, fmt.Errorf("it returned %d vectors for %d texts", len(answer.Data), n)
	}
	vectors := make([][]float32, n)
	for i, d := range answer.Data {
		if d.Index != nil {
			i = *d.Index
		}
		if i < 0 || i >= n || vectors[i] != nil {
			return nil, fmt.Errorf("it did not return exactly one vector for each text")
		}
		if len(d.Embedding) == 0 || len(d.Embedding) > maxDimensions {
			return nil, fmt.Errorf("it returned a vector of %d numbers", len(d.Embedding))
		}
		vectors[i] = d.Embedding
	}
	return vectors, nil
}
