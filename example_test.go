package retort_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"retort"
	"retort/internal/devel/demo"
)

// userHome is the home directory of the user who runs the tests.
var userHome = os.Getenv("HOME")

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

// A program asks the person who embeds the engine before it deletes something.
func ExampleWithChannel() {
	ctx := context.Background()
	engine, err := retort.Open(ctx, retort.Config{
		NoFiles: true, Servers: []retort.Server{{Name: "crm", Dial: demo.DialFunc("crm")}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()

	asking := retort.WithChannel(ctx, func(_ context.Context, a retort.Approval) (retort.Answer, bool) {
		fmt.Println("asked:", a.Server+"."+a.Tool)
		return retort.Answer{Approve: false, Note: "not this one"}, true
	})
	outcome := engine.Execute(asking, retort.Request{Code: `
		const page = await crm.searchRecords({ objectType: 'Lead', filters: [], limit: 1 });
		await crm.deleteRecord({ objectType: 'Lead', recordId: page.records[0].Id });`})
	fmt.Println(outcome.Status)
	// Output:
	// asked: crm.delete_record
	// denied
}

// A user has only the permissions that the settings give.
func ExampleEngine_As() {
	ctx := context.Background()
	engine, err := retort.Open(ctx, retort.Config{
		NoFiles:  true,
		Settings: "principals: {anna: {permissionLevel: read_only, servers: {crm: {allow: [search_*]}}}}",
		Servers:  []retort.Server{{Name: "crm", Dial: demo.DialFunc("crm")}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()

	program := retort.Request{Code: `return Object.keys(crm)`}
	fmt.Println(string(engine.As("anna").Execute(ctx, program).Result))
	// Output: ["searchRecords"]
}

// The engine serves clients over HTTP until it is closed.
func ExampleEngine_Listen() {
	engine, err := retort.Open(context.Background(), retort.Config{NoFiles: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()

	listener, err := engine.Listen(retort.Listening{Addr: "127.0.0.1:0"})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error)
	go func() { served <- listener.Serve(ctx) }()
	fmt.Println(strings.HasPrefix(listener.URL(), "http://127.0.0.1:"))
	stop() // finishes what runs
	fmt.Println(<-served)
	// Output:
	// true
	// <nil>
}
