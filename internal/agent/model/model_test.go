package model_test

import (
	"context"
	"encoding/json"
	"net"
	"strings"
	"testing"
	"time"

	"retort/internal/agent/model"
	"retort/internal/agent/model/modeltest"
	"retort/internal/core"
)

func prompt() model.ModelPrompt {
	return model.ModelPrompt{System: "system", Messages: []model.PromptMessage{{Role: model.User, Text: "task"}}, MaxTokens: 100}
}

func endpoint(t *testing.T, f model.APIFormat, url string, timeout time.Duration) (*model.ModelEndpoint, *[]time.Duration) {
	t.Helper()
	var pauses []time.Duration
	e, refused := model.New(model.Options{Format: f, URL: url, Model: "m", Key: "key-1", Timeout: timeout, Pause: func(_ context.Context, d time.Duration) error {
		pauses = append(pauses, d)
		return nil
	}})
	if refused != nil {
		t.Fatal(refused)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e, &pauses
}

// TestFormats checks that both API formats give the same replies and the same errors, with streamed and with whole
// answers.
func TestFormats(t *testing.T) {
	for _, f := range []model.APIFormat{model.OpenAI, model.Anthropic} {
		for name, c := range map[string]struct {
			steps   []modeltest.ScriptedStep
			text    string // text of the answer
			kind    core.Kind
			said    string
			asked   int
			cut     bool
			pause   time.Duration
			timeout time.Duration
		}{
			"streamed":          {steps: []modeltest.ScriptedStep{{Text: "const é = 1; // " + strings.Repeat("long ", 30)}}, text: "const é = 1; // " + strings.Repeat("long ", 30), asked: 1},
			"whole":             {steps: []modeltest.ScriptedStep{{Text: "x", Plain: true}}, text: "x", asked: 1},
			"overloaded":        {steps: []modeltest.ScriptedStep{{Status: 529}, {Status: 500}, {Text: "x"}}, text: "x", asked: 3},
			"too many requests": {steps: []modeltest.ScriptedStep{{Status: 429, Header: map[string]string{"Retry-After": "7"}}, {Text: "x"}}, text: "x", asked: 2, pause: 7 * time.Second},
			"always too many":   {steps: []modeltest.ScriptedStep{{Status: 429}}, kind: core.KindUpstreamGone, said: "HTTP 429: status 429", asked: 4},
			"come back in days": {steps: []modeltest.ScriptedStep{{Status: 429, Header: map[string]string{"Retry-After": "90000"}}}, kind: core.KindUpstreamGone, said: "HTTP 429", asked: 1},
			"wrong key":         {steps: []modeltest.ScriptedStep{{Status: 401}}, kind: core.KindUpstreamGone, said: "HTTP 401", asked: 1},
			"declines":          {steps: []modeltest.ScriptedStep{{Refuse: "I must not"}}, kind: core.KindPolicy, said: "the model declined: I must not", asked: 1},
			"no JSON":           {steps: []modeltest.ScriptedStep{{Raw: "<html>"}}, kind: core.KindUpstreamGone, said: "cannot be read", asked: 1},
			"breaks off":        {steps: []modeltest.ScriptedStep{{Text: "const x", Broken: true}}, kind: core.KindUpstreamGone, said: "broke off", asked: 1},
			"never ends":        {steps: []modeltest.ScriptedStep{{Endless: true}}, asked: 1, cut: true},
			"redirects":         {steps: []modeltest.ScriptedStep{{Status: 307, Header: map[string]string{"Location": "/v2"}}}, kind: core.KindUpstreamGone, said: "redirects", asked: 1},
			"huge":              {steps: []modeltest.ScriptedStep{{Raw: `{"choices":[{"message":{"content":"` + strings.Repeat("x", 17<<20)}}, kind: core.KindUpstreamGone, said: "more than 16 MB", asked: 1},
			"says nothing":      {steps: []modeltest.ScriptedStep{{Hang: true}}, kind: core.KindUpstreamTimeout, said: "not answer within", asked: 1, timeout: 300 * time.Millisecond},
		} {
			t.Run(string(f)+"/"+name, func(t *testing.T) {
				s := modeltest.New(func(n int, _ modeltest.ReceivedRequest) modeltest.ScriptedStep {
					return c.steps[min(n, len(c.steps))-1]
				})
				defer s.Close()
				e, pauses := endpoint(t, f, s.URL, c.timeout)
				r, failed := e.Reply(t.Context(), prompt())
				if c.kind != "" {
					if failed == nil || failed.Kind != c.kind || !strings.Contains(failed.Message, c.said) {
						t.Fatalf("%v, want %s %q", failed, c.kind, c.said)
					}
				} else if failed != nil || r.Cut != c.cut || !c.cut && r.Text != c.text || len(r.Text) > 900 {
					t.Fatalf("%q, %v", r.Text, failed)
				}
				if c.text != "" && (r.Input != 100 || r.Output != 20 || r.Estimated || r.Model != "scripted") {
					t.Errorf("%+v", r)
				}
				asked := s.Requests()
				if len(asked) != c.asked {
					t.Errorf("it was asked %d times, want %d", len(asked), c.asked)
				}
				if c.pause != 0 && (*pauses)[0] != c.pause {
					t.Errorf("it waited %v, want %v", *pauses, c.pause)
				}
				checkAsked(t, f, asked[0])
			})
		}
	}
}

func checkAsked(t *testing.T, f model.APIFormat, a modeltest.ReceivedRequest) {
	t.Helper()
	var body map[string]any
	if json.Unmarshal([]byte(a.Body), &body) != nil || body["model"] != "m" || body["stream"] != true || body["max_tokens"] != 100.0 || a.Last != "task" {
		t.Errorf("asked %s", a.Body)
	}
	if f == model.Anthropic {
		if a.Path != "/v1/messages" || a.Header.Get("X-Api-Key") != "key-1" || a.Header.Get("Anthropic-Version") == "" || body["system"] != "system" {
			t.Errorf("%+v", a)
		}
		return
	}
	if a.Path != "/v1/chat/completions" || a.Header.Get("Authorization") != "Bearer key-1" || !strings.Contains(a.Body, `"role":"system"`) {
		t.Errorf("%+v", a)
	}
}

// TestAddresses checks that an endpoint's URL must use https, or http to this machine. It also checks that a
// forbidden address, such as a link-local one, is refused before it is dialled.
func TestAddresses(t *testing.T) {
	for url, ok := range map[string]bool{
		"https://models.example/v1": true, "http://127.0.0.1:1/v1": true, "http://[::1]:1/v1": true, "http://localhost:1/v1": true,
		"http://models.example/v1": false, "http://10.0.0.1/v1": false, "http://169.254.169.254/v1": false, "http://127.0.0.1.models.example/v1": false,
		"ftp://127.0.0.1/v1": false, "https://user:pass@models.example/v1": false, "": false, "/v1": false,
	} {
		if _, refused := model.New(model.Options{URL: url, Model: "m"}); (refused == nil) != ok {
			t.Errorf("%q: %v", url, refused)
		}
	}
	for _, url := range []string{"https://169.254.169.254/v1", "https://[fe80::1]/v1", "https://0.0.0.0/v1", "https://[::ffff:169.254.169.254]/v1"} {
		var dialled []string
		e, refused := model.New(model.Options{URL: url, Model: "m", Dial: func(_ context.Context, _, address string) (net.Conn, error) {
			dialled = append(dialled, address)
			return nil, net.ErrClosed
		}})
		if refused != nil {
			t.Fatal(refused)
		}
		if _, failed := e.Reply(t.Context(), prompt()); failed == nil || !strings.Contains(failed.Message, "which is not allowed for a model") || len(dialled) > 0 {
			t.Errorf("%s: %v, dialled %v", url, failed, dialled)
		}
	}
}

// TestCountsAndCancels checks that token counts are estimated if the endpoint reports none, and that a cancelled
// request gives an error of kind cancelled.
func TestCountsAndCancels(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := modeltest.New(func(n int, _ modeltest.ReceivedRequest) modeltest.ScriptedStep {
		if n > 1 {
			cancel()
			return modeltest.ScriptedStep{Hang: true}
		}
		return modeltest.ScriptedStep{Raw: `{"choices":[{"message":{"content":"12345678"},"finish_reason":"length"}]}`}
	})
	defer s.Close()
	e, _ := endpoint(t, model.OpenAI, s.URL, 0)
	if r, failed := e.Reply(t.Context(), prompt()); failed != nil || !r.Estimated || !r.Cut || r.Output != 2 || r.Input != 3 {
		t.Errorf("%+v, %v", r, failed)
	}
	if _, failed := e.Reply(ctx, prompt()); failed == nil || failed.Kind != core.KindCancelled {
		t.Errorf("got %v, want a request that was cancelled", failed)
	}
}

func TestSampling(t *testing.T) {
	answer := `{"role":"assistant","model":"c","content":[{"type":"text","text":"a"},{"type":"image"},{"type":"text","text":"b"}]}`
	var asked core.ServerRequest
	peer := &core.ClientPeer{Samples: true, Ask: func(_ context.Context, a core.ServerRequest) (json.RawMessage, *core.Error) {
		asked = a
		return json.RawMessage(answer), nil
	}}
	r, failed := model.ClientModel{}.Reply(core.WithPeer(t.Context(), peer), prompt())
	if failed != nil || r.Text != "ab" || r.Model != "c" || !r.Estimated || asked.Method != core.MethodSample || !strings.Contains(string(asked.Params), `"systemPrompt":"system"`) {
		t.Errorf("%+v %v %s", r, failed, asked.Params)
	}
	for text, want := range map[string]string{
		`{"role":"assistant","content":{"type":"text","text":"a"}}`:                         "",
		`{"role":"assistant","content":{"type":"text","text":"no"},"stopReason":"refusal"}`: "declined",
		`{"role":"assistant","content":7}`:                                                  "cannot be read",
	} {
		answer = text
		if _, failed := (model.ClientModel{}).Reply(core.WithPeer(t.Context(), peer), prompt()); (failed == nil) != (want == "") || failed != nil && !strings.Contains(failed.Message, want) {
			t.Errorf("%s: %v", text, failed)
		}
	}
	if _, failed := (model.ClientModel{}).Reply(t.Context(), prompt()); failed == nil {
		t.Error("a model answers that is not offered")
	}
}
