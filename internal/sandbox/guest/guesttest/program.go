package guesttest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"retort/internal/core"
)

// testProgram holds one program of a test file and how it is expected to end.
type testProgram struct {
	title, name string
	code        string
	limits      core.Limits
	not         string // name of a runtime that cannot run the program
	anyPlace    bool
	anyWarnings bool
	reference   string
	// want maps runtimes to the expected outcome. Most programs list only that of the reference runtime.
	want map[string]string
}

func (p *testProgram) expectedEnd(runtime string) string {
	if want, ok := p.want[runtime]; ok {
		return want
	}
	return p.want[p.reference]
}

func parseProgram(t *testing.T, reference, text string) *testProgram {
	t.Helper()
	title, body, _ := strings.Cut(text, "\n")
	code, ends, _ := strings.Cut(body, "\n--- ")
	p := &testProgram{title: title, code: code, reference: reference, want: map[string]string{}}
	var settings string
	p.name, settings, _ = strings.Cut(title, " | ")
	for _, setting := range strings.Fields(settings) {
		p.applySetting(t, setting)
	}
	parts := strings.Split(ends, "\n--- on ")
	p.want[reference] = strings.TrimRight(parts[0], "\n")
	for _, part := range parts[1:] {
		runtimes, end, found := strings.Cut(part, ": ")
		if !found {
			t.Fatalf("%s: %q", title, part)
		}
		for _, runtime := range strings.Fields(runtimes) {
			p.want[runtime] = strings.TrimRight(end, "\n")
		}
	}
	return p
}

func (p *testProgram) applySetting(t *testing.T, setting string) {
	t.Helper()
	key, value, _ := strings.Cut(setting, "=")
	n, _ := strconv.ParseInt(value, 10, 64)
	switch key {
	case "memory":
		p.limits.Memory = n << 20
	case "result":
		p.limits.Result = n
	case "not":
		p.not = value
	case "place":
		p.anyPlace = value == "any"
	case "warnings":
		p.anyWarnings = value == "any"
	default:
		t.Fatalf("%s: %q", p.title, key)
	}
}

// String returns the program in the format of the test files.
func (p *testProgram) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n=== %s\n%s\n--- %s", p.title, p.code, p.want[p.reference])
	others := map[string][]string{}
	for _, runtime := range slices.Sorted(maps.Keys(p.want)) {
		if end := p.want[runtime]; runtime != p.reference && end != p.want[p.reference] {
			others[end] = append(others[end], runtime)
		}
	}
	lines := []string{}
	for end, runtimes := range others {
		lines = append(lines, fmt.Sprintf("\n--- on %s: %s", strings.Join(runtimes, " "), end))
	}
	slices.Sort(lines)
	return b.String() + strings.Join(lines, "")
}
