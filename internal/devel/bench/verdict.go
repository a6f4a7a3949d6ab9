package bench

import (
	"fmt"
	"strings"
)

// contextWindow is the size of a common context window, in tokens. A model with this window cannot do a task in a way
// that needs more tokens.
const contextWindow = 200_000

// ListVerdicts describes where programs save tokens and where they cost more. It compares the cheaper way of using
// programs with the cheaper way of calling tools directly: with all definitions in the context, or with tool search.
func (w Workload) ListVerdicts() []string {
	direct, code := w.cheapestWay(WayDirect, WaySearch), w.cheapestWay(WayFull, WayLean)
	verdicts := []string{compareCosts(direct, code)}
	if costs := listExtraCosts(direct, code); costs != "" {
		verdicts = append(verdicts, "code costs more: "+costs)
	}
	for _, c := range w.Costs {
		if c.Peak > contextWindow {
			verdicts = append(verdicts, fmt.Sprintf("%s: does not fit into a context of %d tokens", c.Way, contextWindow))
		}
	}
	return verdicts
}

// cheapestWay returns the costs of that one of the given ways whose context is smallest at the end of the task.
func (w Workload) cheapestWay(ways ...string) WorkloadCost {
	var best WorkloadCost
	for _, c := range w.Costs {
		for _, way := range ways {
			if c.Way == way && (best.Way == "" || c.Peak < best.Peak) {
				best = c
			}
		}
	}
	return best
}

func compareCosts(direct, code WorkloadCost) string {
	change := func(before, after int) string {
		switch {
		case before == 0:
			return fmt.Sprint(after)
		case after <= before:
			return fmt.Sprintf("%.1f %% less", 100*float64(before-after)/float64(before))
		}
		return fmt.Sprintf("%.1f %% more", 100*float64(after-before)/float64(before))
	}
	return fmt.Sprintf("%s against %s: context %s, definitions %s, data %s", code.Way, direct.Way,
		change(direct.Peak, code.Peak), change(direct.Definitions, code.Definitions), change(direct.DataTokens(), code.DataTokens()))
}

// listExtraCosts lists the costs that are higher with code than with direct calls.
func listExtraCosts(direct, code WorkloadCost) string {
	var worse []string
	for _, d := range []struct {
		what          string
		before, after int
	}{
		{"tokens of definitions", direct.Definitions, code.Definitions}, {"tokens read", direct.Read, code.Read},
		{"tokens written", direct.Written, code.Written},
		{"round trips", direct.RoundTrips, code.RoundTrips}, {"ms", int(direct.WallMS + 0.5), int(code.WallMS + 0.5)},
		{"tokens of input over all turns", direct.Input, code.Input},
	} {
		if d.after > d.before {
			worse = append(worse, fmt.Sprintf("%d %s for %d", d.after, d.what, d.before))
		}
	}
	return strings.Join(worse, ", ")
}
