package bindings

import (
	"regexp"
	"strings"
	"testing"

	"retort/internal/core"
)

// TestPagedComments checks that each kind of definition says in one comment how a tool pages.
func TestPagedComments(t *testing.T) {
	ts := toolset(readListing(t, "testdata/golden/paged.json"))
	tool := ts.Servers[0].Tools[0]
	_, file, _ := ToolFile(ts, tool)
	for kind, text := range map[string]string{
		"signature": RenderStub(ts, tool, core.TypeScript, Signature), "full": RenderStub(ts, tool, core.TypeScript, Full), "file": file,
		"python signature": RenderStub(ts, tool, core.Python, Signature), "python full": RenderStub(ts, tool, core.Python, Full),
		"python file": serverPackage(ts.Servers[0]),
	} {
		mark := "// "
		if strings.HasPrefix(kind, "python") {
			mark = "# "
		}
		if n := strings.Count(text, mark+"paged: cursor → next_cursor"); n != 1 {
			t.Errorf("%s has %d comments:\n%s", kind, n, text)
		}
	}
}

// TestItemTypes checks which types of items the declarations have that programs are checked against.
func TestItemTypes(t *testing.T) {
	ts := toolset(readListing(t, "testdata/golden/paged.json"))
	item := regexp.MustCompile(`namespace (\w+) \{ const __item: (.*); \}`)
	var got []string
	for _, tool := range ts.Servers[0].Tools {
		for _, m := range item.FindAllStringSubmatch(AdviceDeclaration(tool), -1) {
			got = append(got, m[1]+": "+m[2])
		}
	}
	want := `listInvoices: NonNullable<ListInvoicesOutput["items"]>[number]
listCharges: NonNullable<ListChargesOutput["data"]>[number]
listRows: NonNullable<ListRowsOutput["rows"]>[number]
listOrders: NonNullable<NonNullable<ListOrdersOutput["result"]>["orders"]>[number]
listLinks: NonNullable<ListLinksOutput["results"]>[number]
hostile: NonNullable<HostileOutput["items"]>[number]`
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}
