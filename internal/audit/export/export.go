// Package export writes entries of the audit log in formats for other systems. It keeps only one entry in memory. It
// escapes all values, so that none can end its cell, field, line or document early.
package export

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"retort/internal/audit"
	"retort/internal/core"
)

// Format selects the format in which entries are written.
type Format string

// Entries can be exported in these formats.
const (
	JSONL Format = "jsonl" // one JSON object per line, with the fields of audit.Entry
	OCSF  Format = "ocsf"  // events of the Open Cybersecurity Schema Framework, one JSON object per line
	CEF   Format = "cef"   // Common Event Format, one event per line, without a syslog header
	CSV   Format = "csv"   // a header line and one line per entry, for spreadsheets
)

// Formats returns all export formats.
func Formats() []Format { return []Format{JSONL, OCSF, CEF, CSV} }

// Options configures a Writer.
type Options struct {
	Version string // version of Retort, which exported events name as that of the product
	Bodies  bool   // whether to include bodies: code, arguments and messages
}

// Writer writes entries in one format, in the order in which they are passed to Write.
type Writer struct {
	out    *bufio.Writer
	encode func(*audit.Entry) error
	bodies bool
}

// New returns a Writer for a format, and writes the header if the format has one. The error for an unknown format is
// of kind invalid_arguments.
func New(w io.Writer, f Format, o Options) (*Writer, error) {
	out := &Writer{out: bufio.NewWriterSize(w, 256<<10), bodies: o.Bodies}
	lines := json.NewEncoder(out.out)
	lines.SetEscapeHTML(false)
	switch f {
	case JSONL:
		out.encode = func(e *audit.Entry) error { return lines.Encode(e) }
	case OCSF:
		m := ocsfMapper{version: o.Version}
		out.encode = func(e *audit.Entry) error { return lines.Encode(m.toEvent(e)) }
	case CEF:
		c := cefWriter{version: o.Version}
		out.encode = func(e *audit.Entry) error { return out.writeLine(c.encodeLine(e)) }
	case CSV:
		c := &csvTable{bodies: o.Bodies}
		if err := out.writeLine(c.headerLine()); err != nil {
			return nil, err
		}
		out.encode = func(e *audit.Entry) error { return out.writeLine(c.encodeRow(e)) }
	default:
		return nil, core.Errorf(
			core.KindInvalidArguments, "audit.export", "there is no export format %.40q", f,
		).WithHint("the formats are jsonl, ocsf, cef and csv")
	}
	return out, nil
}

// Write writes an entry.
func (w *Writer) Write(e audit.Entry) error {
	e.Facts = validDocument(e.Facts)
	if w.bodies {
		e.Body = validDocument(e.Body)
	} else {
		e.Body, e.Erased = nil, false
	}
	return w.encode(&e)
}

// Close flushes buffered output. It does not close the io.Writer to which the Writer writes.
func (w *Writer) Close() error { return w.out.Flush() }

func (w *Writer) writeLine(b []byte) error {
	_, err := w.out.Write(b)
	return err
}

// validDocument returns valid JSON unchanged, and any other text as a JSON string. Only an audit log that was
// tampered with contains invalid JSON.
func validDocument(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || json.Valid(raw) && utf8.Valid(raw) {
		return raw
	}
	text, _ := json.Marshal(string(raw)) // of a string
	return text
}

// entryFacts holds those members of an entry's additional JSON data ("facts") that at least one format writes as a
// separate field.
type entryFacts struct {
	Client   string `json:"client"`
	Effect   string `json:"effect"`
	Action   string `json:"action"`
	Severity string `json:"severity"`
	Skill    string `json:"skill"`
	Token    string `json:"token"`
	Task     string `json:"task"`
	Version  any    `json:"version"`
}

func factsOf(e *audit.Entry) (f entryFacts) {
	if len(e.Facts) > 0 {
		_ = json.Unmarshal(e.Facts, &f) // what is not of its type is left out
	}
	f.Effect = core.EffectName(f.Effect)
	return f
}

// hasSucceeded reports whether the action that an entry records succeeded. known is false if the entry does not
// record a result.
func hasSucceeded(e *audit.Entry) (ok, known bool) {
	switch e.Kind {
	case core.EventVerdict, core.EventCall, core.EventAnswer, core.EventEnd, core.EventErasure, core.EventKept, core.EventLogin:
		return e.Status == "ok", e.Status != ""
	case core.EventDecision:
		return e.Status == "approved" || e.Status == "covered" || e.Status == "automatic", true
	case core.EventRefusal, core.EventGap:
		return false, true
	case core.EventNetwork:
		return e.Status != "refused", true
	case core.EventCommand:
		return e.Status != "refused" && e.Status != "failed", true
	case core.EventToken:
		return e.Status != "failed" && e.Status != "refused", true
	case core.EventTask:
		return e.Status == string(core.StatusOK), hasEnded(e)
	case core.EventReveal, core.EventSkill, core.EventSearch, core.EventFile, core.EventSettings, core.EventClock:
		return true, true
	}
	return false, false
}

// hasEnded reports whether an entry about a job records the end of the job and not its progress.
func hasEnded(e *audit.Entry) bool {
	return e.Status != "begun" && core.TaskStatus(e.Status).HasEnded() && !slices.Contains(core.TaskPhases(), core.TaskPhase(e.Status))
}

// severityOf rates how much attention an entry needs, from 0 (none) to 10.
func severityOf(e *audit.Entry, f *entryFacts) int {
	risk := 0
	if e.Risk != nil {
		risk = max(0, min(*e.Risk, 100)) / 10
	}
	ok, known := hasSucceeded(e)
	switch e.Kind {
	case core.EventGap:
		return 9
	case core.EventAnomaly:
		return cmp.Or(map[string]int{"high": 8, "low": 4}[f.Severity], 6)
	case core.EventRefusal, core.EventPin:
		return 6
	case core.EventNetwork, core.EventCommand:
		return 1 + 5*boolToInt(!ok)
	case core.EventReveal, core.EventClock:
		return 5
	case core.EventSettings, core.EventErasure, core.EventSkill, core.EventToken:
		return 4
	case core.EventVerdict, core.EventDecision, core.EventEnd, core.EventTask:
		return max(risk, 1, 4*boolToInt(known && !ok))
	case core.EventCall:
		return max(1, 3*boolToInt(f.Effect == "write"), 5*boolToInt(f.Effect == "irreversible"))
	}
	return 1
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// summaryOf describes an entry by kind, tool and status, without values from programs.
func summaryOf(e *audit.Entry) string {
	parts := []string{string(e.Kind)}
	if tool := toolOf(e); tool != "" {
		parts = append(parts, tool)
	}
	if e.Status != "" {
		parts = append(parts, "("+e.Status+")")
	}
	return strings.Join(parts, " ")
}

func toolOf(e *audit.Entry) string {
	if e.Tool == "" {
		return e.Server
	}
	return e.Server + "." + e.Tool
}

// placeOf returns the position of an entry in the audit log in the form CHAIN:SEQ.
func placeOf(e *audit.Entry) string { return audit.ReadPositions{e.Chain: e.Seq}.String() }
