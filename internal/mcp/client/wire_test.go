//go:build unix

package client

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// transcript is a recorded conversation with a server, from a txtar file: the lines that the client must send, the
// server's lines, and the expected outcome. After a section "redial" it continues on a new connection.
type transcript struct {
	t        *testing.T
	turn     sync.Mutex // held by the connection that currently follows the transcript
	mu       sync.Mutex
	sections []txtar.File
}

// next removes and returns the next section if it has this name.
func (tr *transcript) next(name string) (lines []string, ok bool) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if len(tr.sections) == 0 || tr.sections[0].Name != name {
		return nil, false
	}
	lines = strings.Split(strings.TrimSpace(string(tr.sections[0].Data)), "\n")
	tr.sections = tr.sections[1:]
	return lines, true
}

func (tr *transcript) dial(context.Context) (io.ReadWriteCloser, error) {
	ours, theirs := net.Pipe()
	tr.turn.Lock() // the connection before has come to its end of the script
	go func() {
		tr.play(theirs)
		tr.turn.Unlock()
		_, _ = io.Copy(io.Discard, theirs)
	}()
	return ours, nil
}

func (tr *transcript) play(conn net.Conn) {
	in := bufio.NewReader(conn)
	for {
		if lines, ok := tr.next("server"); ok {
			for _, line := range lines {
				io.WriteString(conn, line+"\n")
			}
			continue
		}
		lines, ok := tr.next("client")
		if !ok {
			tr.next("redial")
			return
		}
		for _, want := range lines {
			got, err := in.ReadString('\n')
			if err != nil {
				tr.t.Errorf("the client left; expected %s", want)
				return
			}
			if diff := cmp.Diff(decoded(tr.t, want), decoded(tr.t, got)); diff != "" {
				tr.t.Errorf("the client said (-want +got)\n%s", diff)
			}
		}
	}
}

func decoded(t *testing.T, s string) (v any) {
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Errorf("%v in %s", err, s)
	}
	return v
}

func TestWire(t *testing.T) {
	files, err := filepath.Glob("testdata/wire/*.txtar")
	if err != nil || len(files) < 7 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			last := len(archive.Files) - 1
			var want struct {
				Protocol, Name, Version, Instructions string
				Tools                                 []json.RawMessage
				Result                                json.RawMessage
				Again                                 bool // a second listing must ask the server again
			}
			if err := json.Unmarshal(archive.Files[last].Data, &want); err != nil {
				t.Fatal(err)
			}
			tr := &transcript{t: t, sections: archive.Files[:last]}
			p := newPool(t, Options{ClientVersion: "test"}, ServerSpec{Name: "s", Dial: tr.dial})
			l, err := p.List(t.Context(), "s")
			if err != nil {
				t.Fatal(err)
			}
			wantListing := ToolListing{Tools: want.Tools, Instructions: want.Instructions, Name: want.Name, Version: want.Version, Protocol: want.Protocol}
			if diff := cmp.Diff(asText(wantListing), asText(l)); diff != "" {
				t.Errorf("listing (-want +got)\n%s", diff)
			}
			r, err := p.Call(t.Context(), "s", "t", json.RawMessage(`{"b":1,"a":2}`))
			if err != nil || string(r) != string(want.Result) {
				t.Errorf("result %s, %v; want %s", r, err, want.Result)
			}
			if want.Again {
				if l, err := p.List(t.Context(), "s"); err != nil || len(l.Tools) != 0 {
					t.Errorf("listing again: %+v, %v", l, err)
				}
			}
			tr.mu.Lock()
			defer tr.mu.Unlock()
			if len(tr.sections) > 0 {
				t.Errorf("not reached: %s", tr.sections[0].Data)
			}
		})
	}
}

// asText converts a listing to values that are readable in a test's failure message. It converts the definitions to
// strings.
func asText(l ToolListing) any {
	tools := []string{}
	for _, tool := range l.Tools {
		tools = append(tools, string(tool))
	}
	return []any{l.Protocol, l.Name, l.Version, l.Instructions, tools}
}
