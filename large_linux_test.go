package retort_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"retort/internal/run"
	"retort/internal/testenv"
)

// Most of this growth is the part of an answer that is in memory before it becomes a file, so
// that a large part of the rest in memory, or a few bytes of memory for each value, is too much.
const (
	growth    = 60 // MB that 64 MB of an answer may make the engine grow by
	allGrowth = 90 // that 300 MB may
)

// TestLargeAnswersTakeLittleMemory holds that an engine hardly grows by an answer with personal
// data in every row, however many values there are.
func TestLargeAnswersTakeLittleMemory(t *testing.T) {
	t.Run("many of all", func(t *testing.T) { little(t, "mb: 64, different: 300000, phones: 43000, names: 340000", growth) })
	if !testenv.Full() {
		return
	}
	for name, arguments := range map[string]string{
		"few values":  "mb: 300",
		"many values": "mb: 300, different: 1400000, phones: 200000",
		"many names":  "mb: 300, names: 1600000",
	} {
		t.Run(name, func(t *testing.T) { little(t, arguments, allGrowth) })
	}
}

// little holds that an answer makes an engine grow by less than most MB. The collector of the
// engine leaves little garbage, so that what is measured is what is kept.
func little(t *testing.T, arguments string, most int64) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, largeEngine, arguments)
	c.Env = append(os.Environ(), "GOGC=25")
	out, err := c.Output()
	var told engineTold
	if err != nil || json.Unmarshal(out, &told) != nil {
		t.Fatalf("%v %s", err, out)
	}
	grown := (told.After - told.Before) >> 20
	t.Logf("%d MB before, %d MB more; %d tokens; %s", told.Before>>20, grown, told.Tokens, told.Result)
	if told.Status != run.StatusOK || !strings.Contains(told.Result, "[EMAIL_") {
		t.Errorf("%s %s %s", told.Status, told.Error, told.Result)
	}
	if grown >= most {
		t.Errorf("it grew the engine by %d MB, want less than %d", grown, most)
	}
	if told.Tokens > 2000 {
		t.Errorf("%d tokens, want at most 2000", told.Tokens)
	}
}
