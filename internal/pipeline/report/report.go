// Package report creates the Outcome that the model gets of an execution. The Outcome contains the result and the
// output if they are small enough. Otherwise they are written to files, and the Outcome contains previews that
// describe them and say how to continue.
package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"retort/internal/core"
	"retort/internal/sandbox"
	"retort/internal/tokens"
)

// FileStore stores results that are too large for the model, at paths relative to the session's workspace.
type FileStore interface {
	Write(path string, data []byte) error
}

// maxMessage bounds the text of an error, in bytes. It is enough for a message with its code frame, but too small for
// a program to return much data in it.
const maxMessage = 4 << 10

// Options configures how an execution's Outcome is created.
type Options struct {
	ID        string
	MaxTokens int       // of value and output together
	Files     FileStore // nil only where there can be nothing to keep
	Language  core.Language
	// Hide returns a text with personal data hidden. If nil, nothing is hidden. It is called before anything is cut,
	// because a part of a value might not be recognised.
	Hide func(text string) string
}

// MakeOutcome converts a sandbox's report to an Outcome. A result or an output that exceeds the limit is written to a
// file. Personal data in that file is not hidden, because only programs read it.
func MakeOutcome(r sandbox.RunReport, options Options) core.Outcome {
	o := core.Outcome{
		ExecutionID: options.ID, Status: r.Status, Warnings: r.Warnings,
		Stats: core.ExecutionStats{Sandbox: r.Backend, Isolation: r.Isolation, Runtime: r.Runtime, MemoryBytes: r.MemoryBytes, Bounds: r.Bounds},
	}
	m := options.newMaker(&o)
	o.Error = m.clipError(r.Error)
	m.reportValue(r.Value)
	output := strings.ToValidUTF8(string(r.Output), "\uFFFD")
	if options.Hide != nil && r.Status != core.StatusOK {
		output = completeLines(output)
	}
	m.reportOutput(output)
	return o
}

func (o Options) newMaker(outcome *core.Outcome) *outcomeMaker {
	if o.Hide == nil {
		o.Hide = func(text string) string { return text }
	}
	return &outcomeMaker{Options: o, outcome: outcome, left: o.MaxTokens, view: previewMaker{o.Hide}}
}

// completeLines shortens the output of a stopped program if its last line is incomplete, because the output may have
// been stopped in the middle of a personal value. It cuts off as many bytes of that line as a personal value can
// have.
func completeLines(output string) string {
	line := strings.LastIndexByte(output, '\n') + 1
	if line == len(output) {
		return output
	}
	return strings.ToValidUTF8(output[:max(line, len(output)-hideMargin)], "") + "…"
}

// AddEffects adds to an Outcome the calls that a dry run did not make. If they do not all fit into the token limit,
// all of them are written to a file.
func AddEffects(o *core.Outcome, effects []core.IntendedCall, options Options) {
	m := options.newMaker(o)
	for i, e := range effects {
		text, _ := json.Marshal(e) // strings, and JSON that was parsed before
		n, ok := tokens.FitsLimit(string(text), m.left)
		if !ok {
			o.Effects = effects[:i]
			whole, _ := json.MarshalIndent(effects, "", " ")
			m.spillToFile(fmt.Sprintf("list of %d effects", len(effects)), "results/"+o.ExecutionID+".effects.json", whole, "", "")
			return
		}
		m.left -= n
	}
	o.Effects = effects
}

// CountReturned returns how many tokens an Outcome adds to the model's context.
func CountReturned(o core.Outcome) int {
	text, err := json.Marshal(o.ForModel())
	if err != nil {
		return 0
	}
	return tokens.CountTokens(string(text))
}

type outcomeMaker struct {
	Options
	outcome *core.Outcome
	left    int // tokens
	view    previewMaker
}

func (m *outcomeMaker) reportValue(value json.RawMessage) {
	if len(value) == 0 {
		return
	}
	if !json.Valid(value) {
		m.outcome.Status = core.StatusError
		m.outcome.Error = core.Errorf(core.KindInternal, "report", "the sandbox sent a value that is not JSON")
		return
	}
	if n, ok := tokens.FitsLimit(string(value), m.left); ok {
		m.outcome.Result, m.left = value, m.left-n
		return
	}
	name, data, how := "results/"+m.ID+".json", []byte(value), wholeJSON
	switch trimSpace(value)[0] {
	case '"':
		name, data, how = "results/"+m.ID+".txt", []byte(stringText(bytes.TrimSpace(value))), lineHint
	case '[':
		name, data, how = "results/"+m.ID+".jsonl", jsonLines(value), rowLines
		if len(data) > muchJSON {
			how = rowsInParts
		}
	}
	m.spillToFile("result", name, data, m.view.previewValue(value, m.MaxTokens/4), how(m.Language, name))
}

// muchJSON is the size of JSON, in bytes, above which a program should not load it into memory at once.
const muchJSON = 8 << 20

// jsonLines returns an array with each item on its own line.
func jsonLines(array []byte) []byte {
	out := make([]byte, 0, len(array))
	for item := range arrayItems(array) {
		for _, b := range item {
			if b != '\n' && b != '\r' { // strings have none
				out = append(out, b)
			}
		}
		out = append(out, '\n')
	}
	return out
}

func (m *outcomeMaker) reportOutput(text string) {
	if text == "" {
		return
	}
	if n, ok := tokens.FitsLimit(text, m.left); ok {
		m.outcome.Output, m.left = text, m.left-n
		return
	}
	name := "results/" + m.ID + ".output.txt"
	m.outcome.Output = m.view.previewEnds(text, m.left*3/4)
	m.spillToFile("output", name, []byte(text), "", lineHint(m.Language, name))
}

const nodeFS = " (import fs from 'node:fs/promises')"

// How the next program reads a file that an Outcome names.

func wholeJSON(lang core.Language, name string) string {
	if lang == core.Python {
		return fmt.Sprintf(`json.loads(read_file(%q))`, name)
	}
	return fmt.Sprintf(`JSON.parse(await fs.readFile('%s', 'utf8'))`+nodeFS, name)
}

func rowsInParts(lang core.Language, name string) string {
	if lang == core.Python {
		return fmt.Sprintf(`for line in open(%q): row = json.loads(line)`, name)
	}
	return fmt.Sprintf(`for await (const line of (await fs.open('%s')).readLines()) { const row = JSON.parse(line) }`+nodeFS, name)
}

func rowLines(lang core.Language, name string) string {
	if lang == core.Python {
		return fmt.Sprintf(`[json.loads(line) for line in open(%q)]`, name)
	}
	return fmt.Sprintf(`(await fs.readFile('%s', 'utf8')).trim().split('\n').map(line => JSON.parse(line))`+nodeFS, name)
}

func lineHint(lang core.Language, name string) string {
	if lang == core.Python {
		return fmt.Sprintf(`open(%q).readlines()`, name)
	}
	return fmt.Sprintf(`(await fs.readFile('%s', 'utf8')).split('\n')`+nodeFS, name)
}

// spillToFile writes data to a file and adds a note about the file to the Outcome. If writing fails, it adds a
// warning instead.
func (m *outcomeMaker) spillToFile(what, name string, data []byte, preview, how string) {
	o := m.outcome
	n, _ := tokens.FitsLimit(preview, m.left)
	m.left = max(0, m.left-n)
	if err := m.Files.Write(name, data); err != nil {
		o.Warnings = append(
			o.Warnings,
			fmt.Sprintf("the %s (%d bytes) is too large to return and could not be saved: %s", what, len(data), core.AsError(err).Message),
		)
		if preview != "" {
			o.Artifacts = append(o.Artifacts, core.WorkspaceArtifact{Bytes: int64(len(data)), Preview: preview})
		}
		return
	}
	o.Artifacts = append(o.Artifacts, core.WorkspaceArtifact{Path: name, Bytes: int64(len(data)), Preview: preview})
	warning := fmt.Sprintf(
		"the %s (%d bytes) exceeds results.maxTokens (%d): the complete value is in ./workspace/%s", what, len(data),
		m.MaxTokens, name,
	)
	if how != "" {
		warning += "; process it in the next program: " + how
	}
	o.Warnings = append(o.Warnings, warning)
}

func (m *outcomeMaker) clipError(e *core.Error) *core.Error {
	if e == nil {
		return nil
	}
	c := *e
	for _, text := range []*string{&c.Message, &c.Hint, &c.Stack, &c.Frame} {
		*text = m.cutText(*text)
	}
	return &c
}

func (m *outcomeMaker) cutText(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= maxMessage {
		return s
	}
	s = m.Hide(s)
	return strings.ToValidUTF8(s[:min(len(s), maxMessage)], "") + fmt.Sprintf("… (%d bytes in all)", len(s))
}
