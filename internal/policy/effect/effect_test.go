package effect

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"retort/internal/core"
)

func TestOfTool(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		name, description string
		hints             core.ToolAnnotations
		trusted           bool
		want              core.EffectKind
		reason            string
	}{
		{name: "list_issues", want: read, reason: "its name says list"},
		{name: "getDocument", want: read, reason: "its name says get"},
		{name: "API-patch-page", want: write, reason: "patch"},
		{name: "list_deleted_items", want: read, reason: "list"},
		{name: "get_or_create_contact", want: write, reason: "create"},
		{name: "delete_file", want: irreversible, reason: "delete"},
		{name: "refund", want: irreversible, reason: "refund"},
		{name: "slack_post_message", want: irreversible, reason: "post"},
		{name: "contacts", description: "Deletes a contact.", want: irreversible, reason: "its description says delete"},
		{name: "contacts", description: "The contacts of a person.", want: write, reason: "nothing says"},
		{name: "update_row", description: "Changes a row. This cannot be undone.", want: irreversible, reason: "cannot be undone"},
		{name: "list_issues", hints: core.ToolAnnotations{Destructive: &yes}, want: irreversible, reason: "the server says that it may destroy"},
		{name: "list_issues", hints: core.ToolAnnotations{ReadOnly: &no}, want: write, reason: "does not only read"},
		{name: "delete_file", hints: core.ToolAnnotations{ReadOnly: &yes}, want: irreversible, reason: "not marked this server as trusted: set `servers.files.trusted: true`"},
		{name: "delete_file", hints: core.ToolAnnotations{ReadOnly: &yes}, trusted: true, want: read, reason: "only reads"},
		{name: "send_mail", hints: core.ToolAnnotations{ReadOnly: &no, Destructive: &no}, trusted: true, want: write, reason: "destroys nothing"},
		{name: "list_issues", hints: core.ToolAnnotations{ReadOnly: &no}, trusted: true, want: write, reason: "does not only read"},
		{name: "", want: write, reason: "nothing"},
	} {
		e := OfTool(&core.Tool{Server: "files", Name: c.name, Description: c.description, Annotations: c.hints}, c.trusted)
		if e.Kind != c.want || !strings.Contains(e.Reason+e.Advice, c.reason) {
			t.Errorf("%s: %s, %q; want %s, %q", c.name, e.Kind, e.Reason, c.want, c.reason)
		}
	}
}

// TestEffectsOfCatalogs logs how the tools in the directory RETORT_CATALOGS are judged. It is skipped if the variable
// is not set.
func TestEffectsOfCatalogs(t *testing.T) {
	dir := os.Getenv("RETORT_CATALOGS")
	if dir == "" {
		t.Skip("RETORT_CATALOGS names no directory of tools/list answers")
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	var total, silent, untold int
	counts := map[core.EffectKind]int{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var list struct{ Tools []core.Tool }
		if err := json.Unmarshal(text, &list); err != nil {
			t.Fatal(err)
		}
		for _, tool := range list.Tools {
			e := OfTool(&tool, false)
			total++
			counts[e.Kind]++
			if tool.Annotations == (core.ToolAnnotations{}) {
				silent++
			}
			if strings.HasPrefix(e.Reason, "nothing") {
				untold++
			}
			hinted, _, ok := annotatedEffect(tool.Annotations)
			if ok && (hinted != e.Kind || strings.HasPrefix(e.Reason, "nothing")) {
				t.Logf("%-20s %-40s %s (%s); the server says %s", strings.TrimSuffix(filepath.Base(name), ".json"), tool.Name, e.Kind, e.Reason, hinted)
			}
			if strings.HasPrefix(e.Reason, "nothing") || strings.HasPrefix(e.Reason, "its description") {
				t.Logf("%-20s %-40s %s (%s)", strings.TrimSuffix(filepath.Base(name), ".json"), tool.Name, e.Kind, e.Reason)
			}
		}
	}
	t.Logf("%d tools: %d read, %d write, %d irreversible; %d have no annotations, of %d nothing says what they do",
		total, counts[read], counts[write], counts[irreversible], silent, untold)
}
