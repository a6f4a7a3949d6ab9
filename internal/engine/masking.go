package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"retort/internal/core"
	"retort/internal/mcp/client"
	"retort/internal/privacy/secrets"
)

// maskError returns err with secrets removed from its text and hint. If there are any, the returned error wraps no
// other error, because printing the wrapped one would reveal the secret.
func maskError(m *secrets.Masker, err error) error {
	if err == nil || m.MaskString(err.Error()) == err.Error() && m.MaskString(core.AsError(err).Hint) == core.AsError(err).Hint {
		return err
	}
	return maskCoreError(m, core.AsError(err))
}

// maskCoreError works like maskError, for a *core.Error.
func maskCoreError(m *secrets.Masker, e *core.Error) *core.Error {
	if e == nil {
		return nil
	}
	c := *e
	c.Err = nil // printing it would print the secret; c.Kind still serves errors.Is
	for _, text := range []*string{&c.Message, &c.Hint, &c.Frame, &c.Stack} {
		*text = m.MaskString(*text)
	}
	if c.Message == e.Message && c.Hint == e.Hint {
		c.Err = e.Err
	}
	return &c
}

// maskOutcome returns an Outcome without secrets. A program may have received a secret that no rule detected, or a
// model may have written one.
func maskOutcome(m *secrets.Masker, o Outcome) Outcome {
	o.Result, o.Output, o.Error = m.Mask(o.Result), m.MaskString(o.Output), maskCoreError(m, o.Error)
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
		for k := range o.Calls[i].IDs {
			o.Calls[i].IDs[k] = m.MaskString(o.Calls[i].IDs[k])
		}
	}
	return o
}

// maskedLister lists servers for the catalog and removes secrets from what they list. A server may put its
// credentials into descriptions, and the catalog is stored on disk.
type maskedLister struct {
	poolLister
	secrets *secrets.Masker
}

func (l maskedLister) List(ctx context.Context, server string) ([]json.RawMessage, string, error) {
	return l.maskListing(l.poolLister.List(ctx, server))
}

func (l maskedLister) ListOwn(ctx context.Context, server string) ([]json.RawMessage, string, error) {
	return l.maskListing(l.poolLister.ListOwn(ctx, server))
}

func (l maskedLister) Pin(ctx context.Context, server, tool string, since time.Time) (string, error) {
	pin, err := l.poolLister.Pin(ctx, server, tool, since)
	return pin, maskError(l.secrets, err)
}

func (l maskedLister) maskListing(tools []json.RawMessage, instructions string, err error) ([]json.RawMessage, string, error) {
	for i := range tools {
		tools[i] = l.secrets.Mask(tools[i])
	}
	return tools, l.secrets.MaskString(instructions), maskError(l.secrets, err)
}

// maskStatus returns the status of a server without secrets. It masks all output lines of the server as one text,
// because a secret may span two lines.
func maskStatus(m *secrets.Masker, s client.ServerStatus) client.ServerStatus {
	lines := func(all []string) []string {
		text := strings.Join(all, "\n")
		if clean := m.MaskString(text); clean != text {
			return strings.Split(clean, "\n")
		}
		return all
	}
	s.Stderr, s.Rubbish.Samples = lines(s.Stderr), lines(s.Rubbish.Samples)
	s.Name, s.Version, s.LastError = m.MaskString(s.Name), m.MaskString(s.Version), maskCoreError(m, s.LastError)
	return s
}

// maskChannel wraps an approval channel that sends questions to another machine, and removes secrets from these
// questions.
func maskChannel(m *secrets.Masker, ask core.ApprovalChannel) core.ApprovalChannel {
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

// maskedLogHandler wraps a log handler and removes secrets from messages and attributes.
type maskedLogHandler struct {
	slog.Handler
	secrets *secrets.Masker
}

func (h maskedLogHandler) Handle(ctx context.Context, r slog.Record) error {
	clean := slog.NewRecord(r.Time, r.Level, h.secrets.MaskString(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(h.maskAttr(a))
		return true
	})
	return h.Handler.Handle(ctx, clean)
}

func (h maskedLogHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = h.maskAttr(a)
	}
	return maskedLogHandler{h.Handler.WithAttrs(clean), h.secrets}
}

func (h maskedLogHandler) WithGroup(name string) slog.Handler {
	return maskedLogHandler{h.Handler.WithGroup(name), h.secrets}
}

func (h maskedLogHandler) maskAttr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		v = slog.StringValue(h.secrets.MaskString(v.String()))
	case slog.KindGroup:
		var clean []slog.Attr
		for _, inner := range v.Group() {
			clean = append(clean, h.maskAttr(inner))
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

// newMaskedLogger returns a logger that removes secrets and then passes its records to log. log may be nil.
func newMaskedLogger(log *slog.Logger, m *secrets.Masker) *slog.Logger {
	return slog.New(maskedLogHandler{cmp.Or(log, slog.New(slog.DiscardHandler)).Handler(), m})
}
