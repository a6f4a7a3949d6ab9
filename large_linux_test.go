package retort_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"retort/internal/run"
)

// While 300 MB come in, with personal data in every row, the engine does not grow by 100,
// however many values there are.
func TestLargeAnswersTakeLittleMemory(t *testing.T) {
	for name, arguments := range map[string]string{
		"few values":  "mb: 300",
		"many values": "mb: 300, different: 1400000, phones: 200000",
		"many names":  "mb: 300, names: 1600000",
	} {
		t.Run(name, func(t *testing.T) { little(t, arguments) })
	}
}

func little(t *testing.T, arguments string) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	out, err := exec.Command(self, largeEngine, arguments).Output()
	var told engineTold
	if err != nil || json.Unmarshal(out, &told) != nil {
		t.Fatalf("%v %s", err, out)
	}
	grown := (told.After - told.Before) >> 20
	t.Logf("%s: %d MB before, %d MB more; %d tokens; %s", time.Since(began), told.Before>>20, grown, told.Tokens, told.Result)
	if told.Status != run.StatusOK || !strings.Contains(told.Result, "[EMAIL_") {
		t.Errorf("%s %s %s", told.Status, told.Error, told.Result)
	}
	if grown >= 100 {
		t.Errorf("it grew the engine by %d MB", grown)
	}
	if told.Tokens > 2000 {
		t.Errorf("%d tokens", told.Tokens)
	}
}
