package agent

import (
	"context"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"retort/internal/agent/model"
	"retort/internal/core"
)

// Bounds of what is told a model, in bytes.
const (
	maxWords  = 4 << 10
	maxAnswer = 64 << 10
)

func clipped(s string) string { return clippedTo(s, maxWords) }

func clippedTo(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// programOf is the program in an answer. missing says why there is none.
func (w *work) programOf(ctx context.Context, r model.Reply) (code, missing string) {
	blocks, open := fenced(r.Text)
	for _, b := range blocks {
		if len(b) > len(code) {
			code = b
		}
	}
	switch {
	case code != "" && !(open && r.Cut):
		return code, ""
	case r.Cut:
		return "", "the answer was cut off, since it is too long; answer with the program alone"
	case strings.TrimSpace(r.Text) == "":
		return "", "the answer is empty"
	}
	bare := strings.TrimSpace(r.Text)
	req := core.Request{Session: w.task.Session, Language: w.task.Language, Code: w.prelude() + bare, Only: w.only}
	if w.Runner.Judge(ctx, req) == nil {
		return bare, ""
	}
	return "", "it has no fenced code block"
}

// fenced are the code blocks of a text. open says that the last one has no end.
func fenced(text string) (blocks []string, open bool) {
	var b []string
	fence := ""
	for _, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		ticks := len(trimmed) - len(strings.TrimLeft(trimmed, "`"))
		switch {
		case fence == "" && ticks >= 3:
			fence, b = trimmed[:ticks], []string{}
		case fence != "" && ticks >= len(fence) && ticks == len(trimmed):
			blocks, fence = append(blocks, strings.Join(b, "\n")), ""
		case fence != "":
			b = append(b, strings.TrimSuffix(line, "\r"))
		}
	}
	if fence != "" {
		blocks = append(blocks, strings.Join(b, "\n"))
	}
	return blocks, fence != ""
}

// mentions reports whether a program names a tool.
func mentions(code string, o core.Offer) bool {
	_, short, _ := strings.Cut(o.Name, ".")
	return strings.Contains(code, o.Name) || short != "" && strings.Contains(code, short) || strings.Contains(code, o.Tool)
}

// prelude gives the program its inputs, in a line before its first: as the person has given them, whatever the model
// was shown of them.
func (w *work) prelude() string {
	inputs := w.task.Inputs
	if len(inputs) == 0 {
		return ""
	}
	text, _ := json.Marshal(string(inputs)) // a string is always JSON, and its JSON is Python
	switch {
	case w.python():
		return "import json; inputs = json.loads(" + string(text) + ")\n"
	case strings.Contains(string(inputs), "__proto__"): // which means something else in a literal
		return "const inputs: any = JSON.parse(" + string(text) + ");\n"
	}
	return "const inputs = " + strings.Join(strings.Split(string(inputs), "\n"), " ") + ";\n"
}

var numbered = regexp.MustCompile(`^([> ]*)(\d+)( \|.*)$`)

// placed is an error at its place in the program as it was written, without the line before it.
func (w *work) placed(e *core.Error) *core.Error {
	if e == nil || w.prelude() == "" {
		return e
	}
	c := *e
	c.Line = max(e.Line-1, 0)
	var lines []string
	for _, line := range strings.Split(e.Frame, "\n") {
		m := numbered.FindStringSubmatch(line)
		if m == nil {
			lines = append(lines, line)
			continue
		}
		n, _ := strconv.Atoi(m[2])
		if n > 1 {
			lines = append(lines, m[1]+strconv.Itoa(n-1)+m[3])
		}
	}
	c.Frame = strings.Join(lines, "\n")
	return &c
}
