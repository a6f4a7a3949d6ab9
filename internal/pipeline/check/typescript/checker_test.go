package typescript

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"retort/internal/core"
)

var update = flag.Bool("update", false, "write what the programs in testdata give")

// TestPrograms checks the results of CheckProgram for the programs in testdata. Each program is followed by the
// expected result.
func TestPrograms(t *testing.T) {
	c, tools := newChecker(t), sample()
	for _, name := range []string{"testdata/refused.txtar", "testdata/accepted.txtar"} {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i+1 < len(archive.Files); i += 2 {
			program, want := archive.Files[i], &archive.Files[i+1]
			got := told(c, program.Name, string(program.Data), tools)
			if *update {
				want.Data = []byte(got)
				continue
			}
			if got != string(want.Data) {
				t.Errorf("%s: %s\n--- got\n%s--- want\n%s", name, program.Name, got, want.Data)
			}
			if refused := strings.HasPrefix(got, "refused"); refused != strings.Contains(name, "refused") {
				t.Errorf("%s: %s is in the wrong file", name, program.Name)
			}
		}
		if *update {
			if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// told returns the result of CheckProgram as text.
func told(c *ScriptChecker, name, code string, tools *core.Toolset) string {
	language := core.TypeScript
	if strings.HasSuffix(name, ".js") {
		language = core.JavaScript
	}
	checked, refusal := c.CheckProgram(context.Background(), ProgramSource{Code: code, Name: name, Language: language}, tools)
	var b strings.Builder
	if refusal != nil {
		fmt.Fprintf(&b, "refused: %s at %d:%d", refusal.Kind, refusal.Line, refusal.Column)
		if refusal.Server != "" {
			fmt.Fprintf(&b, " of %s.%s", refusal.Server, refusal.Tool)
		}
		fmt.Fprintf(&b, "\n%s\n%s\n", refusal.Message, refusal.Frame)
		if refusal.Hint != "" {
			fmt.Fprintf(&b, "hint: %s\n", refusal.Hint)
		}
		return b.String()
	}
	fmt.Fprintf(&b, "%s\n", strings.TrimSpace(checked.Code))
	for _, n := range checked.Namespaces {
		fmt.Fprintf(&b, "namespace %s, global %q, modules %s\n", n.Server, n.Global, n.Modules)
	}
	fmt.Fprintf(&b, "tools")
	for _, tool := range checked.Tools {
		fmt.Fprintf(&b, " %s.%s", tool.Server, tool.Name)
	}
	fmt.Fprintf(&b, ", unknown %v\n", checked.Unknown)
	for _, w := range checked.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	return b.String()
}
