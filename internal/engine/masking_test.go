package engine_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"retort/internal/audit"
	"retort/internal/audit/sqlstore"
	"retort/internal/base/seal"
	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/engine"
)

// spillingServer is the argument that makes this program a server that puts its credentials into everything it sends.
const spillingServer = "spilling-server"

const (
	plantedToken    = "xq7_R7kQ2mZx9LwT4vB8nYc3HsJ6dF1gPaE5uXoI"
	plantedPassword = "Tr0ub4dor-and-3-more"
	plantedMail     = "kari.nordmann@spill-customer.example"
	plantedCard     = "4111 1111 1111 1111"
	plantedName     = "Ingebjørg Halvorsrud"
)

func spilled() []string { return []string{plantedToken, plantedPassword} }

// listSpellings returns the ways in which a value may be written.
func listSpellings(v string) []string {
	all := []string{v, strings.ToUpper(v), hex.EncodeToString([]byte(v)), strings.Join(strings.Split(v, ""), " "), strings.Join(strings.Split(v, ""), "\n"), v[:len(v)/2+2], v[len(v)/2-2:]}
	var percent, codes strings.Builder
	for i := range len(v) {
		fmt.Fprintf(&percent, "%%%02X", v[i])
		fmt.Fprintf(&codes, "%d,", v[i])
	}
	all = append(all, percent.String(), codes.String())
	for n := range 3 {
		all = append(all, base64.StdEncoding.EncodeToString([]byte("me:"[:n]+v)), base64.RawURLEncoding.EncodeToString([]byte("me:"[:n]+v+"!")))
	}
	return all
}

// listTraces returns the pieces of a secret value that must not occur anywhere in the output, such as its base64
// form.
func listTraces(v string) []string {
	all := listSpellings(v)[:9]
	for n := range 3 {
		core := base64.RawStdEncoding.EncodeToString([]byte("\x00\x00"[:n] + v))
		core = core[(8*n+5)/6 : (n+len(v))*8/6]
		all = append(all, core, strings.NewReplacer("+", "-", "/", "_").Replace(core))
	}
	return all
}

func serveSpilling() {
	token, dsn := os.Getenv("API_TOKEN"), os.Getenv("DATABASE_URL")
	everything := strings.Join(append(listSpellings(token), listSpellings(plantedPasswordOf(dsn))...), "\n| ") + "\n| " + dsn + " Authorization: Bearer " + token
	say := func(id json.RawMessage, format string, args ...any) {
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,`+format+"}\n", append([]any{id}, args...)...)
	}
	quote := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	fmt.Fprintln(os.Stderr, "began with "+token[:25]+"\n"+token[25:]+" and "+dsn)
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 4<<20)
	for in.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Name      string
				Arguments struct{ As string }
			}
		}
		if json.Unmarshal(in.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		text := func(s string) string { return `{"content":[{"type":"text","text":` + quote(s) + `}]}` }
		switch m.Method {
		case "initialize":
			say(m.ID, `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"instructions":%s,"serverInfo":{"name":%s,"version":"1"}}`, quote("use "+token), quote("spill "+token))
			continue
		case "tools/list":
			say(m.ID, `"result":{"tools":[{"name":"get_it","description":%s,"inputSchema":{"type":"object","properties":{"as":{"type":"string","description":%s}}},"annotations":{"readOnlyHint":true}},`+
				`{"name":"create_note","description":"makes a note","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}},"annotations":{"readOnlyHint":false,"destructiveHint":false}}]}`,
				quote("gets it, as "+token+" may"), quote("how; not "+base64.StdEncoding.EncodeToString([]byte(token))))
			continue
		case "tools/call":
		default:
			say(m.ID, `"error":{"code":-32601,"message":"no"}`)
			continue
		}
		fmt.Printf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1,"message":%s}}`+"\n", quote(token))
		fmt.Printf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":%s}}`+"\n", quote(token))
		chars, _ := json.Marshal(strings.Split(token, ""))
		switch m.Params.Arguments.As {
		case "json":
			say(m.ID, `"result":{"content":[],"structuredContent":{"all":%s,"characters":%s,%s:1}}`, quote(everything), chars, quote(token))
		case "resource":
			say(m.ID, `"result":{"content":[{"type":"resource","resource":{"uri":"file:///x","mimeType":"text/plain","text":%s}},{"type":"resource","resource":{"uri":"file:///y","mimeType":"text/plain","blob":%s}}]}`,
				quote(everything), quote(base64.StdEncoding.EncodeToString([]byte("in a blob: "+everything))))
		case "error":
			say(m.ID, `"result":{"isError":true,%s`, text("failed with " + everything)[1:])
		case "protocol":
			say(m.ID, `"error":{"code":-32000,"message":%s,"data":%s}`, quote("failed with "+token), quote(everything))
		case "large":
			say(m.ID, `"result":%s`, text(strings.Repeat("nothing here\n", 700_000)+everything+strings.Repeat("\nnor here", 900_000)))
		case "reversed":
			back := []byte(token)
			slices.Reverse(back)
			say(m.ID, `"result":%s`, text(string(back)))
		case "personal":
			say(m.ID, `"result":%s`, text(`[{"full_name":"`+plantedName+`","email":"`+plantedMail+`","card":"`+plantedCard+`"}]`))
		case "crash":
			fmt.Fprintln(os.Stderr, "crashing with "+token)
			fmt.Println("not a message: " + token)
			os.Exit(3)
		default:
			say(m.ID, `"result":%s`, text(everything))
		}
	}
}

func plantedPasswordOf(dsn string) string {
	_, rest, _ := strings.Cut(dsn, "me:")
	password, _, _ := strings.Cut(rest, "@")
	return password
}

// lockedBuffer is a buffer for a log that is safe for concurrent use.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

const spillingProgram = `
	import fs from 'node:fs/promises';
	const got: any[] = [];
	for (const as of ['text', 'json', 'resource', 'large', 'error', 'protocol', 'personal']) {
		try { got.push(await (spill as any).getIt({as})); } catch (e) { got.push('caught ' + (e as Error).message + (e as any).hint); console.log(String(e)); }
	}
	const all = JSON.stringify(got);
	console.log(all.slice(0, 5000));
	for (const x of got) for (const y of Array.isArray(x) ? x : [x]) if (y?.path) {
		const text = await fs.readFile('workspace/' + y.path, 'utf8');
		console.log(y.path, y.bytes, text.slice(text.indexOf('[SECRET'), text.indexOf('[SECRET') + 3000));
	}
	await fs.writeFile('workspace/kept.json', all);
	await state.set('kept', all);
	const text = JSON.stringify(got.slice(0, -1)).replaceAll('://', ' ');
	await spill.createNote({text});
	await (other as any).createNote({text});
	return got;`

// TestSecretsAreNowhere checks that the credentials of a server reach neither programs, the model, the data
// directory, the audit log nor the log, whatever the server does with them. The same holds for personal values,
// except for names, which programs may see.
func TestSecretsAreNowhere(t *testing.T) {
	for name, settings := range map[string]string{"hidden": "", "without tokens for personal data": "piiTokenization: false\n"} {
		t.Run(name, func(t *testing.T) {
			spills(t, settings+"permissionLevel: execute_full\napproval: {autoApproveHigh: true}\ncache: {ttl: 1h, tools: ['spill.*']}", settings == "")
		})
	}
}

func spills(t *testing.T, settings string, hides bool) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home, keys, log := t.TempDir(), t.TempDir(), &lockedBuffer{}
	taker := &scriptedServer{tools: listing(tool("create_note", `"text":{"type":"string"}`, false)), answer: func(_ string, arguments json.RawMessage) string { return textResult(string(arguments)) }}
	env := map[string]string{"API_TOKEN": plantedToken, "DATABASE_URL": "postgres://me:" + plantedPassword + "@db.example/x"}
	e, err := engine.Open(t.Context(), engine.Config{
		NoFiles: true, Reserve: engine.ReserveNone, Home: home, Keys: keys, Settings: settings + "\nservers: {other: {pii: {reveal: [email, credit_card, name, company, secret, phone, address]}}, spill: {pii: {reveal: [secret]}}}",
		Servers: []engine.Server{{Name: "spill", Command: self, Args: []string{spillingServer}, Env: env}, {Name: "other", Dial: taker.dial}},
		Log:     slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	e.WaitForServers(t.Context())
	var told bytes.Buffer
	tell := func(v any) { b, _ := json.Marshal(v); told.Write(append(b, '\n')) }
	first := e.Execute(t.Context(), engine.Request{Code: spillingProgram})
	tell(first)
	if first.Status != core.StatusOK || !strings.Contains(first.Output, "SECRET") {
		t.Fatalf("%s %+v %s", first.Status, first.Error, first.Output)
	}
	if got := taker.got(); !strings.Contains(got, "[SECRET") {
		t.Errorf("another server gets %.300s", got)
	}
	for _, code := range []string{
		`throw new Error(String(await spill.getIt({as: 'text'})))`,
		`await spill.getIt({as: 'error'})`, `await spill.getIt({as: 'crash'})`, `return await spill.getIt({as: 'text'})`,
		`return String(await spill.getIt({as: 'reversed'})).split('').reverse().join('')`, // by a rule that nobody knows
		`return await spill.createNote({text: '` + plantedToken + `'})`,                   // the model knows it from elsewhere
	} {
		tell(e.Execute(t.Context(), engine.Request{Code: code}))
	}
	tell(e.Call(t.Context(), engine.Request{}, "spill.get_it", json.RawMessage(`{"as":"json"}`)))
	tell(e.ListServers())
	diagnosis, err := e.Doctor(t.Context(), nil, testenv.Patience)
	if err != nil {
		t.Fatal(err)
	}
	tell(diagnosis)
	found, err := e.Search(t.Context(), engine.Query{Text: "get it", Detail: "full"})
	tell(found)
	definitions, err2 := e.Describe(t.Context(), []string{"spill.getIt"}, core.TypeScript)
	tell(definitions)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	if part, err := e.ReadFile("", "kept.json", 0, 0, ""); err != nil || !strings.Contains(part.Content, "SECRET") {
		t.Errorf("%v %s", err, part.Content)
	}
	if o := e.SaveSkill(t.Context(), engine.Request{}, core.SkillDraft{Name: "a", Description: "keeps what is not to be kept", Code: `export default () => '` + plantedToken + `'`}); o.Error == nil || !strings.Contains(o.Error.Message, "secret") {
		t.Error("a skill with a secret is kept")
	}
	personal := []string{plantedMail, plantedCard}
	mustNotBeInFiles(t, home, hides, personal)
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	nowhere(t, "what is told", told.Bytes(), hides, append(personal, plantedName))
	nowhere(t, "the log", log.buf.Bytes(), hides, append(personal, plantedName))
	nowhere(t, "the record", wholeAuditLog(t, home, keys), hides, append(personal, plantedName))
	mustNotBeInFiles(t, home, hides, personal)
}

// mustNotBeInFiles searches the files of a data directory for values. It skips copies of this program for
// containers, because the program contains the values that the tests plant.
func mustNotBeInFiles(t *testing.T, home string, hides bool, personal []string) {
	t.Helper()
	files, large := 0, false
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(own)
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if len(data) > 0 && !bytes.Equal(data, program) { // locks are empty
			nowhere(t, path, data, hides, personal)
			files++
		}
		large = large || len(data) > 16<<20 && bytes.Contains(data, []byte("[SECRET"))
		return err
	})
	if err != nil || files < 5 || !large {
		t.Errorf("%d files were looked through, with the large answer %v: %v", files, large, err)
	}
}

func nowhere(t *testing.T, where string, text []byte, hides bool, personal []string) {
	t.Helper()
	if len(text) == 0 {
		t.Errorf("%s is empty", where)
	}
	for _, v := range spilled() {
		for _, trace := range listTraces(v) {
			if i := bytes.Index(text, []byte(trace)); i >= 0 {
				t.Errorf("%s has %q: …%q…", where, trace, text[max(0, i-60):min(len(text), i+len(trace)+20)])
			}
		}
	}
	for _, v := range personal {
		if hides && bytes.Contains(text, []byte(v)) {
			t.Errorf("%s has %s", where, v)
		}
	}
}

// wholeAuditLog returns all entries of the audit log in a data directory, with their decrypted bodies.
func wholeAuditLog(t *testing.T, home, keys string) []byte {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(home, "audit", "*.db"))
	r := audit.LogReader{Checkpoints: filepath.Join(keys, "checkpoints"), Home: home, Archives: filepath.Join(home, "audit", "archive"), Keys: audit.LogKeys{
		Bodies: func() ([]byte, error) { return seal.ReadKey(filepath.Join(keys, "vault.key")) },
		Codes:  func() ([]byte, error) { return seal.ReadKey(filepath.Join(keys, "audit.key")) },
	}}
	for _, file := range files {
		s, err := sqlstore.Open(t.Context(), file, sqlstore.Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		r.Stores = append(r.Stores, s)
	}
	var all bytes.Buffer
	var warnings []string
	bodies := 0
	for entry, err := range r.StreamEntries(t.Context(), audit.Filter{}, "", 0, &warnings) {
		if err != nil {
			t.Fatal(err)
		}
		if len(entry.Body) > 0 {
			bodies++
		}
		line, _ := json.Marshal(entry)
		all.Write(append(line, '\n'))
	}
	if bodies < 5 || len(warnings) > 0 || !bytes.Contains(all.Bytes(), []byte("[SECRET")) {
		t.Errorf("the record has %d bodies: %v", bodies, warnings)
	}
	return all.Bytes()
}

// TestErrorsOfOpenHaveNoSecrets checks that the error of Open contains no password of the settings.
func TestErrorsOfOpenHaveNoSecrets(t *testing.T) {
	_, err := engine.Open(t.Context(), engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Home: t.TempDir(), Keys: t.TempDir(), Settings: "audit: {store: 'postgres://me:" + plantedPassword + "@127.0.0.1:1/x?sslmode=bogus'}"})
	if err == nil || strings.Contains(fmt.Sprintf("%+v", err), plantedPassword) {
		t.Error(err)
	}
}

// authorizer is an Authorizer that obtains its token at run time, so that the token is in no configuration.
type authorizer struct{}

func (authorizer) Authorization(context.Context) (string, error) {
	return "Bearer " + plantedToken, nil
}

func (authorizer) Authorize(context.Context, *http.Request, *http.Response) error {
	return errors.New("no")
}

// TestSecretsOfAuthorizers checks that credentials that are obtained at run time are registered as secrets on first
// use.
func TestSecretsOfAuthorizers(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if json.NewDecoder(r.Body).Decode(&m) != nil || m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		result := textResult("you sent " + r.Header.Get("Authorization"))
		switch m.Method {
		case "initialize":
			result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"far","version":"1"}}`
		case "tools/list":
			result = `{"tools":[` + tool("get", "", true) + `]}`
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}))
	defer server.Close()
	e, err := engine.Open(t.Context(), engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Limits: unlimitedTime, Home: t.TempDir(), Keys: t.TempDir(), Settings: "piiTokenization: false",
		Servers: []engine.Server{{Name: "far", URL: server.URL, Transport: "http", Auth: authorizer{}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	e.WaitForServers(t.Context())
	if o := e.Execute(t.Context(), engine.Request{Code: `return btoa(String(await far.get({})))`}); strings.Contains(string(o.Result), base64.StdEncoding.EncodeToString([]byte("you sent Bearer " + plantedToken))[:40]) {
		t.Errorf("%s %+v", o.Result, o.Error)
	}
	if o := e.Execute(t.Context(), engine.Request{Code: `return await far.get({})`}); string(o.Result) != `"you sent Bearer [SECRET far Authorization]"` {
		t.Errorf("%s %+v", o.Result, o.Error)
	}
}

// TestWhatWaitsHasNoSecrets checks that a question sent to a webhook contains no secret, and has the same digest as
// the original.
func TestWhatWaitsHasNoSecrets(t *testing.T) {
	home, asked := t.TempDir(), make(chan []byte, 16)
	far := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked <- body
	}))
	defer far.Close()
	other := &scriptedServer{tools: listing(tool("create_note", `"text":{"type":"string"}`, false) + "," + tool("delete_all", `"text":{"type":"string"}`, false)), answer: func(string, json.RawMessage) string { return textResult("done") }}
	e, err := engine.Open(t.Context(), engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Limits: unlimitedTime, Home: home, Keys: t.TempDir(), Settings: "permissionLevel: execute_full\npiiTokenization: false\napproval: {webhook: {url: '" + far.URL + "', secret: " + plantedPassword + "-or-more}}",
		Servers: []engine.Server{{Name: "other", Dial: other.dial, Env: map[string]string{"API_TOKEN": plantedToken}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	e.WaitForServers(t.Context())
	o := e.Execute(t.Context(), engine.Request{Code: `await other.createNote({text: '` + plantedToken + `'}); return await other.deleteAll({text: '` + plantedToken + `'})`})
	text, _ := json.Marshal(o)
	if o.Status != core.StatusPendingApproval {
		t.Fatalf("%s", text)
	}
	nowhere(t, "what is told", text, false, nil)
	waiting := e.Waiting(o.ExecutionID)
	question := <-asked
	nowhere(t, "the webhook", question, false, nil)
	if !bytes.Contains(question, []byte(waiting[0].Digest)) || !bytes.Contains(question, []byte(waiting[0].ID)) || !bytes.Contains(question, []byte("[SECRET other API_TOKEN]")) {
		t.Errorf("the webhook is sent %s", question)
	}
	if err := e.Decide(waiting[0].ID, waiting[0].Digest, core.ApprovalAnswer{Approve: true}); err != nil {
		t.Fatal(err)
	}
	testenv.WaitUntil(t, "the call has left", func() bool { return other.got() != "" })
	files, _ := filepath.Glob(filepath.Join(home, "pending", "*.jsonl"))
	if len(files) != 1 {
		t.Fatalf("%d journals", len(files))
	}
	journal, _ := os.ReadFile(files[0])
	nowhere(t, "the journal", journal, false, nil)
	if o := e.Resume(t.Context(), o.ExecutionID, testenv.Patience); !strings.Contains(other.got(), plantedToken) {
		t.Errorf("a call must leave as it is: %s %+v", other.got(), o)
	}
}
