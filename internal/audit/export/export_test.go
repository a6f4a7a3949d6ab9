package export_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"retort/internal/audit"
	"retort/internal/audit/export"
	"retort/internal/core"
)

// entriesOfAllKinds returns at least one audit entry of every kind. Some kinds have several entries with different
// outcomes.
func entriesOfAllKinds() []audit.Entry {
	risk := 87
	at := time.Date(2026, 5, 4, 12, 0, 0, 123456789, time.UTC)
	base := audit.Entry{Chain: "00c1", Execution: "x1", Session: "s1", Principal: "anna", Hash: strings.Repeat("ab", 32)}
	var all []audit.Entry
	add := func(kind core.EventKind, status, facts string, change func(*audit.Entry)) {
		e := base
		e.Seq, e.At, e.Kind, e.Status = int64(len(all)+1), at.Add(time.Duration(len(all))*time.Second), kind, status
		if facts != "" {
			e.Facts = json.RawMessage(facts)
		}
		if change != nil {
			change(&e)
		}
		all = append(all, e)
	}
	alone := func(e *audit.Entry) { e.Execution, e.Session, e.Principal = "", "", "" }
	tool := func(e *audit.Entry) { e.Server, e.Tool = "crm", "delete_record" }
	add(core.EventStart, "", `{"version":"1.0","settings":{"audit":"d1"}}`, alone)
	add(core.EventSettings, "", `{"settings":["approval"]}`, alone)
	add(core.EventSearch, "tools", `{"found":3}`, nil)
	add(core.EventRequest, "", `{"client":"cursor","language":"typescript"}`, func(e *audit.Entry) { e.Body = json.RawMessage(`{"code":"return 1"}`) })
	add(core.EventVerdict, "ok", `{"level":"high","tools":["crm.delete_record"]}`, func(e *audit.Entry) { e.Risk = &risk })
	add(core.EventVerdict, "syntax", `{"line":3}`, nil)
	add(core.EventQuestion, "", `{"question":"q1","rule":"permissionLevel: write_restricted"}`, tool)
	add(core.EventDecision, "approved", `{"question":"q1","by":"cli"}`, tool)
	add(core.EventDecision, "denied", `{"question":"q2","by":"cli"}`, tool)
	for _, effect := range []string{"read", "write", "irreversible"} {
		add(core.EventCall, "ok", `{"call":1,"effect":"`+effect+`","client":"cursor"}`, func(e *audit.Entry) { tool(e); e.Bytes, e.Millis = 2048, 12.5 })
	}
	add(core.EventAnswer, "tool_error", `{"call":1,"effect":"write"}`, tool)
	add(core.EventRefusal, "policy", "", tool)
	add(core.EventReveal, "model", `{"personal":{"email":2}}`, nil)
	add(core.EventEnd, "ok", `{"calls":3,"sandbox":"process"}`, func(e *audit.Entry) { e.Risk, e.Returned, e.Avoided, e.Millis = &risk, 10, 5000, 99.25 })
	add(core.EventEnd, "timeout", `{"calls":0,"error":"limit"}`, nil)
	task := func(e *audit.Entry) { e.Execution = "" }
	for _, status := range []string{"queued", "begun", "discover", "ok", "timeout"} {
		add(core.EventTask, status, `{"task":"t1"}`, task)
	}
	add(core.EventPin, "changed", `{"pin":"p1"}`, tool)
	add(core.EventSkill, "saved", `{"skill":"monthly","version":"2"}`, nil)
	add(core.EventSkill, "removed", `{"skill":"monthly"}`, nil)
	add(core.EventErasure, "ok", `{"values":3}`, alone)
	add(core.EventLogin, "ok", "", func(e *audit.Entry) { alone(e); e.Server = "github" })
	for _, how := range []string{"created", "revoked", "failed"} {
		add(core.EventToken, how, `{"token":"1f2e3d4c5b6a"}`, func(e *audit.Entry) { alone(e); e.Principal = "anna" })
	}
	add(core.EventFile, "write", `{"bytes":3}`, nil)
	add(core.EventFile, "read", `{"bytes":3}`, nil)
	for _, action := range []string{"note", "approve", "stop"} {
		add(core.EventAnomaly, "rate", `{"action":"`+action+`","severity":"high"}`, tool)
	}
	add(core.EventClock, "", `{"behind_ms":999}`, alone)
	add(core.EventGap, "cut", `{"cause":"x"}`, alone)
	add(core.EventKept, "ok", `{"archived":5}`, alone)
	add(core.EventStop, "", "", alone)
	return all
}

func exported(t testing.TB, f export.Format, o export.Options, entries ...audit.Entry) string {
	t.Helper()
	var out bytes.Buffer
	w, err := export.New(&out, f, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := w.Write(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func lines(t testing.TB, text string, want int) []string {
	t.Helper()
	all := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(all) != want {
		t.Fatalf("%d lines of %d entries:\n%s", len(all), want, text)
	}
	return all
}

func TestJSONL(t *testing.T) {
	all := entriesOfAllKinds()
	for i, line := range lines(t, exported(t, export.JSONL, export.Options{Bodies: true}, all...), len(all)) {
		var back audit.Entry
		if err := json.Unmarshal([]byte(line), &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(all[i], back); diff != "" {
			t.Error(diff)
		}
	}
}

func TestBodiesOnlyIfAsked(t *testing.T) {
	secret := entriesOfAllKinds()[3]
	secret.Body, secret.Erased = json.RawMessage(`{"code":"swordfish"}`), true
	for _, f := range export.Formats() {
		if out := exported(t, f, export.Options{}, secret); strings.Contains(out, "swordfish") || strings.Contains(out, "erased") {
			t.Errorf("%s tells bodies: %s", f, out)
		}
		if out := exported(t, f, export.Options{Bodies: true}, secret); !strings.Contains(out, "swordfish") {
			t.Errorf("%s has no bodies: %s", f, out)
		}
	}
}

func TestNoFormat(t *testing.T) {
	_, err := export.New(io.Discard, "xml", export.Options{})
	var known *core.Error
	if !errors.As(err, &known) || known.Kind != core.KindInvalidArguments {
		t.Fatal(err)
	}
}

// parseCSVTable parses CSV. The test fails unless there is exactly one line for each entry and one for the header.
func parseCSVTable(t testing.TB, text string, entries int) [][]string {
	t.Helper()
	if strings.Count(text, "\r\n") != entries+1 || strings.Count(text, "\n") != entries+1 || strings.Count(text, "\r") != entries+1 {
		t.Fatalf("not one line for each entry: %q", text)
	}
	r := csv.NewReader(strings.NewReader(text))
	all, err := r.ReadAll()
	if err != nil || len(all) != entries+1 {
		t.Fatal(len(all), err, text)
	}
	return all
}

func TestCSV(t *testing.T) {
	all := entriesOfAllKinds()
	rows := parseCSVTable(t, exported(t, export.CSV, export.Options{}, all...), len(all))
	column := func(row int, name string) string { return rows[row+1][slices.Index(rows[0], name)] }
	call := slices.IndexFunc(all, func(e audit.Entry) bool { return e.Kind == core.EventCall })
	for name, want := range map[string]string{"seq": "10", "risk": "", "duration_ms": "12.5", "bytes": "2048", "client": "cursor", "effect": "read", "tool": "delete_record", "at": "2026-05-04T12:00:09.123456789Z"} {
		if got := column(call, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if got := column(4, "risk"); got != "87" {
		t.Error("risk", got)
	}
}

// TestFormulas checks that no exported cell begins with a formula, wherever a spreadsheet may see the beginning of a
// cell.
func TestFormulas(t *testing.T) {
	for _, evil := range []string{
		`=cmd|'/C calc'!A0`, "+1", "-1+2", "@SUM(1)", "\t=1", "\r=1", "\n=1", `"=1`, `""=1`, " =1", "\u00a0=1", "\u200b=1", "\ufeff=1", "＝1", "＋1", "－1", "＠x",
		"'=1", "x;=1", "x\t=1", "x,@y", "x|=1", "x; \"=1", "\x00=1", "\xff\n=1", "−1", "x\u2028;+1", ";=1",
	} {
		e := entriesOfAllKinds()[9]
		e.Tool = evil
		rows := parseCSVTable(t, exported(t, export.CSV, export.Options{}, e), 1)
		cell := rows[1][slices.Index(rows[0], "tool")]
		if containsFormula(cell) {
			t.Errorf("%q becomes the cell %q", evil, cell)
		}
	}
	harmless := "delete_record-now: 3 = 4"
	e := entriesOfAllKinds()[9]
	e.Tool = harmless
	if out := exported(t, export.CSV, export.Options{}, e); !strings.Contains(out, `"`+harmless+`"`) {
		t.Error("a harmless text was changed: " + out)
	}
}

// containsFormula reports whether a spreadsheet could interpret a part of the cell as a formula. Its rule is
// simpler and stricter than that of the tested code: it treats every possible separator as the end of a cell and
// ignores leading blanks and quotes.
func containsFormula(cell string) bool {
	for _, part := range strings.FieldsFunc(cell, func(r rune) bool { return strings.ContainsRune(";,|\t\r\n", r) }) {
		part = strings.TrimLeft(part, " \"\u00a0\u200b\ufeff\x00\u3000")
		if r, _ := utf8.DecodeRuneInString(part); strings.ContainsRune("=+-@＝＋－＠", r) && part != "" {
			return true
		}
	}
	return false
}

// parseCEF parses a CEF line as other systems do. It returns the header and the fields.
func parseCEF(line string) (head []string, fields map[string]string, err error) {
	rest, ok := strings.CutPrefix(line, "CEF:0|")
	if !ok {
		return nil, nil, errors.New("no CEF:0|")
	}
	var field strings.Builder
	for i := 0; len(head) < 6; i++ {
		switch {
		case i >= len(rest):
			return nil, nil, errors.New("the header ends early")
		case rest[i] == '\\' && i+1 < len(rest):
			i++
			field.WriteByte(rest[i])
		case rest[i] == '|':
			head = append(head, field.String())
			field.Reset()
			if len(head) == 6 {
				rest = rest[i+1:]
			}
		default:
			field.WriteByte(rest[i])
		}
	}
	// A key is a word before an equals sign that nothing escapes.
	fields = map[string]string{}
	key, value := "", ""
	for word := range strings.SplitSeq(rest, " ") {
		at := strings.IndexByte(word, '=')
		if at > 0 && word[at-1] != '\\' && strings.Trim(word[:at], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == "" {
			if key != "" {
				fields[key] = unescaped(value)
			}
			if _, twice := fields[word[:at]]; twice {
				return nil, nil, fmt.Errorf("the key %s twice", word[:at])
			}
			key, value = word[:at], word[at+1:]
			continue
		}
		value += " " + word
	}
	fields[key] = unescaped(value)
	return head, fields, nil
}

func unescaped(s string) string {
	return strings.NewReplacer(`\\`, `\`, `\=`, `=`, `\n`, "\n", `\r`, "\r").Replace(s)
}

var cefKeys = strings.Fields(`rt externalId cat act outcome reason suser requestClientApplication destinationServiceName in
	cs1 cs1Label cs2 cs2Label cs3 cs3Label cs4 cs4Label cs5 cs5Label cs6 cs6Label cn1 cn1Label cn2 cn2Label cn3 cn3Label`)

func TestCEF(t *testing.T) {
	all := entriesOfAllKinds()
	for i, line := range lines(t, exported(t, export.CEF, export.Options{Version: "0.9"}, all...), len(all)) {
		head, fields, err := parseCEF(line)
		if err != nil {
			t.Fatal(err, line)
		}
		if head[0] != "Retort" || head[2] != "0.9" || head[3] != string(all[i].Kind) {
			t.Error(head)
		}
		if n, err := strconv.Atoi(head[5]); err != nil || n < 0 || n > 10 {
			t.Error("severity", head[5])
		}
		if fields["rt"] != fmt.Sprint(all[i].At.UnixMilli()) || fields["externalId"] != fmt.Sprintf("00c1:%d", i+1) || fields["cs5"] != string(all[i].Facts) || fields["cs1"] != all[i].Tool {
			t.Error(fields)
		}
		for key := range fields {
			if !slices.Contains(cefKeys, key) {
				t.Errorf("%s is no key of the dictionary", key)
			}
		}
	}
}

func TestEscapesCEF(t *testing.T) {
	e := entriesOfAllKinds()[9]
	e.Server, e.Tool, e.Principal = `a|b\c`, "x=1 suser=root\r\nCEF:0|fake", `p\`
	_, fields, err := parseCEF(lines(t, exported(t, export.CEF, export.Options{}, e), 1)[0])
	if err != nil {
		t.Fatal(err)
	}
	if fields["destinationServiceName"] != e.Server || fields["suser"] != e.Principal || fields["cs1"] != "x=1 suser=root\n\nCEF:0|fake" {
		t.Error(fields)
	}
	e.Facts = json.RawMessage(`"` + strings.Repeat("é=", 5000) + `"`)
	_, fields, err = parseCEF(lines(t, exported(t, export.CEF, export.Options{}, e), 1)[0])
	if err != nil || len(fields["cs5"]) > 4000 || !strings.HasSuffix(fields["cs5"], "…") {
		t.Error(len(fields["cs5"]), err)
	}
}

// FuzzFields checks that no value can end its cell, field, line or document early, or appear as the value of another
// field.
func FuzzFields(f *testing.F) {
	f.Add("a,b", `=1"`, "x\n\r|\\=", `{"a":1}`)
	f.Add("\xff\xfe", "\u2028", "suser=root cs1=x", "not json\n")
	f.Add(`\`, `|`, ` =`, `{"effect":"\u0000\n=1","client":{"x":1}}`)
	f.Add("a\x00b", "\u0085;\t=1", "\r", "{\"effect\":\"\xff\"}")
	f.Fuzz(func(t *testing.T, server, tool, principal, facts string) {
		e := entriesOfAllKinds()[9]
		e.Server, e.Tool, e.Principal, e.Facts = server, tool, principal, json.RawMessage(facts)
		after := entriesOfAllKinds()[0] // is itself, whatever was before
		var o = export.Options{Bodies: true, Version: tool}
		e.Body = json.RawMessage(facts)
		rows := parseCSVTable(t, exported(t, export.CSV, o, e, after), 2)
		for _, cell := range rows[1] {
			if containsFormula(cell) && !number(cell) {
				t.Errorf("the cell %q", cell)
			}
		}
		clean := parseCSVTable(t, exported(t, export.CSV, o, after), 1)
		if !slices.Equal(rows[2], clean[1]) || len(rows[1]) != len(rows[0]) {
			t.Error(rows)
		}
		for _, f := range []export.Format{export.JSONL, export.OCSF} {
			for _, line := range lines(t, exported(t, f, o, e, after), 2) {
				if !json.Valid([]byte(line)) || !utf8.ValidString(line) {
					t.Errorf("%s: %q", f, line)
				}
			}
		}
		var back audit.Entry
		if err := json.Unmarshal([]byte(lines(t, exported(t, export.JSONL, o, e), 1)[0]), &back); err != nil || back.Tool != strings.ToValidUTF8(tool, "\uFFFD") && utf8.ValidString(tool) || back.Seq != e.Seq {
			t.Error(back, err)
		}
		for _, line := range lines(t, exported(t, export.CEF, o, e, after), 2) {
			head, fields, err := parseCEF(line)
			if err != nil || len(head) != 6 || fields["cat"] != head[3] || head[0] != "Retort" || !strings.HasPrefix(fields["externalId"], "00c1:") {
				t.Fatal(err, head, fields)
			}
			for key := range fields {
				if !slices.Contains(cefKeys, key) {
					t.Errorf("%s is no key of ours, in %q", key, line)
				}
			}
		}
	})
}

func number(s string) bool { _, err := strconv.ParseFloat(s, 64); return err == nil }

func BenchmarkWrite(b *testing.B) {
	all := entriesOfAllKinds()
	for _, f := range export.Formats() {
		b.Run(string(f), func(b *testing.B) {
			b.ReportAllocs()
			w, err := export.New(io.Discard, f, export.Options{Version: "1"})
			if err != nil {
				b.Fatal(err)
			}
			for i := 0; b.Loop(); i++ {
				if err := w.Write(all[i%len(all)]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestFormerEffect checks that a call of an earlier version, whose effect was called "destructive", is exported like
// an irreversible call, with the same severity and class.
func TestFormerEffect(t *testing.T) {
	for _, f := range export.Formats() {
		var written []string
		for _, effect := range []string{"irreversible", "destructive"} {
			e := audit.Entry{Kind: core.EventCall, Server: "crm", Tool: "delete_record", Facts: json.RawMessage(`{"effect":"` + effect + `"}`)}
			written = append(written, strings.ReplaceAll(exported(t, f, export.Options{}, e), "destructive", "irreversible"))
		}
		if written[0] != written[1] {
			t.Errorf("%s: %s", f, cmp.Diff(written[0], written[1]))
		}
	}
}
