package bench

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRowTarget checks that a row is compared with its bound, and that a target without a row in milliseconds counts
// as not measured.
func TestRowTarget(t *testing.T) {
	rows := []ResultRow{{Name: "quickjs: smallest program, from nothing", Median: 40, Worst: 70, Unit: "ms"}, {Name: "vm: memory", Median: 5, Unit: "MB"}}
	for most, want := range map[float64]bool{50: true, 40: false, 10: false} {
		got := rowTarget(rows, "start", "", most, "runtimes", "", "quickjs: smallest")
		if got.Met == nil || *got.Met != want || got.Measured != "40.0 ms, worst 70.0" || got.Command != "retort bench --only 'runtimes'" {
			t.Errorf("below %g: %+v", most, got)
		}
	}
	if got := rowTarget(rows, "start", "", 10, "vm", "", "vm: "); got.Met != nil || got.Measured != unmeasured {
		t.Errorf("%+v", got)
	}
}

// TestPersonalTargets checks that types with a fixed format, such as e-mail addresses, meet the target. If documents
// were handled wrongly, the field Losses must mention what is missed.
func TestPersonalTargets(t *testing.T) {
	all, err := personalTargets()
	if err != nil || len(all) != len(personalSamples) {
		t.Fatalf("%+v %v", all, err)
	}
	for _, got := range all {
		if met := got.Measured == "100.0 %"; !met && !strings.Contains(got.Losses, "missed") || got.Met == nil {
			t.Errorf("%+v", got)
		}
		if strings.HasSuffix(got.Name, "email") || strings.HasSuffix(got.Name, "SSN") {
			if !*got.Met {
				t.Errorf("%+v", got)
			}
		}
	}
	never := detectionSample{value: personalSamples[0].value, frames: []string{`"%s"`}, negative: func(*rand.Rand) string { return `"a.b@example.org"` }}
	if _, wrong, err := never.measureDetection(rand.New(rand.NewPCG(1, 2))); err != nil || wrong != sampleCount/2 {
		t.Errorf("%d wrongly hidden documents are counted, %v", wrong, err)
	}
}

func TestReplayed(t *testing.T) {
	dir := t.TempDir()
	if _, err := loadReplayServers(dir); err == nil {
		t.Error("an empty folder has catalogues")
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one.json", `{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}`)
	write("none.json", `{"tools":[]}`)
	if servers, err := loadReplayServers(dir); err != nil || len(servers) != 1 || servers[0].Name != "one" {
		t.Errorf("%+v %v", servers, err)
	}
	write("bad.json", `[`)
	if _, err := loadReplayServers(dir); err == nil {
		t.Error("what is no list of tools is one")
	}
}
