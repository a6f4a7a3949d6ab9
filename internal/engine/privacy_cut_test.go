package engine_test

import (
	"encoding/json"
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/engine"
)

const person = "Quirinus Wachtmeister"

// mustNotLeak fails the test if the model sees a part of the person's name.
func mustNotLeak(t *testing.T, o engine.Outcome, what string) {
	t.Helper()
	told, _ := json.Marshal(o)
	for _, part := range []string{"Quiri", "Wacht", "chtmeister", "uirinus"} {
		if strings.Contains(string(told), part) {
			t.Fatalf("%s: the model sees %q in %.300s", what, part, told)
		}
	}
}

func withPerson(t *testing.T) *engine.Engine {
	t.Helper()
	hr := &scriptedServer{tools: listing(tool("get_person", `"id":{"type":"number"}`, true)), answer: func(string, json.RawMessage) string {
		return textResult(`{"full_name":"` + person + `","email":"q.wachtmeister@corp.example","salary":100}`)
	}}
	e, err := engine.Open(t.Context(), engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Limits: unlimitedTime, Home: t.TempDir(), Keys: t.TempDir(), Servers: []engine.Server{{Name: "hr", Dial: hr.dial}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	e.WaitForServers(t.Context())
	return e
}

// TestNamesInPieces checks that a name that a program outputs in two pieces is hidden from the model like a whole
// one.
func TestNamesInPieces(t *testing.T) {
	e := withPerson(t)
	for lang, code := range map[core.Language]string{
		core.JavaScript: `const {full_name: n} = await hr.getPerson({id: 1});
			for (let i = 1; i < n.length; i++) { process.stdout.write(n.slice(0, i)); process.stdout.write(n.slice(i)); console.log('.'); }
			return [n.length, ...[...n].map((_, i) => [n.slice(0, i) + n.slice(i)])];`,
		core.Python: "import sys\nn = hr.get_person(id=1)['full_name']\nfor i in range(1, len(n)):\n    sys.stdout.write(n[:i])\n    sys.stdout.flush()\n    print(n[i:])\nresult = [len(n), [n[:i] + n[i:] for i in range(len(n))]]",
	} {
		o := e.Execute(t.Context(), engine.Request{Language: lang, Code: code})
		if lang == core.Python && o.Status == core.StatusRejected {
			continue // there is no Python here
		}
		if o.Status != core.StatusOK || strings.Count(o.Output, "[NAME_1]") != len(person)-1 || strings.Count(string(o.Result), "[NAME_1]") != len(person) {
			t.Errorf("%s: %+v %s", lang, o, o.Error)
		}
		mustNotLeak(t, o, string(lang))
	}
}

// TestNamesThatAreCut checks that no piece of a name remains where the limit of the output or an error cuts it.
func TestNamesThatAreCut(t *testing.T) {
	e := withPerson(t)
	const code = `const {full_name: n} = await hr.getPerson({id: 1});
		console.log('first'); process.stdout.write('it is ' + n + ' of '); process.stdout.write(n); for (;;) process.stdout.write(n);`
	step := int64(2) // The second name begins an odd number of bytes after the first, so both together are cut everywhere.
	if testenv.Full() {
		step = 1
	}
	for limit := int64(10); limit < 64; limit += step {
		o := e.Execute(t.Context(), engine.Request{Language: core.JavaScript, Code: code, Limits: engine.Limits{Output: limit}})
		if o.Status != core.StatusOutputLimit || !strings.HasPrefix(o.Output, "first\n") {
			t.Fatalf("%d: %+v %v", limit, o, o.Error)
		}
		mustNotLeak(t, o, "output")
	}
	for shift := range len(person) + 2 {
		o := e.Execute(t.Context(), engine.Request{Language: core.JavaScript, Code: `const {full_name: n} = await hr.getPerson({id: 1}); throw new Error('x'.repeat(` + strings.Repeat("1+", shift) + `4) + ' ' + (n + ', ').repeat(400));`})
		mustNotLeak(t, o, "error")
		long := e.Execute(t.Context(), engine.Request{Language: core.JavaScript, Code: `const {full_name: n} = await hr.getPerson({id: 1}); return 'x'.repeat(` + strings.Repeat("1+", shift) + `4) + ' ' + (n + ', ').repeat(4000);`})
		mustNotLeak(t, long, "result")
		if len(long.Artifacts) != 1 || !strings.Contains(long.Artifacts[0].Preview, "[NAME_1]") {
			t.Errorf("%+v", long)
		}
	}
}
