package engine_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"retort/internal/admin"
	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/egress/egresstest"
	"retort/internal/engine"
)

// testSite is the web site that the programs of these tests reach.
type testSite struct {
	*egresstest.Site
	mu   sync.Mutex
	seen []*http.Request
}

func (s *testSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.seen = append(s.seen, r)
	s.mu.Unlock()
	switch r.URL.Path {
	case "/key":
		_, _ = fmt.Fprint(w, r.Header.Get("X-Api-Key"))
	case "/away":
		http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/", http.StatusFound)
	case "/bytes":
		_, _ = w.Write([]byte{0, 1, 254, 255})
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{"method": r.Method, "host": r.Host, "path": r.URL.Path, "body": string(body), "x": r.Header.Get("X-Test")})
	}
}

const networked = `
piiTokenization: false   # addresses of machines are personal
network:
  whitelist: [api.example.com, {domain: "*.sub.example.com"}, {domain: plain.example.com, protocols: [http]}, key.example.com, inner.example.com]
  secrets: [{domain: key.example.com, header: X-Api-Key, value: sesame-open-0815}]
  certificates: %q
`

// openReaching opens an engine whose programs can reach a site. The programs need the given runtime; more holds
// further settings.
func openReaching(t *testing.T, runtime string, more ...string) (*engine.Engine, *testSite, engine.Config) {
	t.Helper()
	s := &testSite{}
	s.Site = egresstest.New(t, s, "api.example.com", "a.sub.example.com", "plain.example.com", "key.example.com", "evil.example.com")
	s.Answer("inner.example.com", netip.MustParseAddr("10.0.0.1"))
	home := t.TempDir()
	certificates := filepath.Join(home, "authority.pem")
	if err := os.WriteFile(certificates, s.Certificate, 0o644); err != nil {
		t.Fatal(err)
	}
	settings := fmt.Sprintf(networked, certificates) + strings.Join(more, "")
	if runtime != "quickjs" {
		if path := testenv.Need(t, runtime); runtime == "bun" || runtime == "deno" {
			settings += fmt.Sprintf("runtimes: {%s: %q}\n", runtime, path)
		}
	}
	c := engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Home: filepath.Join(home, "home"), Keys: filepath.Join(home, "keys"), Settings: settings, Limits: unlimitedTime}
	e, err := engine.Open(t.Context(), engine.Within(c, s))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e, s, c
}

// requestProgram returns a program that requests an address and returns the text of the response.
func requestProgram(runtime, address string) engine.Request {
	if runtime == "python" {
		return engine.Request{Language: core.Python, Code: fmt.Sprintf("import urllib.request\nresult = urllib.request.urlopen(%q).read().decode()", address)}
	}
	return engine.Request{Language: core.TypeScript, Runtime: runtime, Code: fmt.Sprintf("return await (await fetch(%q)).text()", address)}
}

var reachers = []string{"quickjs", "python", "node", "bun", "deno"}

// TestNetwork checks that programs in every runtime reach the allowed addresses and no others. A refused request must
// fail with an error of kind policy and have an entry in the audit log.
func TestNetwork(t *testing.T) {
	for i, runtime := range reachers {
		t.Run(runtime, func(t *testing.T) {
			e, s, c := openReaching(t, runtime)
			if testenv.Full() {
				checkReached(t, e, s, c, runtime)
			} else {
				checkReachedTogether(t, e, s, c, runtime, i)
			}
		})
	}
}

// allowedAddresses maps addresses that programs may reach to text that the response must contain.
var allowedAddresses = map[string]string{
	"https://api.example.com/a": `"host":"api.example.com"`, "https://a.sub.example.com/b": `"path":"/b"`, "http://plain.example.com/c": `"host":"plain.example.com"`,
}

// refusedAddresses lists addresses that programs may not reach.
var refusedAddresses = []string{"https://evil.example.com/", "http://api.example.com/", "https://api.example.com:8443/", "https://inner.example.com/", "http://169.254.169.254/", "https://127.0.0.1:7337/", "https://localhost/", "http://2130706433/"}

// checkReached checks which addresses programs of a runtime can reach. It runs one program per address.
func checkReached(t *testing.T, e *engine.Engine, s *testSite, c engine.Config, runtime string) {
	t.Helper()
	for address, want := range allowedAddresses {
		var text string
		o := e.Execute(t.Context(), requestProgram(runtime, address))
		if err := json.Unmarshal(o.Result, &text); err != nil || o.Status != core.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%s: %s %s %+v %v", address, o.Status, o.Result, o.Error, o.Warnings)
		}
	}
	for _, address := range refusedAddresses {
		mustBeRefused(t, e, runtime, address)
	}
	checkNetworkEntries(t, s, c, refusedAddresses)
}

// checkReachedTogether checks the same as checkReached, but with only two programs. One tries all addresses and
// catches the errors. The other tries one refused address, selected by turn, and does not catch the error.
func checkReachedTogether(t *testing.T, e *engine.Engine, s *testSite, c engine.Config, runtime string, turn int) {
	t.Helper()
	addresses := slices.Concat(slices.Sorted(maps.Keys(allowedAddresses)), refusedAddresses)
	list, _ := json.Marshal(addresses)
	r := engine.Request{Language: core.TypeScript, Runtime: runtime, Code: "const all: string[] = [];\nfor (const address of " + string(list) + ")\n" +
		"\ttry { all.push(await (await fetch(address)).text()) } catch (e: any) { all.push(e.kind) }\nreturn all"}
	if runtime == "python" {
		r = engine.Request{Language: core.Python, Code: "import urllib.request\nresult = []\nfor address in " + string(list) + ":\n    try:\n" +
			"        result.append(urllib.request.urlopen(address).read().decode())\n    except OSError:\n        result.append('policy')"}
	}
	var texts []string
	o := e.Execute(t.Context(), r)
	if err := json.Unmarshal(o.Result, &texts); err != nil || o.Status != core.StatusOK || len(texts) != len(addresses) {
		t.Fatalf("%s %s %+v %v", o.Status, o.Result, o.Error, o.Warnings)
	}
	for i, text := range texts {
		if want, may := allowedAddresses[addresses[i]]; may && !strings.Contains(text, want) || !may && text != "policy" {
			t.Errorf("%s: %q, want %q or policy", addresses[i], text, want)
		}
	}
	uncaught := refusedAddresses[turn%len(refusedAddresses)]
	mustBeRefused(t, e, runtime, uncaught)
	checkNetworkEntries(t, s, c, append(slices.Clone(refusedAddresses), uncaught))
}

// mustBeRefused checks that a program fails with a policy error if it requests the given address.
func mustBeRefused(t *testing.T, e *engine.Engine, runtime, address string) {
	t.Helper()
	o := e.Execute(t.Context(), requestProgram(runtime, address))
	if o.Status != core.StatusDenied || o.Error == nil || o.Error.Kind != core.KindPolicy || o.Error.Line != 1 && runtime != "python" {
		t.Errorf("%s: %s %+v %v", address, o.Status, o.Error, o.Warnings)
	}
}

// checkNetworkEntries checks that no forbidden address was dialled, and that the audit log has an entry for each
// allowed and each refused request.
func checkNetworkEntries(t *testing.T, s *testSite, c engine.Config, tried []string) {
	t.Helper()
	if found := s.Strangers(); found != nil {
		t.Errorf("dialled %v", found)
	}
	if n := countNetworkEntries(t, c, "refused"); n != len(tried) {
		t.Errorf("%d entries for refused requests, want %d", n, len(tried))
	}
	inside := 0 // the host inner.* is allowed by name, but resolves to an internal address
	for _, address := range tried {
		if strings.Contains(address, "inner.") {
			inside++
		}
	}
	if n := countNetworkEntries(t, c, "allowed"); n != len(allowedAddresses)+inside {
		t.Errorf("%d entries for allowed requests, want %d", n, len(allowedAddresses)+inside)
	}
}

// TestContainedNetwork does the checks of TestNetwork for programs in containers, which have no network of their own.
// JavaScript runtimes send their requests through the engine, so one of them is enough unless RETORT_FULL is set.
func TestContainedNetwork(t *testing.T) {
	var daemon *testenv.DockerDaemon
	defer func() {
		if daemon != nil {
			daemon.End()
		}
	}()
	for _, mode := range []struct {
		name       string
		part, full []string
	}{
		{"gvisor", []string{"python"}, nil},
		{"docker/runc", []string{"python", "quickjs"}, []string{"node", "bun", "deno"}},
		{"docker/runsc", []string{"python"}, []string{"quickjs", "node", "bun", "deno"}},
	} {
		t.Run(mode.name, func(t *testing.T) {
			sandbox, runner, docker := strings.Cut(mode.name, "/")
			settings, runtimes := "sandboxMode: "+sandbox+"\n", mode.part
			if runner != "runc" {
				testenv.Need(t, "runsc")
			}
			if docker && daemon == nil {
				daemon = testenv.StartDockerd(t)
			}
			if docker {
				settings += fmt.Sprintf("docker: {host: %q, runtime: %s}\n", daemon.Host(), runner)
			}
			if testenv.Full() {
				runtimes = append(runtimes, mode.full...)
			}
			for _, runtime := range runtimes {
				t.Run(runtime, func(t *testing.T) {
					e, s, c := openReaching(t, runtime, settings)
					checkReached(t, e, s, c, runtime)
				})
			}
		})
	}
}

// countNetworkEntries counts the entries about the network in the audit log.
func countNetworkEntries(t *testing.T, c engine.Config, status string) int {
	t.Helper()
	page, err := admin.QueryAudit(t.Context(), c, admin.AuditQuery{Limit: 1000, Filter: admin.AuditFilter{Kinds: []string{string(core.EventNetwork)}, Statuses: []string{status}}})
	if err != nil {
		t.Fatal(err)
	}
	return len(page.Entries)
}

// TestNetworkSecrets checks that requests of a program carry a key that the program itself never sees.
func TestNetworkSecrets(t *testing.T) {
	const key = "sesame-open-0815"
	for _, runtime := range reachers {
		t.Run(runtime, func(t *testing.T) {
			e, s, _ := openReaching(t, runtime)
			address := "https://key.example.com/key"
			if runtime == "python" {
				o := e.Execute(t.Context(), requestProgram(runtime, address))
				if o.Status != core.StatusDenied || !strings.Contains(o.Error.Hint, "http://key.example.com/") || len(s.seen) != 0 {
					t.Errorf("%s %+v", o.Status, o.Error)
				}
				address = "http://key.example.com/key"
			}
			o := e.Execute(t.Context(), requestProgram(runtime, address))
			if o.Status != core.StatusOK || strings.Contains(string(o.Result), key) || !strings.Contains(string(o.Result), "SECRET") {
				t.Errorf("%s %s %+v", o.Status, o.Result, o.Error)
			}
			if len(s.seen) != 1 || s.seen[0].TLS == nil || s.seen[0].Header.Get("X-Api-Key") != key {
				t.Errorf("%v", s.seen)
			}
		})
	}
}

// TestNetworkRehearsal checks that a dry run sends network requests that only read, and refuses all others.
func TestNetworkRehearsal(t *testing.T) {
	e, s, _ := openReaching(t, "quickjs")
	o := e.Execute(t.Context(), engine.Request{DryRun: true, Code: `const a = await fetch('https://api.example.com/'); try { await fetch('https://api.example.com/', {method: 'POST', body: 'x'}) } catch (e) { return [a.ok, e.kind, e.message] }`})
	if !strings.HasPrefix(string(o.Result), `[true,"policy","a dry run sends nothing`) || len(s.seen) != 1 {
		t.Errorf("%s %s %+v", o.Status, o.Result, o.Error)
	}
}

// TestNetworkClosed checks that programs reach no address without the setting, and that the error says so.
func TestNetworkClosed(t *testing.T) {
	s := &testSite{}
	s.Site = egresstest.New(t, s, "api.example.com")
	for _, settings := range []string{"", "network: {secrets: [{domain: api.example.com, header: X, value: y}]}", "network: {blacklist: [evil.example.com]}"} {
		e, err := engine.Open(t.Context(), engine.Within(engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Limits: unlimitedTime, Home: t.TempDir(), Settings: settings}, s))
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		o := e.Execute(t.Context(), requestProgram("quickjs", "https://api.example.com/"))
		if o.Status != core.StatusDenied || o.Error.Kind != core.KindPolicy || !strings.Contains(o.Error.Hint, "network: {whitelist") {
			t.Errorf("%s %+v", o.Status, o.Error)
		}
		testenv.Need(t, "python")
		if o = e.Execute(t.Context(), requestProgram("python", "https://api.example.com/")); o.Status == core.StatusOK {
			t.Errorf("%s %s", o.Status, o.Result)
		}
		if s.Dialled() != nil || s.Resolved() != nil {
			t.Error(s.Dialled(), s.Resolved())
		}
	}
}

// fetchPrograms maps pieces of programs to their results, which are the same in every runtime.
var fetchPrograms = map[string]string{
	`const r = await fetch('https://api.example.com/x', {method: 'post', headers: {'X-Test': 'yes'}, body: JSON.stringify({a: 1})}); return [r.status, r.ok, r.url, r.redirected, r.headers.get('Content-Type'), await r.json()]`: `[200,true,"https://api.example.com/x",false,"application/json",{"body":"{\"a\":1}","host":"api.example.com","method":"POST","path":"/x","x":"yes"}]`,
	`const r = await fetch(new Request('https://api.example.com/', {method: 'PUT', body: new Uint8Array([104, 105])})); return [(await r.json()).body, r.bodyUsed]`:                                                               `["hi",true]`,
	`const r = await fetch(new URL('https://api.example.com/bytes')); return [...await r.bytes()]`:                                                                                                                                `[0,1,254,255]`,
	`const r = await fetch('https://api.example.com/bytes'); const all: number[] = []; for await (const part of r.body!) all.push(...part); return all`:                                                                           `[0,1,254,255]`,
	`const r = await fetch('https://api.example.com/', {method: 'POST', body: new URLSearchParams({a: 'b c'})}); return (await r.json()).body`:                                                                                    `"a=b+c"`,
	`const r = await fetch('https://api.example.com/'); const again = r.clone(); return [typeof await r.text(), (await again.json()).path]`:                                                                                       `["string","/"]`,
	`return await Promise.all([1, 2, 3].map(async (n) => (await (await fetch('https://api.example.com/' + n)).json()).path))`:                                                                                                     `["/1","/2","/3"]`,
	`try { await fetch('https://api.example.com/away') } catch (e: any) { return [e.kind, e instanceof ToolError] }`:                                                                                                              `["policy",true]`,
	`try { await fetch('https://evil.example.com/') } catch (e: any) { return [e.kind, e.message] }`:                                                                                                                              `["policy","evil.example.com is not in network.whitelist"]`,
	`const c = new AbortController(); c.abort(); try { await fetch('https://api.example.com/', {signal: c.signal}) } catch (e: any) { return e.name }`:                                                                            `"AbortError"`,
	`try { await fetch('https://api.example.com/', {headers: {'X-Test': 'a\r\nb: c'}}) } catch (e: any) { return e.name }`:                                                                                                        `"TypeError"`,
	`const h = new Headers([['B', '1'], ['a', '2'], ['b', '3']]); return [[...h], h.has('A'), h.get('c')]`:                                                                                                                        `[[["a","2"],["b","1, 3"]],true,null]`,
	`const r = Response.json({a: 1}, {status: 201}); return [r.status, r.headers.get('content-type'), await r.json()]`:                                                                                                            `[201,"application/json",{"a":1}]`,
	`const r = new Response('x'); await r.text(); try { await r.text() } catch (e: any) { return e.name }`:                                                                                                                        `"TypeError"`,
	`try { new Request('https://api.example.com/', {body: 'x'}) } catch (e: any) { return e.name }`:                                                                                                                               `"TypeError"`,
}

// TestFetch checks that fetch behaves the same in every runtime. It runs all pieces of code in fetches as one
// program, each in its own function.
func TestFetch(t *testing.T) {
	pieces := slices.Sorted(maps.Keys(fetchPrograms))
	code := "return [" + "\n"
	for _, piece := range pieces {
		code += "await (async () => { " + piece + " })().catch((e: any) => String(e)),\n"
	}
	code += "]"
	for _, runtime := range []string{"quickjs", "node", "bun", "deno"} {
		t.Run(runtime, func(t *testing.T) {
			e, s, _ := openReaching(t, runtime)
			var got []json.RawMessage
			o := e.Execute(t.Context(), engine.Request{Runtime: runtime, Code: code})
			if err := json.Unmarshal(o.Result, &got); err != nil || len(got) != len(pieces) {
				t.Fatalf("%s %s %+v", o.Status, o.Result, o.Error)
			}
			for i, piece := range pieces {
				if want := fetchPrograms[piece]; string(got[i]) != want {
					t.Errorf("%s\n%s\nwant %s", piece, got[i], want)
				}
			}
			if found := s.Strangers(); found != nil {
				t.Error(found)
			}
		})
	}
}

// TestPythonNetwork checks what a Python program can and cannot do with its network.
func TestPythonNetwork(t *testing.T) {
	e, s, _ := openReaching(t, "python")
	for code, want := range map[string]string{
		"import http.client\nc = http.client.HTTPSConnection('api.example.com')\nc.request('POST', '/h', 'body')\nr = c.getresponse()\nresult = [r.status, json.loads(r.read())['body']]":                                     `[200,"body"]`,
		"import http.client\nc = http.client.HTTPConnection('plain.example.com')\nc.request('GET', '/h')\nresult = json.loads(c.getresponse().read())['path']":                                                                `"/h"`,
		"import urllib.request\nr = urllib.request.Request('https://api.example.com/p', data=b'x' * 300000, headers={'X-Test': 'y'})\nd = json.loads(urllib.request.urlopen(r).read())\nresult = [len(d['body']), d['x']]":    `[300000,"y"]`,
		"import urllib.request, urllib.error\ntry:\n    urllib.request.urlopen('https://evil.example.com/')\nexcept urllib.error.URLError as e:\n    result = 'evil.example.com is not in network.whitelist' in str(e)":       `true`,
		"import http.client\ntry:\n    http.client.HTTPSConnection('evil.example.com').request('GET', '/')\nexcept OSError as e:\n    result = str(e)":                                                                        `"Tunnel connection failed: 403 evil.example.com is not in network.whitelist"`,
		"import http.client\ntry:\n    http.client.HTTPSConnection('169.254.169.254').request('GET', '/')\nexcept OSError as e:\n    result = '403' in str(e)":                                                                `true`,
		"import concurrent.futures, urllib.request\nwith concurrent.futures.ThreadPoolExecutor(8) as p:\n    result = len(list(p.map(lambda n: urllib.request.urlopen('https://api.example.com/%d' % n).read(), range(16))))": `16`,
		"import urllib.request\ntry:\n    urllib.request.urlopen('https://api.example.com/away')\nexcept Exception as e:\n    result = '403' in str(e) or '169.254' in str(e)":                                                `true`,
	} {
		o := e.Execute(t.Context(), engine.Request{Language: core.Python, Code: code})
		if string(o.Result) != want {
			t.Errorf("%s\n%s %s %+v %v\nwant %s", code, o.Status, o.Result, o.Error, o.Warnings, want)
		}
	}
	if found := s.Strangers(); found != nil {
		t.Error(found)
	}
}
