package report

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"retort/internal/audit"
	"retort/internal/core"
)

// levelOf returns the name of the risk level for a risk score.
func levelOf(risk *int) string {
	switch {
	case risk == nil:
		return "not judged"
	case *risk < 25:
		return "low"
	case *risk < HighRisk:
		return "medium"
	case *risk < 80:
		return "high"
	}
	return "critical"
}

func toolOf(e *audit.Entry) string {
	if e.Tool == "" {
		return cmp.Or(e.Server, "(none)")
	}
	return e.Server + "." + e.Tool
}

func settingsOf(f *entryFacts) string {
	var parts []string
	if len(f.Settings) > 0 {
		parts = append(parts, "settings "+strings.Join(f.Settings, ", "))
	}
	if len(f.Servers) > 0 {
		parts = append(parts, "servers "+strings.Join(f.Servers, ", "))
	}
	if len(f.Version) > 0 {
		parts = append(parts, "the version of Retort")
	}
	return cmp.Or(strings.Join(parts, "; "), "not said")
}

func erasureOf(e *audit.Entry, f *entryFacts) string {
	what := "a session"
	if f.Subjects != "" {
		what = "subjects named by " + f.Subjects.String() + " texts"
	} else if e.Session != "" {
		what = "session " + e.Session
	}
	for _, n := range []struct {
		name  string
		count string
	}{{"values", f.Values.String()}, {"sessions", f.Sessions.String()}, {"recorded executions and sessions", f.Recorded.String()}} {
		if n.count != "" && n.count != "0" {
			what += ", " + n.count + " " + n.name
		}
	}
	return what
}

func anomalyOf(e *audit.Entry, f *entryFacts) string {
	parts := []string{core.AnomalyName(e.Status)}
	for _, p := range []struct{ name, value string }{
		{"", toolNamed(e)}, {"principal ", e.Principal}, {"severity ", f.Severity}, {"action ", f.Action},
	} {
		if p.value != "" {
			parts = append(parts, p.name+p.value)
		}
	}
	return strings.Join(parts, ", ")
}

func toolNamed(e *audit.Entry) string {
	if e.Server == "" {
		return ""
	}
	return toolOf(e)
}

// periodFlags returns the command-line flags with which the command retort audit query lists only entries of the
// report's period.
func (r *PeriodReport) periodFlags() string {
	return " --since " + r.From.Format(time.RFC3339) + " --until " + r.To.Format(time.RFC3339)
}

// queryCommand returns the retort command that lists the entries of the report's period, restricted by further flags.
func (r *PeriodReport) queryCommand(flags string) string {
	return strings.Join(strings.Fields("retort audit query "+flags+r.periodFlags()), " ")
}

// joinCounts formats the first 8 counts in one line and says how many others there are.
func joinCounts(all []NamedCount) string {
	const most = 8
	var parts []string
	for i, c := range all {
		if i == most {
			parts = append(parts, fmt.Sprintf("%d others", len(all)-most))
			break
		}
		parts = append(parts, fmt.Sprintf("%s %d", c.Name, c.Count))
	}
	return strings.Join(parts, ", ")
}

func totalCount(all []NamedCount) (n int64) {
	for _, c := range all {
		n += c.Count
	}
	return n
}

// countOf returns the count of a name in a list.
func countOf(all []NamedCount, name string) int64 {
	for _, c := range all {
		if c.Name == name {
			return c.Count
		}
	}
	return 0
}

// settingValue returns the value of a setting in force, or "not known" if the report does not have it.
func (r *PeriodReport) settingValue(name string) string {
	for _, s := range r.Settings {
		if s.Name == name {
			return s.Value
		}
	}
	return "not known"
}

// formatSeconds formats a number of seconds as a duration.
func formatSeconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	if d < time.Minute {
		return fmt.Sprintf("%.1f s", s)
	}
	return d.Round(time.Second).String()
}

func daysOf(days float64) string {
	if days <= 0 {
		return "for ever"
	}
	return fmt.Sprintf("%.4g days", days)
}
