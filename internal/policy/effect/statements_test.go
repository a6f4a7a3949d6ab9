package effect

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"retort/internal/core"
)

// statement holds one line of the table of statements: a dialect, a text and its true effect.
type statement struct {
	dialect, text string
	want          core.EffectKind
}

// readStatements reads the table of statements from testdata/corpus/statements.txt.
func readStatements(t testing.TB) (list []statement) {
	t.Helper()
	text, err := os.ReadFile("testdata/corpus/statements.txt")
	if err != nil {
		t.Fatal(err)
	}
	breaks := strings.NewReplacer(`\n`, "\n", `\r`, "\r", `\t`, "\t")
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		columns := strings.SplitN(line, " | ", 3)
		if len(columns) != 3 {
			t.Fatalf("no statement: %q", line)
		}
		list = append(list, statement{columns[0], breaks.Replace(columns[2]), kind(t, columns[1])})
	}
	return list
}

// TestStatements checks that no statement of the table is judged milder than it is, and that at most one in twelve is
// judged stricter. It passes each statement to three tools: one that reads according to its name, one that runs
// statements, and one that has nothing to do with databases.
func TestStatements(t *testing.T) {
	list := readStatements(t)
	if len(list) < 150 {
		t.Fatalf("the table has %d statements", len(list))
	}
	tools := []struct {
		tool core.Tool
		key  string
	}{
		{core.Tool{Server: "postgres", Name: "query", Description: "Run a read-only SQL query"}, "sql"},
		{core.Tool{Name: "execute_sql", Description: "Executes SQL in the database."}, "query"},
		{core.Tool{Name: "data", Description: "Returns data."}, "sql"},
	}
	for _, c := range tools {
		judge, stricter := NewJudge(&c.tool, false), 0
		for _, s := range list {
			args, err := json.Marshal(map[string]string{c.key: s.text})
			if err != nil {
				t.Fatal(err)
			}
			switch e := judge.CallEffect(args); {
			case e.Kind < s.want:
				t.Errorf("%s(%s, %q) is %s, judged %s (%s)", c.tool.Name, s.dialect, s.text, s.want, e.Kind, e.Reason)
			case e.Kind > s.want && e.Kind > OfTool(&c.tool, false).Kind:
				stricter++
				t.Logf("stricter: %s(%s, %q) is %s, judged %s (%s)", c.tool.Name, s.dialect, s.text, s.want, e.Kind, e.Reason)
			}
		}
		t.Logf("%s: %d statements, %d judged stricter than they are", c.tool.Name, len(list), stricter)
		if stricter*12 > len(list) {
			t.Errorf("%s: %d of %d statements are judged stricter than they are", c.tool.Name, stricter, len(list))
		}
	}
}

// TestDisguisedStatements checks that no statement of the table is judged milder when its form is changed. It tries
// the changes of FuzzQuery, EXPLAIN ANALYZE in front of the statement, a CTE around it, and other statements before
// it.
func TestDisguisedStatements(t *testing.T) {
	judge := NewJudge(&core.Tool{Server: "postgres", Name: "query"}, false)
	for _, s := range readStatements(t) {
		list := disguises(s.text)
		switch first, _, _ := strings.Cut(strings.ToLower(s.text), " "); first {
		case "insert", "update", "delete", "merge", "select", "with":
			list = append(list, "EXPLAIN ANALYZE "+s.text, "EXPLAIN (VERBOSE, ANALYZE) "+s.text, "WITH q AS (\n"+s.text+"\n) SELECT * FROM q",
				"WITH a AS (SELECT 1), q AS MATERIALIZED (WITH r AS ("+s.text+"\n) SELECT * FROM r) SELECT 1")
		}
		for _, text := range list {
			args, err := json.Marshal(map[string]string{"sql": text})
			if err != nil {
				t.Fatal(err)
			}
			if e := judge.CallEffect(args); e.Kind < s.want {
				t.Errorf("%s: %q is %s, judged %s (%s)", s.dialect, text, s.want, e.Kind, e.Reason)
			}
		}
	}
}
