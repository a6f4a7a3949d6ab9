package engine_test

import (
	"testing"

	"retort/internal/core"
	"retort/internal/devel/demo"
	"retort/internal/engine"
)

// TestPrincipalsDoNotShare checks, for each isolation setting of a server, which principals and sessions can read a
// file that the principal alice has written there.
func TestPrincipalsDoNotShare(t *testing.T) {
	for settings, want := range map[string]string{
		`servers: {files: {stateful: true}}`:       "alice 1: mine; alice 2: mine; bob 1: none;  1: none; ",
		`servers: {files: {isolation: principal}}`: "alice 1: mine; alice 2: mine; bob 1: none;  1: none; ",
		`servers: {files: {isolation: session}}`:   "alice 1: mine; alice 2: none; bob 1: none;  1: none; ",
		`servers: {files: {isolation: shared}}`:    "alice 1: mine; alice 2: mine; bob 1: mine;  1: mine; ",
		``:                                         "alice 1: mine; alice 2: mine; bob 1: mine;  1: mine; ",
	} {
		t.Run(settings, func(t *testing.T) {
			e, err := engine.Open(t.Context(), engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Limits: unlimitedTime, Home: t.TempDir(), Settings: "permissionLevel: execute_full\napproval: {autoApproveHigh: true}\n" + settings, Servers: []engine.Server{{Name: "files", Dial: demo.DialFunc("files")}}})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			e.WaitForServers(t.Context())
			const path = `{"path":"/srv/nordlys/note.txt"`
			if o := e.As("alice").Call(t.Context(), engine.Request{Session: "1"}, "files.write_file", []byte(path+`,"content":"mine"}`)); o.Status != core.StatusOK {
				t.Fatalf("%+v", o.Error)
			}
			got := ""
			for _, c := range []core.Caller{{Principal: "alice", Session: "1"}, {Principal: "alice", Session: "2"}, {Principal: "bob", Session: "1"}, {Session: "1"}} {
				got += c.Principal + " " + c.Session + ": "
				switch o := e.As(c.Principal).Call(t.Context(), engine.Request{Session: c.Session}, "files.read_file", []byte(path+`}`)); string(o.Result) {
				case `"mine"`:
					got += "mine; "
				default:
					got += "none; "
				}
			}
			if got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}
