package report_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"html"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"retort/internal/audit"
	"retort/internal/audit/report"
	"retort/internal/core"
)

var update = flag.Bool("update", false, "write the golden files")

// fakeLog is an audit log with made-up entries.
type fakeLog struct {
	entries []audit.Entry // oldest first
	verdict audit.VerifyResult
}

func (h *fakeLog) After(_ context.Context, f audit.Filter, _ string, _ audit.ReadPositions, _ *[]string) iter.Seq2[audit.Entry, error] {
	return func(yield func(audit.Entry, error) bool) {
		for _, e := range h.entries {
			if !e.At.Before(f.From) && e.At.Before(f.To) && !yield(e, nil) {
				return
			}
		}
	}
}

func (h *fakeLog) Verify(context.Context, audit.VerifyOptions) (audit.VerifyResult, error) {
	return h.verdict, nil
}
func (h *fakeLog) CountArchives() (int, int, error) { return 3, 1, nil }

var begin = time.Date(2026, 4, 1, 9, 0, 0, 0, time.UTC)

// add adds an entry that is some minutes later than the one before.
func (h *fakeLog) add(kind core.EventKind, status string, facts map[string]any, change func(*audit.Entry)) {
	e := audit.Entry{Chain: "00c1", Seq: int64(len(h.entries) + 1), At: begin.Add(time.Duration(len(h.entries)) * 7 * time.Minute), Kind: kind, Status: status, Hash: "h"}
	if facts != nil {
		e.Facts, _ = json.Marshal(facts)
	}
	if change != nil {
		change(&e)
	}
	h.entries = append(h.entries, e)
}

// sampleLog returns an audit log of 300 executions, with events of all other kinds in between.
func sampleLog() *fakeLog {
	h := &fakeLog{}
	r := rand.New(rand.NewPCG(7, 7))
	h.add(core.EventStart, "", map[string]any{"version": "1.0", "settings": map[string]string{"approval": "d1"}}, nil)
	for i := range 300 {
		h.addExecution(r, i)
		switch i {
		case 40:
			h.add(core.EventSettings, "", map[string]any{"settings": []string{"approval", "permissionLevel"}, "version": []string{"1.0", "1.1"}}, nil)
		case 80:
			h.add(core.EventPin, "changed", map[string]any{"pin": "p2"}, crm)
			h.add(core.EventPin, "trusted", map[string]any{"pin": "p2"}, crm)
		case 120:
			h.add(core.EventSkill, "saved", map[string]any{"skill": "monthly-report", "version": "1"}, nil)
		case 160:
			h.add(core.EventErasure, "ok", map[string]any{"subjects": 2, "values": 5, "sessions": 3, "recorded": 4}, nil)
		case 200:
			h.add(core.EventAnomaly, "destructive_burst", map[string]any{"severity": "high", "action": "approve"}, func(e *audit.Entry) { crm(e); e.Principal = "intern" })
		case 240:
			h.add(core.EventReveal, "model", map[string]any{"personal": map[string]int{"email": 2, "iban": 1}}, nil)
			h.add(core.EventKept, "ok", map[string]any{"archived": 500, "deleted": 0, "keys": 0}, nil)
			h.add(core.EventLogin, "ok", nil, func(e *audit.Entry) { e.Server = "github" })
		}
	}
	h.add(core.EventStop, "", nil, nil)
	h.verdict = audit.VerifyResult{OK: true, Entries: int64(len(h.entries)), Checkpoints: 44, Codes: true,
		Chains: []audit.ChainVerdict{{Chain: "00c1", Entries: int64(len(h.entries)), Last: int64(len(h.entries)), From: begin, To: h.entries[len(h.entries)-1].At}}}
	return h
}

func crm(e *audit.Entry) { e.Server, e.Tool = "crm", "delete_record" }

// addExecution adds all entries of one execution.
func (h *fakeLog) addExecution(r *rand.Rand, i int) {
	risk := r.IntN(100)
	of := func(more func(*audit.Entry)) func(*audit.Entry) {
		return func(e *audit.Entry) {
			e.Execution, e.Session, e.Principal = fmt.Sprintf("x%03d", i), "s1", []string{"", "anna", "intern"}[i%3]
			if more != nil {
				more(e)
			}
		}
	}
	h.add(core.EventRequest, "", nil, of(nil))
	if r.IntN(20) == 0 {
		h.add(core.EventVerdict, "syntax", nil, of(nil))
		h.add(core.EventEnd, "rejected", map[string]any{"error": "syntax"}, of(nil))
		return
	}
	h.add(core.EventVerdict, "ok", nil, of(func(e *audit.Entry) { e.Risk = &risk }))
	status := []string{"ok", "ok", "ok", "ok", "error", "timeout"}[r.IntN(6)]
	if risk > 80 {
		id := fmt.Sprint("q", i)
		answer := []string{"approved", "approved", "denied", "expired"}[r.IntN(4)]
		h.add(core.EventQuestion, "", map[string]any{"question": id, "rule": "permissionLevel: write_restricted"}, of(crm))
		h.add(core.EventDecision, answer, map[string]any{"question": id, "by": "terminal"}, of(crm))
		if answer == "approved" {
			effect := []string{"irreversible", "destructive"}[i%2] // the second is the name of earlier versions
			h.add(core.EventCall, "", map[string]any{"effect": effect}, of(crm))
			h.add(core.EventAnswer, "ok", map[string]any{"effect": "irreversible"}, of(crm))
		} else {
			h.add(core.EventRefusal, "policy", nil, of(crm))
			status = "denied"
		}
	}
	for range r.IntN(3) {
		h.add(core.EventCall, []string{"ok", "ok", "tool_error"}[r.IntN(3)], map[string]any{"effect": "read"}, of(func(e *audit.Entry) { e.Server, e.Tool = "drive", "search_files" }))
	}
	h.add(core.EventEnd, status, map[string]any{"calls": 2, "personal": map[string]int{"email": r.IntN(5)}}, of(func(e *audit.Entry) { e.Risk = &risk }))
}

func situation() report.ReportInput {
	return report.ReportInput{
		Version: "1.1", Now: time.Date(2026, 5, 2, 8, 0, 0, 0, time.UTC), Recorded: true,
		Settings: []report.SettingValue{{"auditLogging", "on"}, {"permissionLevel", "write_restricted"}, {"piiTokenization", "on"}, {"sandboxMode", "process"}, {"sandboxFallback", "none"},
			{"securityLevel", "standard"}, {"pii.key", "the system's keyring, or a file that only the user can read"}},
		Principals: []report.PrincipalAccess{{"", "write_restricted"}, {"intern", "read_only; crm: deny delete_*"}},
		Keep:       90 * 24 * time.Hour, Archives: 730 * 24 * time.Hour,
	}
}

func options(s report.ReportStandard) report.Options {
	return report.Options{From: begin.Truncate(24 * time.Hour), To: begin.Truncate(24*time.Hour).AddDate(0, 0, 30), Standard: s}
}

func built(t testing.TB, h *fakeLog, s report.ReportInput, o report.Options) *report.PeriodReport {
	t.Helper()
	r, err := report.BuildReport(t.Context(), h, s, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func text(t testing.TB, r *report.PeriodReport, f report.ReportFormat) string {
	t.Helper()
	var out bytes.Buffer
	if err := r.Write(&out, f); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestGolden(t *testing.T) {
	h := sampleLog()
	for _, s := range []report.ReportStandard{report.Summary, report.GDPR, report.SOC2, report.HIPAA} {
		for f, end := range map[report.ReportFormat]string{report.Markdown: "md", report.HTML: "html", report.JSON: "json"} {
			got := text(t, built(t, h, situation(), options(s)), f)
			path := filepath.Join("testdata", string(s)+"."+end)
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s: %s", path, diff)
			}
		}
	}
}

// TestNumbers checks the numbers of a report against a separate, simpler count of the same entries.
func TestNumbers(t *testing.T) {
	h := sampleLog()
	o := options(report.Summary)
	o.From, o.To = begin.AddDate(0, 0, 1), begin.AddDate(0, 0, 4)
	a := built(t, h, situation(), o).Activity
	counts := map[string]int64{}
	asked := map[string]time.Time{}
	var waits []float64
	for _, e := range h.entries {
		if e.At.Before(o.From) || !e.At.Before(o.To) {
			continue
		}
		var f struct{ Question string }
		_ = json.Unmarshal(e.Facts, &f)
		counts["all"]++
		counts[string(e.Kind)]++
		counts[string(e.Kind)+" "+e.Status]++
		switch {
		case e.Kind == core.EventEnd && e.Risk != nil && *e.Risk >= 50:
			counts["high"]++
		case e.Kind == core.EventQuestion:
			asked[f.Question] = e.At
		case e.Kind == core.EventDecision && !asked[f.Question].IsZero():
			waits = append(waits, e.At.Sub(asked[f.Question]).Seconds())
		}
	}
	of := func(all []report.NamedCount, name string) int64 {
		for _, c := range all {
			if c.Name == name {
				return c.Count
			}
		}
		return 0
	}
	for name, pair := range map[string][2]int64{
		"entries": {a.Entries, counts["all"]}, "asked": {a.Asked, counts["request"]}, "ended": {a.Ended, counts["end"]}, "high": {a.HighRisk.Total, counts["high"]},
		"failures": {a.Failures.Total, counts["end"] - counts["end ok"]}, "timeouts": {of(a.ByStatus, "timeout"), counts["end timeout"]},
		"questions": {a.Approvals.Asked, counts["question"]}, "denied": {of(a.Approvals.Outcomes, "denied"), counts["decision denied"]},
		"refused": {of(a.Refused, "crm.delete_record: policy"), counts["refusal"]}, "rejected": {of(a.Rejected, "syntax"), counts["verdict syntax"]},
		"waits": {a.Approvals.Waits, int64(len(waits))},
	} {
		if pair[0] != pair[1] || pair[1] == 0 {
			t.Errorf("%s: %d, counted %d", name, pair[0], pair[1])
		}
	}
	slices.Sort(waits)
	n := len(waits)
	if want := (waits[(n-1)/2] + waits[n/2]) / 2; a.Approvals.Median == nil || *a.Approvals.Median != want {
		t.Error("median", a.Approvals.Median, want)
	}
}

func TestEmptyAndOff(t *testing.T) {
	s := situation()
	s.Recorded = false
	r := built(t, &fakeLog{verdict: audit.VerifyResult{OK: true}}, s, options(report.GDPR))
	all := text(t, r, report.Markdown)
	for _, want := range []string{"Nothing is recorded at the moment, because auditLogging is off", "The audit log has no entries for this period", "There are no entries to verify", "No such event in this period"} {
		if !strings.Contains(all, want) {
			t.Errorf("it does not say: %s\n%s", want, all)
		}
	}
	if strings.Contains(all, "The audit log is intact:") || r.Activity.Approvals.Median != nil || strings.Contains(text(t, r, report.JSON), "null") {
		t.Error("something is made up:", all)
	}
}

func TestBrokenRecord(t *testing.T) {
	h := sampleLog()
	bad := audit.VerifyFinding{Chain: "00c1", Seq: 17, What: audit.Edited, Says: "entry 17 of chain 00c1 is not what it was"}
	h.verdict.OK, h.verdict.First, h.verdict.Findings = false, &bad, []audit.VerifyFinding{bad}
	for _, f := range []report.ReportFormat{report.Markdown, report.HTML, report.JSON} {
		out := text(t, built(t, h, situation(), options(report.SOC2)), f)
		if !strings.Contains(out, "failed verification") || !strings.Contains(out, "entry 17") || strings.Contains(out, "The audit log is intact:") {
			t.Errorf("%s does not say that the record is broken", f)
		}
		if !strings.Contains(out, "failed verification, see Integrity. Figures") {
			t.Errorf("%s does not say it before its numbers", f)
		}
	}
}

// hostile lists texts that would have an effect in a page if they were not escaped, such as links and scripts.
var hostile = []string{
	"<script>alert(1)</script>", "[x](javascript:alert(1))", "![x](http://evil.example/a.png)", "| a | b |\n|---|", "http://evil.example", "www.evil.example", "a@evil.example",
	"`code` **bold** _it_ ~~no~~", "</td><td>", "# title", "- item\n1. item", "&lt;img src=x onerror=1&gt;", "\u202egnp.exe", "\x1b[31m", "<https://evil.example>", "`` ` ``", "a\\|b", "{{.}}", "$x$",
	"\"><img src=x>", "1. one", "+ x", "=====", "[a]: http://evil.example", "[^1]", "<!-- x", "javascript:alert(1)", "mailto:a@b.c", "ftp://x", "\u2028|x",
}

func TestHostileNames(t *testing.T) {
	h := &fakeLog{verdict: audit.VerifyResult{OK: true}}
	for _, name := range hostile {
		evil := func(e *audit.Entry) {
			e.Server, e.Tool, e.Principal, e.Execution, e.Session = name, name, name, name, name
		}
		h.add(core.EventCall, name, map[string]any{"effect": name}, evil)
		h.add(core.EventRefusal, name, nil, evil)
		h.add(core.EventPin, name, nil, evil)
		h.add(core.EventSkill, name, map[string]any{"skill": name}, evil)
		h.add(core.EventAnomaly, name, map[string]any{"severity": name, "action": name}, evil)
		h.add(core.EventReveal, name, map[string]any{"personal": map[string]int{name: 1}}, evil)
		h.add(core.EventEnd, name, map[string]any{"error": name}, evil)
		h.add(core.EventSettings, "", map[string]any{"settings": []string{name}, "servers": []string{name}}, nil)
	}
	s := situation()
	s.Principals = []report.PrincipalAccess{{Name: hostile[0], May: hostile[1]}}
	s.Settings = []report.SettingValue{{hostile[0], hostile[3]}}
	r := built(t, h, s, options(report.SOC2))
	plainly := text(t, built(t, &fakeLog{verdict: audit.VerifyResult{OK: true}}, situation(), options(report.SOC2)), report.HTML)
	page := text(t, r, report.HTML)
	tags := regexp.MustCompile(`<[a-zA-Z/!][^>]*>`)
	allowed := map[string]bool{"<thead>": true, "</thead>": true, "<tbody>": true, "</tbody>": true, "<table>": true, "</table>": true, "<tr>": true, "</tr>": true, "<td>": true, "</td>": true, "<th>": true, "</th>": true}
	for _, tag := range tags.FindAllString(plainly, -1) {
		allowed[tag] = true
	}
	for _, tag := range tags.FindAllString(page, -1) {
		if !allowed[tag] {
			t.Errorf("a name has brought in the tag %s", tag)
		}
	}
	if !strings.Contains(html.UnescapeString(page), "<script>alert(1)</script>") {
		t.Error("a hostile name is not shown as what it is")
	}
	checkMarkdown(t, text(t, r, report.Markdown))
	if !json.Valid([]byte(text(t, r, report.JSON))) {
		t.Error("no JSON")
	}
}

// checkMarkdown fails the test if a name from the log has added markup, such as a link or a table cell, to the page.
func checkMarkdown(t testing.TB, page string) {
	t.Helper()
	columns := 0
	for line := range strings.SplitSeq(page, "\n") {
		bare := regexp.MustCompile("`retort [^`]*`").ReplaceAllString(line, "")
		if strings.HasPrefix(line, "|") {
			bars := strings.Count(line, "|") - strings.Count(line, `\|`)
			if columns > 0 && bars != columns {
				t.Errorf("a row with %d bars in a table with %d: %s", bars, columns, line)
			}
			columns = bars
		} else {
			columns = 0
			bare = strings.ReplaceAll(bare, "**", "") // of remarks
		}
		bare = regexp.MustCompile("\\\\[!-/:-@\\[-`{-~]").ReplaceAllString(bare, "") // what is escaped
		for _, evil := range []string{"<", "](", "[", "`", "**", "~~", "://", "www.", "\x1b", "\u202e", "{{"} {
			if strings.Contains(bare, evil) {
				t.Errorf("%q in %s", evil, line)
			}
		}
		if regexp.MustCompile(`\w@\w|[^\\]_it_`).MatchString(bare) {
			t.Errorf("a link or a tag in %s", line)
		}
	}
}

func FuzzNames(f *testing.F) {
	for _, name := range hostile {
		f.Add(name, name)
	}
	f.Fuzz(func(t *testing.T, name, status string) {
		h := &fakeLog{verdict: audit.VerifyResult{OK: true}}
		evil := func(e *audit.Entry) { e.Server, e.Tool, e.Principal, e.Execution = name, name, name, name }
		h.add(core.EventCall, status, nil, evil)
		h.add(core.EventPin, status, nil, evil)
		h.add(core.EventEnd, status, map[string]any{"error": name}, evil)
		r := built(t, h, situation(), options(report.Summary))
		checkMarkdown(t, text(t, r, report.Markdown))
		page := text(t, r, report.HTML)
		if strings.Contains(page, "<script") || strings.Contains(page, "<img") || strings.Contains(page, "<a ") {
			t.Error(page)
		}
	})
}

// TestBounded checks that long lists are cut but counted completely, so that a report of a large log stays small.
func TestBounded(t *testing.T) {
	h := &fakeLog{verdict: audit.VerifyResult{OK: true}}
	for i := range 5000 {
		h.add(core.EventRefusal, "policy", nil, func(e *audit.Entry) { e.At = begin; e.Server, e.Tool = "s", fmt.Sprint("t", i) })
		h.add(core.EventAnomaly, "rate", nil, func(e *audit.Entry) { e.At = begin })
		h.add(core.EventEnd, "error", nil, func(e *audit.Entry) { e.At = begin })
	}
	r := built(t, h, situation(), options(report.Summary))
	a := r.Activity
	if len(a.Refused) != 1001 || len(a.Anomalies) != 50 || a.More["anomalies"] != 4950 || len(a.Failures.List) != 50 || a.Failures.Total != 5000 {
		t.Error(len(a.Refused), len(a.Anomalies), a.More, len(a.Failures.List), a.Failures.Total)
	}
	var sum int64
	for _, c := range a.Refused {
		sum += c.Count
	}
	if sum != 5000 {
		t.Error(sum)
	}
	if n := strings.Count(text(t, r, report.Markdown), "\n"); n > 600 {
		t.Error(n, "lines")
	}
}

func TestRefuses(t *testing.T) {
	var known *core.Error
	o := options("iso")
	if _, err := report.BuildReport(t.Context(), sampleLog(), situation(), o); !errors.As(err, &known) || known.Kind != core.KindInvalidArguments {
		t.Error(err)
	}
	o = options(report.GDPR)
	o.To = o.From
	if _, err := report.BuildReport(t.Context(), sampleLog(), situation(), o); !errors.As(err, &known) || known.Kind != core.KindInvalidArguments {
		t.Error(err)
	}
	if err := built(t, sampleLog(), situation(), options(report.GDPR)).Write(io.Discard, "pdf"); !errors.As(err, &known) || known.Kind != core.KindInvalidArguments {
		t.Error(err)
	}
}

func BenchmarkBuild(b *testing.B) {
	h := sampleLog()
	b.ReportAllocs()
	for b.Loop() {
		built(b, h, situation(), options(report.SOC2))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(h.entries)), "ns/entry")
}
