// Command embed shows how a Go program uses the engine as a library to run programs.
//
//	go run ./examples/07-embed
package main

import (
	"context"
	"fmt"
	"os"

	"retort"
)

const program = `
const page = await crm.searchRecords({
  objectType: 'Lead', filters: [{ field: 'Status', op: 'eq', value: 'Open' }], limit: 1,
});
await files.writeFile({ path: '/srv/nordlys/reports/leads.md', content: String(page.total) });
return { openLeads: page.total };`

func main() {
	retort.Init() // sandboxes are this program, started again
	if err := work(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func work(ctx context.Context) error {
	home, err := os.MkdirTemp("", "embed-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	engine, err := retort.Open(ctx, retort.Config{
		NoFiles: true, // Servers and Settings are everything; without it .mcp.json and retort.yaml are read
		Home:    home, Keys: home,
		Servers: []retort.Server{
			{Name: "crm", Command: "retort", Args: []string{"demo-server", "crm"}},
			{Name: "files", Command: "retort", Args: []string{"demo-server", "files"}},
		},
	})
	if err != nil {
		return err
	}
	defer engine.Close()

	found, err := engine.Search(ctx, retort.Query{Text: "search CRM records", Limit: 1})
	if err != nil {
		return err
	}
	fmt.Println("found:", found.Tools[0].Name)

	// Whoever embeds the engine is asked before what cannot be taken back.
	ctx = retort.WithChannel(ctx, func(_ context.Context, a retort.Approval) (retort.Answer, bool) {
		fmt.Println("asked:", a.Server+"."+a.Tool)
		return retort.Answer{Approve: true}, true
	})
	outcome := engine.Execute(ctx, retort.Request{Code: program})
	fmt.Println("ended:", outcome.Status, string(outcome.Result))
	if outcome.Error != nil {
		return outcome.Error
	}
	return nil
}
