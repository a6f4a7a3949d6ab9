package rules

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of the documentation")

const page = "../../../../docs/SECURITY-RULES.md"

// TestDocumentation checks that the tables in the documentation agree with the rules in the code. With -update it
// rewrites the tables.
func TestDocumentation(t *testing.T) {
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	for name, table := range map[string]string{"levels": levelTable(), "rules": ruleTable(), "risk": riskTable()} {
		before, rest, ok := strings.Cut(text, "<!-- "+name+" -->\n")
		_, after, closed := strings.Cut(rest, "<!-- end -->")
		if !ok || !closed {
			t.Fatalf("%s has no place for %s", page, name)
		}
		text = before + "<!-- " + name + " -->\n" + table + "<!-- end -->" + after
	}
	if text == string(raw) {
		return
	}
	if !*update {
		t.Fatalf("%s is not what the code says; run this test with -update", page)
	}
	if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func levelTable() string {
	var b strings.Builder
	b.WriteString("| level | info | low | medium | high | critical |\n|---|---|---|---|---|---|\n")
	for _, l := range []StrictnessLevel{Permissive, Standard, Strict, Maximum} {
		fmt.Fprintf(&b, "| `%s` |", l)
		for s := Info; s <= Critical; s++ {
			fmt.Fprintf(&b, " %s |", l.ActionFor(s))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func ruleTable() string {
	var b strings.Builder
	b.WriteString("| rule | severity | what the program does | what to do instead | such as |\n|---|---|---|---|---|\n")
	for _, r := range AllRules() {
		such := ""
		if len(r.Fires) > 0 && !strings.HasPrefix(r.ID, "obfuscation") {
			such = "`" + strings.NewReplacer("\n", "; ", "|", "\\|").Replace(r.Fires[0].Code) + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", r.ID, r.Severity, r.Message, r.Hint, such)
	}
	return b.String()
}

func riskTable() string {
	var b strings.Builder
	b.WriteString("| property of the program | adds |\n|---|---|\n")
	for _, row := range []struct {
		what string
		adds any
	}{
		{"the strongest effect of a tool that it can call: read, write, irreversible", fmt.Sprintf("%d, %d, %d", weightRead, weightWrite, weightIrreversible)},
		{"each further tool that does more than read", fmt.Sprintf("%d, at most %d", weightMore, maxMore)},
		{"a tool that writes, or an irreversible one, can be called many times: in a loop, a callback, a recursion", fmt.Sprintf("%d, %d", weightLoop, 2*weightLoop)},
		{"it computes which tools it calls", weightUnknown},
		{"data that it reads from one server can be sent to another", weightAcross},
		{"it writes files", weightWrites},
		{"it deletes files", weightDeletes},
		{"each host that its strings contain", fmt.Sprintf("%d, at most %d", weightDomain, maxDomains)},
		{"its most severe finding: info, low, medium, high, critical", strings.Trim(strings.Join(strings.Fields(fmt.Sprint(weightOf[1:])), ", "), "[]")},
		{"each further finding", fmt.Sprintf("%d, at most %d", weightMore, maxMore)},
		{fmt.Sprintf("a function has more than %d branches", complexFunction), weightComplex},
	} {
		fmt.Fprintf(&b, "| %s | %v |\n", row.what, row.adds)
	}
	b.WriteString("\n| level | score |\n|---|---|\n")
	low := 0
	for score := 0; score <= 100; score++ {
		if score == 100 || levelOf(score+1) != levelOf(score) {
			fmt.Fprintf(&b, "| %s | %d to %d |\n", levelOf(score), low, score)
			low = score + 1
		}
	}
	return b.String()
}
