package retort_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"retort/internal/run"
)

// While 300 MB come in, with personal data in every row, the engine does not grow by 100.
func TestLargeAnswersTakeLittleMemory(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const mb = 300
	out, err := exec.Command(self, largeEngine, strconv.Itoa(mb)).Output()
	var told engineTold
	if err != nil || json.Unmarshal(out, &told) != nil {
		t.Fatalf("%v %s", err, out)
	}
	grown := (told.After - told.Before) >> 20
	t.Logf("%d MB before, %d MB more; %d tokens; %s", told.Before>>20, grown, told.Tokens, told.Result)
	if told.Status != run.StatusOK || !strings.Contains(told.Result, "[EMAIL_") {
		t.Errorf("%s %s %s", told.Status, told.Error, told.Result)
	}
	if grown >= 100 {
		t.Errorf("%d MB grew the engine by %d MB", mb, grown)
	}
	if told.Tokens > 2000 {
		t.Errorf("%d tokens", told.Tokens)
	}
}
