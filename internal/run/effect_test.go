package run

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEffectOf(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		name, description string
		hints             Annotations
		trusted           bool
		want              EffectKind
		reason            string
	}{
		{name: "list_issues", want: EffectRead, reason: "its name says list"},
		{name: "getDocument", want: EffectRead, reason: "its name says get"},
		{name: "API-patch-page", want: EffectWrite, reason: "patch"},
		{name: "list_deleted_items", want: EffectRead, reason: "list"},
		{name: "get_or_create_contact", want: EffectWrite, reason: "create"},
		{name: "delete_file", want: EffectDestructive, reason: "delete"},
		{name: "refund", want: EffectDestructive, reason: "refund"},
		{name: "slack_post_message", want: EffectDestructive, reason: "post"},
		{name: "contacts", description: "Deletes a contact.", want: EffectDestructive, reason: "its description says delete"},
		{name: "contacts", description: "The contacts of a person.", want: EffectWrite, reason: "nothing says"},
		{name: "update_row", description: "Changes a row. This cannot be undone.", want: EffectDestructive, reason: "cannot be undone"},
		{name: "list_issues", hints: Annotations{Destructive: &yes}, want: EffectDestructive, reason: "the server says that it may destroy"},
		{name: "list_issues", hints: Annotations{ReadOnly: &no}, want: EffectWrite, reason: "does not only read"},
		{name: "delete_file", hints: Annotations{ReadOnly: &yes}, want: EffectDestructive, reason: "not trusted"},
		{name: "delete_file", hints: Annotations{ReadOnly: &yes}, trusted: true, want: EffectRead, reason: "only reads"},
		{name: "send_mail", hints: Annotations{ReadOnly: &no, Destructive: &no}, trusted: true, want: EffectWrite, reason: "destroys nothing"},
		{name: "list_issues", hints: Annotations{ReadOnly: &no}, trusted: true, want: EffectWrite, reason: "does not only read"},
		{name: "", want: EffectWrite, reason: "nothing"},
	} {
		e := EffectOf(&Tool{Name: c.name, Description: c.description, Annotations: c.hints}, c.trusted)
		if e.Kind != c.want || !strings.Contains(e.Reason, c.reason) {
			t.Errorf("%s: %s, %q; want %s, %q", c.name, e.Kind, e.Reason, c.want, c.reason)
		}
	}
}

// TestEffectsOfCatalogs prints the effects of real tools, where they are given.
func TestEffectsOfCatalogs(t *testing.T) {
	dir := os.Getenv("RETORT_CATALOGS")
	if dir == "" {
		t.Skip("RETORT_CATALOGS names no directory of tools/list answers")
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	var total, silent, untold int
	counts := map[EffectKind]int{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var list struct{ Tools []Tool }
		if err := json.Unmarshal(text, &list); err != nil {
			t.Fatal(err)
		}
		for _, tool := range list.Tools {
			e := EffectOf(&tool, false)
			total++
			counts[e.Kind]++
			if tool.Annotations == (Annotations{}) {
				silent++
			}
			if strings.HasPrefix(e.Reason, "nothing") {
				untold++
			}
			hinted, _, ok := hint(tool.Annotations)
			if ok && (hinted != e.Kind || strings.HasPrefix(e.Reason, "nothing")) {
				t.Logf("%-20s %-40s %s (%s); the server says %s", strings.TrimSuffix(filepath.Base(name), ".json"), tool.Name, e.Kind, e.Reason, hinted)
			}
			if strings.HasPrefix(e.Reason, "nothing") || strings.HasPrefix(e.Reason, "its description") {
				t.Logf("%-20s %-40s %s (%s)", strings.TrimSuffix(filepath.Base(name), ".json"), tool.Name, e.Kind, e.Reason)
			}
		}
	}
	t.Logf("%d tools: %d read, %d write, %d destructive; %d have no annotations, of %d nothing says what they do",
		total, counts[EffectRead], counts[EffectWrite], counts[EffectDestructive], silent, untold)
}
