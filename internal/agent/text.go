package agent

import (
	"context"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"retort/internal/agent/model"
	"retort/internal/core"
)

// Bounds on the texts in a prompt, in bytes.
const (
	maxWords  = 4 << 10
	maxAnswer = 64 << 10
)

func clipText(s string) string { return clippedTo(s, maxWords) }

func clippedTo(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// programOf extracts the program from a model's answer. If the answer has no program, missing is a text that tells the
// model the reason.
func (w *taskRun) programOf(ctx context.Context, r model.ModelReply) (code, missing string) {
	blocks, open := fencedBlocks(r.Text)
	for _, b := range blocks {
		if len(b) > len(code) {
			code = b
		}
	}
	switch {
	case code != "" && !(open && r.Cut):
		return code, ""
	case r.Cut:
		return "", "the answer was cut off because it was too long; answer only with the program"
	case strings.TrimSpace(r.Text) == "":
		return "", "the answer is empty"
	}
	bare := strings.TrimSpace(r.Text)
	req := core.ExecutionRequest{Session: w.task.Session, Language: w.task.Language, Code: w.inputsPrelude() + bare, Only: w.only}
	if w.Runner.Judge(ctx, req) == nil {
		return bare, ""
	}
	return "", "it does not contain a fenced code block"
}

// fencedBlocks returns the code blocks in a text. open is true if the last block is not closed.
func fencedBlocks(text string) (blocks []string, open bool) {
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

// mentionsTool reports whether the code of a program contains the name of a tool.
func mentionsTool(code string, o core.OfferedTool) bool {
	_, short, _ := strings.Cut(o.Name, ".")
	return strings.Contains(code, o.Name) || short != "" && strings.Contains(code, short) || strings.Contains(code, o.Tool)
}

// inputsPrelude returns a line of code that declares the program's inputs. It is put before the program. The inputs
// have the values that the user has passed, even if the model saw privacy tokens in their place.
func (w *taskRun) inputsPrelude() string {
	inputs := w.task.Inputs
	if len(inputs) == 0 {
		return ""
	}
	text, _ := json.Marshal(string(inputs)) // a string can always be encoded, and its JSON is valid Python
	switch {
	case w.isPython():
		return "import json; inputs = json.loads(" + string(text) + ")\n"
	case strings.Contains(string(inputs), "__proto__"): // has another meaning in a literal
		return "const inputs: any = JSON.parse(" + string(text) + ");\n"
	}
	return "const inputs = " + strings.Join(strings.Split(string(inputs), "\n"), " ") + ";\n"
}

var numberedLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([> ]*)(\d+)( \|.*)$`)
})

// adjustLine corrects the line number of an error. The number counts the line that declares the inputs, which is not
// part of the model's program.
func (w *taskRun) adjustLine(e *core.Error) *core.Error {
	if e == nil || w.inputsPrelude() == "" {
		return e
	}
	c := *e
	c.Line = max(e.Line-1, 0)
	var lines []string
	for _, line := range strings.Split(e.Frame, "\n") {
		m := numberedLine().FindStringSubmatch(line)
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
