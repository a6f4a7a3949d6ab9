package telemetry

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"retort/internal/core"
)

// TestAlertsAndDashboard checks that each query in packaging/alerts.yaml and packaging/dashboard.json uses only metrics,
// labels and statuses that Retort exports, and that the dashboard shows every metric.
func TestAlertsAndDashboard(t *testing.T) {
	exported := exportedLabels(t)
	used := map[string]bool{}
	for source, queries := range map[string][]string{"alerts.yaml": alertQueries(t), "dashboard.json": dashboardQueries(t)} {
		if len(queries) < 10 {
			t.Errorf("%s: only %d queries were found", source, len(queries))
		}
		for _, q := range queries {
			for _, problem := range checkQuery(q, exported) {
				t.Errorf("%s: %s: %s", source, q, problem)
			}
			for _, name := range metricNames.FindAllString(q, -1) {
				used[strings.TrimSuffix(name, "_bucket")] = source == "dashboard.json" || used[strings.TrimSuffix(name, "_bucket")]
			}
		}
	}
	for name := range exported {
		if strings.HasPrefix(name, "retort_") && !strings.HasSuffix(name, "_bucket") && !used[name] {
			t.Errorf("dashboard.json does not show %s", name)
		}
	}
}

// TestQueriesAreChecked checks that wrong names in a query are found.
func TestQueriesAreChecked(t *testing.T) {
	exported := exportedLabels(t)
	for query, want := range map[string]string{
		`rate(retort_calls_total{server="x",status!="ok"}[5m])`:            "",
		`rate(retort_call_total[5m])`:                                      "retort_call_total",
		`retort_calls_total{tenant="x"}`:                                   "tenant",
		`sum by (server, status, tenant) (rate(retort_calls_total[5m]))`:   "tenant",
		`sum by (status) (retort_executions_total{status=~"ok|finished"})`: "finished",
		`sum by (tool) (retort_executions_total)`:                          "tool",
	} {
		got := strings.Join(checkQuery(query, exported), "; ")
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}

var (
	metricNames = regexp.MustCompile(`\bretort_\w+`)
	selectors   = regexp.MustCompile(`\{([^}]*)\}`)
	matchers    = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"`)
	groupings   = regexp.MustCompile(`\b(?:by|without|on|ignoring)\s*\(([^)]*)\)`)
)

// checkQuery returns the metrics, labels and statuses that a query uses and Retort does not export. exported maps the
// name of each metric to its labels.
func checkQuery(query string, exported map[string][]string) (problems []string) {
	labels := []string{"instance", "job"} // added by Prometheus
	for _, name := range metricNames.FindAllString(query, -1) {
		if exported[name] == nil {
			problems = append(problems, "there is no metric "+name)
		}
		labels = append(labels, exported[name]...)
	}
	check := func(label string) {
		if !slices.Contains(labels, label) {
			problems = append(problems, "there is no label "+label)
		}
	}
	for _, s := range selectors.FindAllStringSubmatch(query, -1) {
		for _, m := range matchers.FindAllStringSubmatch(s[1], -1) {
			check(m[1])
			for status := range strings.SplitSeq(m[2], "|") {
				if m[1] == "status" && !slices.Contains(knownStatuses, core.OutcomeStatus(status)) {
					problems = append(problems, "there is no status "+status)
				}
			}
		}
	}
	for _, g := range groupings.FindAllStringSubmatch(query, -1) {
		for label := range strings.SplitSeq(g[1], ",") {
			check(strings.TrimSpace(label))
		}
	}
	return problems
}

var knownStatuses = []core.OutcomeStatus{
	core.StatusOK, core.StatusError, core.StatusTimeout, core.StatusMemoryLimit, core.StatusOutputLimit, core.StatusCallLimit, core.StatusOutcomeUnknown,
}

// exportedLabels returns the labels of each metric that an engine exports to Prometheus, by the name of the metric. It
// is never nil for a metric that exists.
func exportedLabels(t *testing.T) map[string][]string {
	t.Helper()
	tel, err := Open(Options{
		Prometheus: "127.0.0.1:0", Record: func() (int, bool) { return 1, true }, Tasks: func() (int, int) { return 1, 1 },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer tel.Close()
	execute(tel, "a")
	ctx, ended := tel.Begin(context.Background(), core.StepExecution, core.AuditEvent{Execution: "y"})
	_, answered := tel.Begin(ctx, core.StepApproval, core.AuditEvent{Execution: "y"})
	answered(core.AuditEvent{Status: "approved"})
	ended(core.AuditEvent{Status: "ok", Facts: map[string]any{"refusals": 1, "cache_hits": 1}})
	w := httptest.NewRecorder()
	tel.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/metrics", nil))
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	exported := map[string][]string{}
	for name, family := range families {
		labels := map[string]bool{}
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = true
			}
			if m.GetHistogram() != nil {
				exported[name+"_bucket"] = []string{"le"}
			}
		}
		exported[name] = append([]string{}, slices.Sorted(maps.Keys(labels))...)
		if exported[name+"_bucket"] != nil {
			exported[name+"_bucket"] = append(exported[name+"_bucket"], exported[name]...)
		}
	}
	return exported
}

func readPackaging(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("../../packaging/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// alertQueries returns the expressions of all rules. It also checks that each rule has a name, a severity and texts.
func alertQueries(t *testing.T) (queries []string) {
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(readPackaging(t, "alerts.yaml"), &file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" || r.For == "" || r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["action"] == "" {
				t.Errorf("%+v is incomplete", r)
			}
			queries = append(queries, r.Expr)
		}
	}
	return queries
}

// dashboardQueries returns the queries of all panels and variables.
func dashboardQueries(t *testing.T) (queries []string) {
	var file struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct{ Definition string }
		}
	}
	if err := json.Unmarshal(readPackaging(t, "dashboard.json"), &file); err != nil {
		t.Fatal(err)
	}
	for _, p := range file.Panels {
		for _, target := range p.Targets {
			queries = append(queries, target.Expr)
		}
	}
	for _, v := range file.Templating.List {
		queries = append(queries, v.Definition)
	}
	return queries
}
