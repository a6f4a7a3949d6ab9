// Package report makes what the model sees of an execution: the value and the
// output as far as they are worth their tokens, the rest in files, with a
// preview that says what is there and how to go on.
package report

import (
	"encoding/json"
	"fmt"
	"strings"

	"retort/internal/ledger"
	"retort/internal/pipeline/isolate"
	"retort/internal/run"
)

// Files keeps what is too large for the model. Paths are relative to the
// workspace of the session.
type Files interface {
	Write(path string, data []byte) error
}

// DefaultMaxTokens bounds result and output together.
const DefaultMaxTokens = 2000

// maxMessage bounds the text of an error, in bytes: enough for a message with
// its code frame, too little to carry data out.
const maxMessage = 4 << 10

// Make turns the report of a sandbox into an Outcome. The value, or the output,
// that would take the Outcome beyond maxTokens goes whole to files.
func Make(id string, r isolate.Report, maxTokens int, files Files) run.Outcome {
	o := run.Outcome{
		ExecutionID: id, Status: r.Status, Error: clip(r.Error), Warnings: r.Warnings,
		Stats: run.Stats{Sandbox: r.Backend, Runtime: r.Runtime, MemoryBytes: r.MemoryBytes, Bounds: r.Bounds},
	}
	m := maker{outcome: &o, left: maxTokens, whole: maxTokens, files: files}
	m.value(r.Value)
	m.output(strings.ToValidUTF8(string(r.Output), "\uFFFD"))
	return o
}

// Effects puts into an Outcome the calls that a dry run did not make: as many as are
// worth their tokens. All of them are in a file then.
func Effects(o *run.Outcome, effects []run.Intended, maxTokens int, files Files) {
	for i, e := range effects {
		text, _ := json.Marshal(e) // strings, and JSON that was parsed before
		n, ok := ledger.Fits(string(text), maxTokens)
		if !ok {
			o.Effects = effects[:i]
			whole, _ := json.MarshalIndent(effects, "", " ")
			m := maker{outcome: o, whole: maxTokens, files: files}
			m.spill(fmt.Sprintf("list of %d effects", len(effects)), "results/"+o.ExecutionID+".effects.json", whole, "")
			return
		}
		maxTokens -= n
	}
	o.Effects = effects
}

// Returned is the number of tokens that o puts into the model's context.
func Returned(o run.Outcome) int {
	o.Stats.Tokens = nil
	text, err := json.Marshal(o)
	if err != nil {
		return 0
	}
	return ledger.Count(string(text))
}

type maker struct {
	outcome     *run.Outcome
	left, whole int // tokens
	files       Files
}

func (m *maker) value(value json.RawMessage) {
	if len(value) == 0 {
		return
	}
	if !json.Valid(value) {
		m.outcome.Status = run.StatusError
		m.outcome.Error = run.Errorf(run.KindInternal, "report", "the sandbox sent a value that is not JSON")
		return
	}
	if n, ok := ledger.Fits(string(value), m.left); ok {
		m.outcome.Result, m.left = value, m.left-n
		return
	}
	name, data, text := "results/"+m.outcome.ExecutionID+".json", []byte(value), ""
	if json.Unmarshal(value, &text) == nil {
		name, data = "results/"+m.outcome.ExecutionID+".txt", []byte(text)
	}
	m.spill("result", name, data, preview(value, m.whole/4))
}

func (m *maker) output(text string) {
	if text == "" {
		return
	}
	if n, ok := ledger.Fits(text, m.left); ok {
		m.outcome.Output, m.left = text, m.left-n
		return
	}
	name := "results/" + m.outcome.ExecutionID + ".output.txt"
	m.outcome.Output = ends(text, m.left*3/4)
	m.spill("output", name, []byte(text), "")
}

// spill writes data to a file and says so; where that fails, the preview is
// all there is and the warning says why.
func (m *maker) spill(what, name string, data []byte, preview string) {
	o := m.outcome
	n, _ := ledger.Fits(preview, m.left)
	m.left = max(0, m.left-n)
	if err := m.files.Write(name, data); err != nil {
		o.Warnings = append(o.Warnings, fmt.Sprintf("the %s (%d bytes) is too large to return and could not be kept: %s", what, len(data), run.AsError(err).Message))
		if preview != "" {
			o.Artifacts = append(o.Artifacts, run.Artifact{Bytes: int64(len(data)), Preview: preview})
		}
		return
	}
	o.Artifacts = append(o.Artifacts, run.Artifact{Path: name, Bytes: int64(len(data)), Preview: preview})
	o.Warnings = append(o.Warnings, fmt.Sprintf("the %s (%d bytes) is larger than results.maxTokens (%d): it is whole in ./workspace/%s; "+
		"read what you need of it there in the next program", what, len(data), m.whole, name))
}

// ends is the beginning and the end of text in about limit tokens.
func ends(text string, limit int) string {
	if limit < 40 {
		return ""
	}
	head := ledger.Prefix(text, limit/2)
	tail := text[len(text)-min(len(head), len(text)-len(head)):]
	tail = strings.ToValidUTF8(tail, "")
	return fmt.Sprintf("%s\n… %d bytes left out …\n%s", head, len(text)-len(head)-len(tail), tail)
}

func clip(e *run.Error) *run.Error {
	if e == nil {
		return nil
	}
	c := *e
	c.Message, c.Hint, c.Stack, c.Frame = cut(e.Message), cut(e.Hint), cut(e.Stack), cut(e.Frame)
	return &c
}

func cut(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= maxMessage {
		return s
	}
	return strings.ToValidUTF8(s[:maxMessage], "") + fmt.Sprintf("… (%d bytes in all)", len(s))
}
