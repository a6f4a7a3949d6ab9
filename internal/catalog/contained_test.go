package catalog

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"retort/internal/core"
)

// TestDefinitionThatPanics checks that a definition is skipped and reported if reading it panics, and that other
// definitions are still read.
func TestDefinitionThatPanics(t *testing.T) {
	tools, problems := readDefinitions("s", []json.RawMessage{{}, {}}, func(i int) (*core.Tool, []string, error) {
		if i == 0 {
			panic(errors.New("out of range"))
		}
		return &core.Tool{Name: "a"}, nil, nil
	})
	if len(tools) != 1 || len(problems) != 1 || !strings.Contains(problems[0].Message, "out of range") {
		t.Errorf("%v, %v", tools, problems)
	}
}
