package engine_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/engine"
	"retort/internal/tokens"
)

// largeServer is the argument that makes this program an MCP server with the tool get. The tool's result is as large
// as the arguments of the call say, and is never in memory as a whole.
const largeServer = "large-server"

func serveLarge() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	out := bufio.NewWriterSize(os.Stdout, 64<<10)
	for in.Scan() {
		var r struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Arguments largeArguments `json:"arguments"`
			} `json:"params"`
		}
		if json.Unmarshal(in.Bytes(), &r) != nil || r.ID == nil {
			continue
		}
		switch r.Method {
		case "initialize":
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"large","version":"1"}}}`+"\n", r.ID)
		case "tools/list":
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"get","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object","properties":{"as":{"type":"string"},"mb":{"type":"number"},"different":{"type":"number"},"phones":{"type":"number"},"names":{"type":"number"}},"required":["as","mb"]}}]}}`+"\n", r.ID)
		case "tools/call":
			if err := r.Params.Arguments.answer(out, r.ID); err != nil {
				out.Flush()
				return
			}
		default:
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`+"\n", r.ID)
		}
		out.Flush()
	}
}

type largeArguments struct {
	As string `json:"as"` // form of the result
	MB int    `json:"mb"`
	// Different is the number of different e-mail addresses; 0 means 1000. Phones is the number of phone numbers to
	// add. Names is the number of different names to use instead of a single one.
	Different, Phones, Names int
}

var errGone = errors.New("gone")

func (a largeArguments) answer(out *bufio.Writer, id json.RawMessage) error {
	text := func(w io.Writer) io.Writer { return escapingWriter{w} }
	switch a.As {
	case "structured":
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"see structuredContent"}],"structuredContent":{"total":7,"rows":[`, id)
		a.rows(out)
		out.WriteString(`],"next":null}}}` + "\n")
	case "id at the end":
		out.WriteString(`{"jsonrpc":"2.0","result":{"content":[],"structuredContent":[`)
		a.rows(out)
		fmt.Fprintf(out, `]},"id":%s}`+"\n", id)
	default:
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, id)
		switch a.As {
		case "csv":
			io.WriteString(text(out), "id,contact,mail\n")
			for n, i := 0, 0; n < a.MB<<20; i++ {
				w, _ := fmt.Fprintf(text(out), "%d,Hanne Halvorsen,user%d@example.com\n", i, i%1000)
				n += w
			}
		case "broken":
			io.WriteString(out, "[")
			a.rows(text(out))
			io.WriteString(out, ",}]")
		case "gone":
			io.WriteString(out, "[")
			a.rows(text(out))
			return errGone
		case "endless":
			var once bytes.Buffer
			a.rows(text(&once))
			for {
				if _, err := out.Write(once.Bytes()); err != nil {
					return err
				}
			}
		case "log":
			for range a.MB << 10 {
				io.WriteString(text(out), "[INFO] "+strings.Repeat("x", 1000)+"\n[INFO] user7@example.com\n")
			}
		case "deep":
			out.WriteString(`"}],"structuredContent":` + strings.Repeat("[", a.MB<<20) + "\n")
			return nil
		case "twice":
			out.WriteString(`","text":"`)
			a.rows(text(out))
		case "bytes":
			w := base64.NewEncoder(base64.StdEncoding, out)
			out.WriteString(`"},{"type":"image","mimeType":"image/png","data":"`)
			for range a.MB {
				w.Write(bytes.Repeat([]byte{1, 2, 0xff, 4}, 1<<18))
			}
			w.Close()
		case "csv as bytes":
			w := base64.NewEncoder(base64.StdEncoding, out)
			out.WriteString(`"},{"type":"resource","resource":{"uri":"a:b","mimeType":"text/csv","blob":"`)
			io.WriteString(w, "id,mail\n")
			for i := range a.MB << 15 {
				fmt.Fprintf(w, "%d,user%d@example.com\n", i, i%10)
			}
			w.Close()
			out.WriteString(`"}}]}}` + "\n")
			return nil
		case "error":
			out.WriteString(`it failed: `)
			a.rows(text(out))
			out.WriteString(`"}],"isError":true}}` + "\n")
			return nil
		default:
			io.WriteString(out, "[")
			a.rows(text(out))
			io.WriteString(out, "]")
		}
		out.WriteString(`"}]}}` + "\n")
	}
	return nil
}

// rows writes JSON objects, separated by commas, until they are at least as many megabytes as the field MB says.
func (a largeArguments) rows(w io.Writer) error {
	var row []byte
	for n, i := 0, 0; n < a.MB<<20; i++ {
		row = row[:0]
		if i > 0 {
			row = append(row, ", "...)
		}
		row = append(row, `{"id": `...)
		row = strconv.AppendInt(row, int64(i), 10)
		if a.Names > 0 {
			row = fmt.Appendf(row, `, "name": "Hanne %s"`, surname(i%a.Names))
		} else {
			row = append(row, `, "name": "Row \"x\" é"`...)
		}
		if a.Phones > 0 {
			row = fmt.Appendf(row, `, "phone": "+49151%08d"`, i%a.Phones)
		}
		row = append(row, `, "email": "user`...)
		row = strconv.AppendInt(row, int64(i%cmp.Or(a.Different, 1000)), 10)
		row = append(row, `@example.com", "amount": 12345678901234567890.5, "region": "north", "note": "delivered on time, nothing to add, thank you very much"}`...)
		k, err := w.Write(row)
		if err != nil {
			return err
		}
		n += k
	}
	return nil
}

// surname returns a name that is different for each number.
func surname(n int) string {
	name := []byte{byte('A' + n%26)}
	for n /= 26; n > 0; n /= 20 {
		name = append(name, "bdfgklmnprstvzbdfghw"[n%20], "aeiou"[n%5])
	}
	return string(append(name, "sen"...))
}

// escapingWriter is a writer that escapes its input as the content of a JSON string.
type escapingWriter struct{ io.Writer }

func (e escapingWriter) Write(p []byte) (int, error) {
	n := len(p)
	var b []byte
	for _, c := range p {
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		default:
			b = append(b, c)
		}
	}
	_, err := e.Writer.Write(b)
	return n, err
}

// spoolThreshold is the size in bytes up to which a result stays in memory in these tests.
// TestLargeAnswersTakeLittleMemory tests the default limit.
const spoolThreshold = 1 << 20

// openLarge opens an engine that writes results of more than spoolThreshold bytes to files.
func openLarge(t *testing.T, settings string) (*engine.Engine, string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	c := engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Home: home, Settings: settings, Servers: []engine.Server{{Name: "drive", Command: self, Args: []string{largeServer}}}}
	e, err := engine.Open(t.Context(), engine.WithSpoolAbove(c, spoolThreshold))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	e.WaitForServers(t.Context())
	return e, home
}

// TestLargeAnswers checks that a result that is too large for memory becomes a file that programs can read.
func TestLargeAnswers(t *testing.T) {
	const mb = 3
	e, home := openLarge(t, "maxExecutionTime: 10m\n")
	for _, as := range []string{"text", "structured", "id at the end"} {
		t.Run(as, func(t *testing.T) {
			session := strings.ReplaceAll(as, " ", "-")
			o := e.Execute(t.Context(), engine.Request{Session: session, Language: core.TypeScript, Code: `import fs from 'node:fs/promises';
				const answer = await drive.get({as: '` + as + `', mb: ` + strconv.Itoa(mb) + `});
				const found = [];
				for await (const line of (await fs.open(answer.path)).readLines()) {
					if (line.includes('"id":77,')) found.push(JSON.parse(line));
				}
				await state.set('path', answer.path);
				console.log(answer.path.endsWith('.jsonl'));
				return {rows: answer.rows, bytes: answer.bytes, others: answer.others ?? null, member: answer.member ?? null, kind: answer.mimeType, found};`})
			if o.Status != core.StatusOK {
				t.Fatalf("%+v", o.Error)
			}
			var got struct {
				Rows, Bytes int64
				Others      json.RawMessage
				Member      string
				Kind        string
				Found       []struct{ Email, Name string }
			}
			if err := json.Unmarshal(o.Result, &got); err != nil {
				t.Fatal(err)
			}
			if got.Rows < mb*5000 || len(got.Found) != 1 || !strings.HasPrefix(got.Found[0].Email, "[EMAIL_") || got.Kind != "application/jsonl" {
				t.Errorf("%+v", got)
			}
			if as == "structured" && (got.Member != "rows" || string(got.Others) != `{"next":null,"total":7}` && string(got.Others) != `{"total":7,"next":null}`) {
				t.Errorf("member %s, others %s", got.Member, got.Others)
			}
			text, _ := json.Marshal(o)
			if n := tokens.CountTokens(string(text)); n > 2000 {
				t.Errorf("%d tokens", n)
			}
			if o.Output != "true\n" {
				t.Errorf("path: %s", o.Output)
			}
			if len(o.Warnings) != 1 || !strings.Contains(o.Warnings[0], "./workspace/files/") {
				t.Errorf("warnings %q", o.Warnings)
			}
			again := e.Execute(t.Context(), engine.Request{Session: session, Language: core.Python, Code: "n = 0\nfor line in open(state.get('path')):\n    n += '\"id\":1' in line\nresult = n"})
			if again.Status != core.StatusOK || len(again.Result) < 4 {
				t.Errorf("the next program: %s %s %+v", again.Status, again.Result, again.Error)
			}
		})
	}
	checkNothingSpooled(t, home)
}

// TestLargeAnswersOfOtherForms checks that large results that are not an array of rows become files, too.
func TestLargeAnswersOfOtherForms(t *testing.T) {
	e, home := openLarge(t, "maxExecutionTime: 10m\n")
	for as, want := range map[string]string{
		"csv":          `[".txt","text/plain",true,true,0,true]`,
		"log":          `[".txt","text/plain",true,true,0,true]`,
		"bytes":        `[".png","image/png",true,true,0,true]`,
		"csv as bytes": `[".csv","text/csv",true,true,0,true]`,
	} {
		t.Run(as, func(t *testing.T) {
			o := e.Execute(t.Context(), engine.Request{Session: strings.ReplaceAll(as, " ", "-"), Code: `import fs from 'node:fs/promises';
				const answer = [await drive.get({as: '` + as + `', mb: 3})].flat().at(-1);
				let mails = 0, lines = 0, last = '';
				if (answer.mimeType.startsWith('text/')) for await (const line of (await fs.open(answer.path)).readLines()) {
					lines++;
					if (line.includes('@example')) mails++;
					last = line;
				}
				return [answer.path.slice(answer.path.lastIndexOf('.')), answer.mimeType, answer.bytes === (await fs.stat(answer.path)).size, lines > 1000 || answer.bytes === 3 << 20, mails, /[[]EMAIL_\d+[\]]/.test(last) || lines === 0];`})
			if got := string(o.Result); got != want {
				t.Errorf("%s %s %v %+v, want %s", o.Status, got, o.Warnings, o.Error, want)
			}
		})
	}
	checkNothingSpooled(t, home)
}

// TestLargeLies checks that a large result that is malformed, cut off, endless or over the quota causes an error that
// says why. It also checks that no file is left behind.
func TestLargeLies(t *testing.T) {
	e, home := openLarge(t, "maxExecutionTime: 10m\nresourceLimits: {disk: 8MB}\n")
	for as, want := range map[string]string{
		"broken":  "tool_error: the answer starts like JSON but is not valid JSON: unexpected",
		"gone":    "it may be too much for the server",
		"endless": "exceeds the limit of",
		"deep":    "cannot be read: nested deeper than 1000",
		"twice":   "cannot be read: a member occurs twice",
		"full":    "EDQUOT",
		"error":   "it failed: {",
	} {
		t.Run(as, func(t *testing.T) {
			o := e.Execute(t.Context(), engine.Request{Session: as, Code: `import fs from 'node:fs/promises';
				if ('` + as + `' === 'full') await fs.writeFile('files/full', 'x'.repeat(7 << 20));
				try { await drive.get({as: '` + as + `', mb: 3}); } catch (e: any) { return [e.name, e.kind + ': ' + e.message, e.hint ?? '']; }`})
			if o.Status != core.StatusOK || !strings.Contains(string(o.Result), want) || !strings.Contains(string(o.Result), "ToolError") {
				t.Errorf("%s %s %+v, want %s", o.Status, o.Result, o.Error, want)
			}
			if left, _ := filepath.Glob(filepath.Join(home, "workspace", as, "files", "*")); len(left) > 0 && as != "full" || len(left) > 1 {
				t.Errorf("left: %v", left)
			}
			checkNothingSpooled(t, home)
		})
	}
}

// checkNothingSpooled checks that the folder for messages too large for memory is empty. It also checks that this
// process has no descriptor of such a file open, not even of a deleted one.
func checkNothingSpooled(t *testing.T, home string) {
	t.Helper()
	left, _ := os.ReadDir(filepath.Join(home, "spool"))
	if len(left) > 0 {
		t.Errorf("left in the spool: %v", left)
	}
	fds, _ := filepath.Glob("/proc/self/fd/*")
	for _, fd := range fds {
		if to, _ := os.Readlink(fd); strings.HasPrefix(to, filepath.Join(home, "spool")) {
			t.Errorf("still open: %s", to)
		}
	}
}

// largeEngine is the argument that makes this program an engine that runs one program on a large result and reports
// its memory use.
const largeEngine = "large-engine"

func serveLargeEngine(arguments string) {
	told, err := engineOfLarge(arguments)
	if err != nil {
		panic(err)
	}
	_ = json.NewEncoder(os.Stdout).Encode(told)
}

type engineTold struct {
	Before, After int64 // bytes: the most that was in memory at any time
	Status        core.OutcomeStatus
	Result        string
	Tokens        int
	Error         string
}

func engineOfLarge(arguments string) (told engineTold, err error) {
	home, err := os.MkdirTemp("", "retort-large-")
	if err != nil {
		return told, err
	}
	defer os.RemoveAll(home)
	self, _ := os.Executable()
	background := context.Background()
	e, err := engine.Open(background, engine.Config{
		NoFiles: true, Reserve: engine.ReserveNone, Home: home, Keys: home, Settings: "maxExecutionTime: 1h\nresourceLimits: {disk: 4GB}\n",
		Servers: []engine.Server{{Name: "drive", Command: self, Args: []string{largeServer}}},
	})
	if err != nil {
		return told, err
	}
	defer e.Close()
	e.WaitForServers(background)
	code := `import fs from 'node:fs/promises';
		const answer = await drive.get({as: 'text', %s});
		if (Array.isArray(answer)) return answer.length;
		const rows = [];
		for await (const line of (await fs.open(answer.path)).readLines())
			if (line.includes('"id":77')) { rows.push(JSON.parse(line)); if (rows.length === 3) break; }
		return {rows: answer.rows, bytes: answer.bytes, found: rows};`
	e.Execute(background, engine.Request{Code: fmt.Sprintf(code, "mb: 1")})
	told.Before = mostMemory()
	o := e.Execute(background, engine.Request{Code: fmt.Sprintf(code, arguments)})
	told.After = mostMemory()
	text, _ := json.Marshal(o)
	told.Status, told.Result, told.Tokens = o.Status, string(o.Result), tokens.CountTokens(string(text))
	if o.Error != nil {
		told.Error = o.Error.Message
	}
	return told, nil
}

// mostMemory returns the peak resident memory of this process (VmHWM).
func mostMemory() int64 {
	status, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	n, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	return n << 10
}
