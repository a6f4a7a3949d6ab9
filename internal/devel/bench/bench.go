// Package bench makes the measurements that the command retort bench prints. The figures come from a single machine,
// so only ratios between them can be compared with those of other machines. Each figure is the median of several
// measurements in one run.
package bench

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"retort/internal/core"
	"retort/internal/engine"
)

// ResultRow holds one row of the table that retort bench prints.
type ResultRow struct {
	Name   string  `json:"name"`
	Median float64 `json:"median"`
	Worst  float64 `json:"worst,omitempty"` // highest value of the same runs
	Unit   string  `json:"unit"`            // "ms", "µs" or "MB"
	Runs   int     `json:"runs,omitempty"`
	Target float64 `json:"target,omitempty"` // the project's target; 0: none
}

// IsMet reports whether the median of the row meets the row's target. A row without a target counts as met.
func (r ResultRow) IsMet() bool { return r.Target == 0 || r.Median <= r.Target }

// Options configures a run of measurements.
type Options struct {
	Self     string            // path of the retort binary
	Progress func(what string) // is called with the name of each measurement; may be nil
	Only     []string          // some of Parts or, for Workloads, of WorkloadNames; empty: all
	// Catalogs names a folder with lists of tools, which the part "targets" measures. If Connected is set, the tools
	// of its servers are used instead. If neither is set, tools are generated.
	Catalogs  string
	Connected *engine.Config
}

// benchStep represents one part of the benchmark, with the function that measures it.
type benchStep struct {
	part    string
	measure func(*benchRun, context.Context) error
}

var steps = []benchStep{
	{"command", (*benchRun).measureCommand},
	{"runtimes", (*benchRun).measureRuntimes},
	{"docker", (*benchRun).measureDocker},
	{"gvisor", (*benchRun).measureGVisor},
	{"vm", (*benchRun).measureVM},
	{"egress", (*benchRun).measureEgress},
	{"mcp", (*benchRun).overMCP},
	{"calls", (*benchRun).measureCalls},
	{"type-check", (*benchRun).typeCheck},
	{"validation", (*benchRun).measureValidation},
	{"personal data", (*benchRun).measurePrivacy},
	{"audit log", (*benchRun).measureAuditLog},
	{"large audit log", (*benchRun).measureLargeLog},
	{"wrappers", (*benchRun).measureWrappers},
	{"search", (*benchRun).measureSearch},
	{"tokens", (*benchRun).measureTokens},
	{"memory", (*benchRun).measureMemory},
	{"http", (*benchRun).measureHTTP},
	{"binary", (*benchRun).measureBinary},
}

// PartNames returns the names of all measurements, in order.
func PartNames() []string {
	parts := make([]string, len(steps))
	for i, s := range steps {
		parts[i] = s.part
	}
	return parts
}

// benchRun holds the state of one run.
type benchRun struct {
	Options
	home  string
	rows  []ResultRow
	pause time.Duration // between the runs of one row
}

// Run measures the parts that the Options name. If they name none, it measures all parts, which takes some tens of
// seconds. Its errors are *core.Error.
func Run(ctx context.Context, o Options) ([]ResultRow, error) {
	for _, part := range o.Only {
		if !slices.Contains(PartNames(), part) {
			return nil, core.Errorf(
				core.KindInvalidArguments, "bench", "there is no part %q", part,
			).WithHint("parts: %s", strings.Join(PartNames(), ", "))
		}
	}
	home, err := os.MkdirTemp("", "retort-bench-")
	if err != nil {
		return nil, core.Errorf(core.KindInternal, "bench", "%w", err)
	}
	defer os.RemoveAll(home)
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	b := &benchRun{Options: o, home: home}
	for _, s := range steps {
		if len(o.Only) > 0 && !slices.Contains(o.Only, s.part) {
			continue
		}
		o.Progress(s.part)
		if err := s.measure(b, ctx); err != nil {
			return b.rows, core.Errorf(core.KindInternal, "bench", "%s: %w", s.part, err)
		}
	}
	return b.rows, nil
}

// timeRuns runs f n times after a warm-up run. It adds a row with the median in milliseconds.
func (b *benchRun) timeRuns(name string, n int, target float64, f func() error) error {
	if err := f(); err != nil {
		return err
	}
	took := make([]float64, n)
	for i := range took {
		time.Sleep(b.pause)
		start := time.Now()
		if err := f(); err != nil {
			return err
		}
		took[i] = float64(time.Since(start)) / float64(time.Millisecond)
	}
	b.addRow(name, took, "ms", target)
	return nil
}

func (b *benchRun) addRow(name string, values []float64, unit string, target float64) {
	values = slices.Sorted(slices.Values(values))
	b.rows = append(b.rows, ResultRow{
		Name: name, Median: values[len(values)/2], Worst: values[len(values)-1], Unit: unit, Runs: len(values),
		Target: target,
	})
}

func (b *benchRun) measureBinary(context.Context) error {
	info, err := os.Stat(b.Self)
	if err != nil {
		return err
	}
	b.rows = append(b.rows, ResultRow{Name: "binary", Median: float64(info.Size()) / 1e6, Unit: "MB", Target: 60})
	return nil
}

// outcomeError returns an error unless the Outcome is successful.
func outcomeError(o core.Outcome) error {
	if o.Status == core.StatusOK {
		return nil
	}
	if o.Error != nil {
		return fmt.Errorf("%s: %w", o.Status, o.Error)
	}
	return fmt.Errorf("%s", o.Status)
}
