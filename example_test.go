package retort_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"retort"
	"retort/internal/devel/demo"
)

// TestMain calls Init first, as every program that embeds the engine must: the engine starts the same binary again to
// run sandboxes.
func TestMain(m *testing.M) {
	retort.Init()
	home, err := os.MkdirTemp("", "retort-test-")
	if err != nil {
		panic(err)
	}
	_ = os.Setenv("HOME", home) // keys are made there
	code := m.Run()
	_ = os.RemoveAll(home)
	os.Exit(code)
}

func Example() {
	ctx := context.Background()
	engine, err := retort.Open(ctx, retort.Config{
		NoFiles: true, // Servers is everything; without it, .mcp.json and retort.yaml are read
		Servers: []retort.Server{{Name: "crm", Dial: demo.DialFunc("crm")}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()

	outcome := engine.Execute(ctx, retort.Request{Code: `
		const page = await crm.searchRecords({
			objectType: 'Lead', filters: [{ field: 'Status', op: 'eq', value: 'Open' }], limit: 1,
		});
		console.log('searched');
		return { openLeads: page.total };`})
	fmt.Println(outcome.Status, string(outcome.Result), outcome.Stats.ToolCalls)
	fmt.Print(outcome.Output)
	// Output:
	// ok {"openLeads":1000} 1
	// searched
}
