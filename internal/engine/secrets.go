package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"retort/internal/base/seal"
	"retort/internal/core"
	"retort/internal/mcp/client"
	"retort/internal/privacy/secrets"
)

// modelKey returns the secrets in a model's API key. A key under 12 characters is usually a placeholder for a server
// that needs none.
func modelKey(key string) []secrets.NamedSecret {
	const least = 12
	if len(key) < least {
		return secrets.FromVariable("retort", "model.key", key)
	}
	return []secrets.NamedSecret{{Label: "retort model.key", Value: key}}
}

// registering wraps an Authorizer and registers the credentials that it returns as secrets.
type registering struct {
	client.Authorizer
	server  string
	secrets *secrets.Masker
}

func (r registering) Authorization(ctx context.Context) (string, error) {
	value, err := r.Authorizer.Authorization(ctx)
	r.secrets.Add(secrets.FromHeader(r.server, "Authorization", value)...)
	return value, err
}

// masked returns err without secrets. If it contains one, the cause is removed, because printing it would reveal the
// secret.
func masked(m *secrets.Masker, err error) error {
	if err == nil || m.MaskString(err.Error()) == err.Error() && m.MaskString(core.AsError(err).Hint) == core.AsError(err).Hint {
		return err
	}
	return maskedError(m, core.AsError(err))
}

func maskedError(m *secrets.Masker, e *core.Error) *core.Error {
	if e == nil {
		return nil
	}
	c := *e
	c.Err = nil // who prints it would print the secret; what it is to errors.Is is in Kind
	for _, text := range []*string{&c.Message, &c.Hint, &c.Frame, &c.Stack} {
		*text = m.MaskString(*text)
	}
	if c.Message == e.Message && c.Hint == e.Hint {
		c.Err = e.Err
	}
	return &c
}

// maskedOutcome returns an Outcome without secrets. A program may have received a secret that no rule detected, or a
// model may have written one.
func maskedOutcome(m *secrets.Masker, o Outcome) Outcome {
	o.Result, o.Output, o.Error = m.Mask(o.Result), m.MaskString(o.Output), maskedError(m, o.Error)
	o.Summary = m.MaskString(o.Summary)
	for i := range o.Warnings {
		o.Warnings[i] = m.MaskString(o.Warnings[i])
	}
	for i := range o.Artifacts {
		o.Artifacts[i].Preview = m.MaskString(o.Artifacts[i].Preview)
	}
	for i := range o.Approvals {
		o.Approvals[i].Arguments, o.Approvals[i].Rule = m.Mask(o.Approvals[i].Arguments), m.MaskString(o.Approvals[i].Rule)
	}
	for i := range o.Effects {
		o.Effects[i].Arguments = m.Mask(o.Effects[i].Arguments)
	}
	for i := range o.Calls {
		o.Calls[i].Arguments = m.Mask(o.Calls[i].Arguments)
	}
	return o
}

// maskedListing lists servers for the catalog, without secrets. A server may have its own in its descriptions, and
// the catalog is stored on disk.
type maskedListing struct {
	lister
	secrets *secrets.Masker
}

func (l maskedListing) List(ctx context.Context, server string) ([]json.RawMessage, string, error) {
	return l.masked(l.lister.List(ctx, server))
}

func (l maskedListing) ListOwn(ctx context.Context, server string) ([]json.RawMessage, string, error) {
	return l.masked(l.lister.ListOwn(ctx, server))
}

func (l maskedListing) Pin(ctx context.Context, server, tool string, since time.Time) (string, error) {
	pin, err := l.lister.Pin(ctx, server, tool, since)
	return pin, masked(l.secrets, err)
}

func (l maskedListing) masked(tools []json.RawMessage, instructions string, err error) ([]json.RawMessage, string, error) {
	for i := range tools {
		tools[i] = l.secrets.Mask(tools[i])
	}
	return tools, l.secrets.MaskString(instructions), masked(l.secrets, err)
}

// maskedStatus returns the status of a server without secrets. Lines are masked together, since a secret may span two
// of them.
func maskedStatus(m *secrets.Masker, s client.ServerStatus) client.ServerStatus {
	lines := func(all []string) []string {
		text := strings.Join(all, "\n")
		if clean := m.MaskString(text); clean != text {
			return strings.Split(clean, "\n")
		}
		return all
	}
	s.Stderr, s.Rubbish.Samples = lines(s.Stderr), lines(s.Rubbish.Samples)
	s.Name, s.Version, s.LastError = m.MaskString(s.Name), m.MaskString(s.Version), maskedError(m, s.LastError)
	return s
}

// maskedChannel wraps an approval channel that leads off this machine: it removes secrets from the questions.
func maskedChannel(m *secrets.Masker, ask core.ApprovalChannel) core.ApprovalChannel {
	return func(ctx context.Context, a core.Approval) (core.ApprovalAnswer, bool) {
		text, err := json.Marshal(a)
		if err != nil {
			return core.ApprovalAnswer{}, false
		}
		if clean := m.Mask(text); len(clean) != len(text) || string(clean) != string(text) {
			var b core.Approval
			if json.Unmarshal(clean, &b) != nil {
				return core.ApprovalAnswer{}, false
			}
			b.ID, b.Digest = a.ID, a.Digest
			a = b
		}
		return ask(ctx, a)
	}
}

// maskedLog represents a log handler that removes secrets from messages and attributes.
type maskedLog struct {
	slog.Handler
	secrets *secrets.Masker
}

func (h maskedLog) Handle(ctx context.Context, r slog.Record) error {
	clean := slog.NewRecord(r.Time, r.Level, h.secrets.MaskString(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(h.attr(a))
		return true
	})
	return h.Handler.Handle(ctx, clean)
}

func (h maskedLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = h.attr(a)
	}
	return maskedLog{h.Handler.WithAttrs(clean), h.secrets}
}

func (h maskedLog) WithGroup(name string) slog.Handler {
	return maskedLog{h.Handler.WithGroup(name), h.secrets}
}

func (h maskedLog) attr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		v = slog.StringValue(h.secrets.MaskString(v.String()))
	case slog.KindGroup:
		var clean []slog.Attr
		for _, inner := range v.Group() {
			clean = append(clean, h.attr(inner))
		}
		v = slog.GroupValue(clean...)
	case slog.KindAny:
		text := fmt.Sprintf("%+v", v.Any())
		if b, ok := v.Any().([]byte); ok {
			text = string(b)
		}
		if clean := h.secrets.MaskString(text); clean != text {
			v = slog.StringValue(clean)
		}
	}
	return slog.Attr{Key: h.secrets.MaskString(a.Key), Value: v}
}

// hushed returns the engine's logger, which removes secrets.
func hushed(log *slog.Logger, m *secrets.Masker) *slog.Logger {
	return slog.New(maskedLog{cmp.Or(log, slog.New(slog.DiscardHandler)).Handler(), m})
}

// register registers all secrets of a configuration with the masker.
func (st *Stores) register(f *inForce) {
	for i, s := range f.servers {
		if _, told := s.Auth.(registering); !told && s.Auth != nil && f.clients[s.Name] == nil { // ours tells by itself
			f.servers[i].Auth = registering{s.Auth, s.Name, st.secrets}
		}
		for name, value := range s.Env {
			st.secrets.Add(secrets.FromVariable(s.Name, name, value)...)
		}
		for name, value := range s.Headers {
			st.secrets.Add(secrets.FromHeader(s.Name, name, value)...)
		}
		st.secrets.Add(secrets.FromArguments(s.Name, s.Args)...)
		st.secrets.Add(secrets.FromAddress(s.Name+" url", s.URL)...)
	}
	s := f.config.Settings
	st.secrets.Add(secrets.FromVariable("retort", "approval.webhook.secret", s.Approval.Webhook.Secret)...)
	st.secrets.Add(secrets.FromAddress("retort approval.webhook.url", s.Approval.Webhook.URL)...)
	st.secrets.Add(secrets.FromVariable("retort", "anomalies.webhook.secret", s.Anomalies.Webhook.Secret)...)
	st.secrets.Add(secrets.FromAddress("retort anomalies.webhook.url", s.Anomalies.Webhook.URL)...)
	st.secrets.Add(secrets.FromVariable("retort", "search.embeddings.apiKey", s.Search.Embeddings.APIKey)...)
	st.secrets.Add(secrets.FromAddress("retort search.embeddings.url", s.Search.Embeddings.URL)...)
	st.secrets.Add(modelKey(s.Model.Key)...)
	st.secrets.Add(secrets.FromAddress("retort model.url", s.Model.URL)...)
	st.secrets.Add(secrets.FromAddress("retort audit.store", s.Audit.Store)...)
	st.secrets.Add(secrets.FromArguments("retort audit.checkpoint", s.Audit.Checkpoint)...)
	for _, secret := range s.Network.Secrets {
		st.secrets.Add(append(secrets.FromHeader("retort network.secrets", secret.Header, secret.Value), secrets.NamedSecret{
			Label: "retort network.secrets", Value: secret.Value,
		})...)
	}
	if name := s.PII.Key.Variable; name != "" {
		st.secrets.Add(secrets.NamedSecret{Label: "retort " + name, Value: os.Getenv(name)})
	}
	if file := st.UserDir().ApprovalsKey(); file != "" {
		if key, err := seal.ReadKey(file); err == nil {
			st.secrets.Add(secrets.NamedSecret{Label: "retort approvals.key", Value: string(key)})
		}
	}
}
