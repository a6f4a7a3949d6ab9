package engine_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/devel/testenv"
)

// Limits for the growth of the engine's memory. Most of the allowed growth is the part of a result that is kept in
// memory before the result is moved to a file. The limits are exceeded if much of the rest stays in memory, or if
// each value in it takes even a few bytes.
const (
	maxGrowth      = 60 // MB by which a result of 64 MB may make the engine grow
	maxGrowthLarge = 90 // the same for a result of 300 MB
)

// TestLargeAnswersTakeLittleMemory checks that an engine's memory hardly grows with a large result that has personal
// data in every row, however many different values there are.
func TestLargeAnswersTakeLittleMemory(t *testing.T) {
	t.Run("many of all", func(t *testing.T) {
		checkMemoryGrowth(t, "mb: 64, different: 300000, phones: 43000, names: 340000", maxGrowth)
	})
	if !testenv.Full() {
		return
	}
	for name, arguments := range map[string]string{
		"few values":  "mb: 300",
		"many values": "mb: 300, different: 1400000, phones: 200000",
		"many names":  "mb: 300, names: 1600000",
	} {
		t.Run(name, func(t *testing.T) { checkMemoryGrowth(t, arguments, maxGrowthLarge) })
	}
}

// checkMemoryGrowth checks that a large result makes an engine's memory grow by less than most MB. It sets GOGC=25 to
// limit garbage, so that the measurement shows what the engine retains.
func checkMemoryGrowth(t *testing.T, arguments string, most int64) {
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
	if told.Status != core.StatusOK || !strings.Contains(told.Result, "[EMAIL_") {
		t.Errorf("%s %s %s", told.Status, told.Error, told.Result)
	}
	if grown >= most {
		t.Errorf("it grew the engine by %d MB, want less than %d", grown, most)
	}
	if told.Tokens > 2000 {
		t.Errorf("%d tokens, want at most 2000", told.Tokens)
	}
}
