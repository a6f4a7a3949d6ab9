package catalog

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"retort/internal/core"
	"retort/internal/devel/testenv"
)

const untyped = `{"name":"get","inputSchema":{"type":"object"}}`

func openLearning(t testing.TB, dir string) *Catalog {
	t.Helper()
	c, err := Open(Options{Dir: dir, Learn: true})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// learnAnswers passes results of a tool to the catalog's learner, and waits until they are processed. It may only
// be called in a synctest bubble.
func learnAnswers(t testing.TB, c *Catalog, server, tool string, answers ...string) {
	t.Helper()
	for _, a := range answers {
		now, ok := c.Toolset().FindExact(server, tool)
		if !ok {
			t.Fatalf("there is no %s.%s", server, tool)
		}
		c.LearnShape(ToolObservation{Tool: now, Answer: json.RawMessage(a)})
	}
	synctest.Wait()
}

// learnedType returns what the toolset says about a tool's learned results: how many were observed, and their
// schema. It first lets the pause between two rebuilds of the toolset pass, so that the newest result is included.
func learnedType(t testing.TB, c *Catalog, server, tool string) string {
	t.Helper()
	c.learner.notTill.Store(0)
	now, ok := c.Toolset().FindExact(server, tool)
	if !ok || now.Learned == nil {
		return "nothing"
	}
	return fmt.Sprintf("%d %s", now.Learned.Observations, now.Learned.Schema)
}

func expect(t *testing.T, c *Catalog, server, tool, want string) {
	t.Helper()
	synctest.Wait()
	if got := learnedType(t, c, server, tool); got != want {
		t.Errorf("known about %s.%s:\n%s, want\n%s", server, tool, got, want)
	}
}

func TestLearn(t *testing.T) { synctest.Test(t, learn) }

func learn(t *testing.T) {
	dir := t.TempDir()
	c := openLearning(t, dir)
	replace(t, c, "s", untyped, `{"name":"other"}`, `{"name":"typed","outputSchema":{"type":"object"}}`)
	before, _ := c.Toolset().FindExact("s", "other")
	learnAnswers(t, c, "s", "get", `{"a":1}`, `{"a":1,"b":"x"}`)
	learnAnswers(t, c, "s", "typed", `{"a":1}`)
	const want = `2 {"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["a"]}`
	expect(t, c, "s", "get", want)
	expect(t, c, "s", "typed", "nothing")
	if after, _ := c.Toolset().FindExact("s", "other"); after != before {
		t.Error("a tool is another one though nothing was learned of it")
	}
	if after, _ := c.Toolset().FindExact("s", "get"); after.Pin == "" || after.Category == "" {
		t.Errorf("the tool has lost something: %+v", after)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c.LearnShape(ToolObservation{Tool: before, Answer: json.RawMessage("1")}) // as late as can be

	c = openLearning(t, dir)
	expect(t, c, "s", "get", want)
	replace(t, c, "s", untyped) // as it was
	expect(t, c, "s", "get", want)
	old, _ := c.Toolset().FindExact("s", "get")
	replace(t, c, "s", strings.Replace(untyped, `"name"`, `"description":"new","name"`, 1))
	c.learner.start.Do(func() { c.learner.ended.Go(c.learner.learnQueued) })
	c.learner.queue <- ToolObservation{Tool: old, Answer: json.RawMessage(`{"late":1}`)} // of what it was
	expect(t, c, "s", "get", "nothing")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(filepath.Join(dir, shapesName("s")))
	if strings.Contains(string(text), `"get"`) {
		t.Errorf("it is kept: %s", text)
	}
}

func TestLearnNothingUnlessAsked(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir)
	replace(t, c, "s", untyped)
	tool, _ := c.Toolset().FindExact("s", "get")
	c.LearnShape(ToolObservation{Tool: tool, Answer: json.RawMessage(`{"a":1}`)})
	_ = c.Close()
	if left, _ := filepath.Glob(filepath.Join(dir, "*"+shapesSuffix)); len(left) > 0 {
		t.Errorf("there is %v", left)
	}
}

func TestLearnForgets(t *testing.T) { synctest.Test(t, learnAndForget) }

func learnAndForget(t *testing.T) {
	dir := t.TempDir()
	c := openLearning(t, dir)
	replace(t, c, "s", untyped)
	learnAnswers(t, c, "s", "get", `{"a":1}`)
	c.learner.saveShapes()
	if err := c.ForgetServer("s"); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	if left, _ := filepath.Glob(filepath.Join(dir, "*"+shapesSuffix)); len(left) > 0 {
		t.Errorf("there is %v", left)
	}
}

// TestLearnAsksAboutKeys checks that no key of an object is stored if Private reports that one of its keys is personal.
// It also checks that Private is called only once for any other key.
func TestLearnAsksAboutKeys(t *testing.T) { synctest.Test(t, learnPrivateKeys) }

func learnPrivateKeys(t *testing.T) {
	c := openLearning(t, "")
	defer c.Close()
	replace(t, c, "s", untyped)
	tool, _ := c.Toolset().FindExact("s", "get")
	asked := map[string]int{}
	for range 5 {
		c.LearnShape(ToolObservation{Tool: tool, Answer: json.RawMessage(`{"halvorsen":1,"total":2}`), Private: func(key string) bool {
			asked[key]++
			return key == "halvorsen"
		}})
	}
	expect(t, c, "s", "get", `5 {"type":"object","additionalProperties":{"type":"integer"}}`)
	if asked["total"] != 1 {
		t.Errorf("asked %v", asked)
	}
}

func TestDamagedShapesAreIgnored(t *testing.T) { synctest.Test(t, openDamagedShapes) }

func openDamagedShapes(t *testing.T) {
	dir := t.TempDir()
	c := openLearning(t, dir)
	replace(t, c, "s", untyped)
	learnAnswers(t, c, "s", "get", `{"a":1}`)
	_ = c.Close()
	path := filepath.Join(dir, shapesName("s"))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(whole), "\n")
	for name, text := range map[string]string{
		"half":           string(whole[:len(whole)/2]),
		"other bytes":    head + "\n" + strings.Replace(rest, `"i"`, `"s"`, 1),
		"another format": strings.Replace(head, `"format":1`, `"format":9`, 1) + "\n" + rest,
		"another server": strings.Replace(head, `"server":"s"`, `"server":"t"`, 1) + "\n" + rest,
		"empty":          "",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c := openLearning(t, dir)
		if got := problems(c); !strings.Contains(got, path+": it is ignored") {
			t.Errorf("%s: problems %q", name, got)
		}
		if got := learnedType(t, c, "s", "get"); got != "nothing" {
			t.Errorf("%s: %s", name, got)
		}
		learnAnswers(t, c, "s", "get", `{"b":1}`)
		_ = c.Close()
		c = openLearning(t, dir)
		if got := learnedType(t, c, "s", "get"); !strings.HasPrefix(got, "1 ") || problems(c) != "" {
			t.Errorf("%s: after it was written again: %s, %s", name, got, problems(c))
		}
	}
}

// TestTwoEnginesLearn checks that two engines with the same data directory keep what both have learned, and count
// each answer once.
func TestTwoEnginesLearn(t *testing.T) { synctest.Test(t, learnInTwoEngines) }

func learnInTwoEngines(t *testing.T) {
	dir := t.TempDir()
	a, b := openLearning(t, dir), openLearning(t, dir)
	for _, c := range []*Catalog{a, b} {
		replace(t, c, "s", untyped, `{"name":"other"}`)
	}
	learnAnswers(t, a, "s", "get", `{"a":1}`, `{"a":1}`)
	learnAnswers(t, b, "s", "get", `{"b":1}`)
	learnAnswers(t, b, "s", "other", `"x"`)
	a.learner.saveShapes()
	b.learner.saveShapes()
	learnAnswers(t, a, "s", "get", `{"c":1}`)
	var ends sync.WaitGroup
	for _, c := range []*Catalog{a, b} {
		ends.Go(func() { _ = c.Close() })
	}
	ends.Wait()
	c := openLearning(t, dir)
	if got := learnedType(t, c, "s", "get"); got != `4 {"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"},"c":{"type":"integer"}}}` {
		t.Error(got)
	}
	if got := learnedType(t, c, "s", "other"); got != `1 {"type":"string"}` {
		t.Error(got)
	}
}

const learningDir = "RETORT_TEST_LEARN"

func TestMain(m *testing.M) {
	if dir := os.Getenv(learningDir); dir != "" {
		learnUntilKilled(dir)
	}
	os.Exit(testenv.Main(m))
}

// learnUntilKilled learns and saves one answer after another until the process is killed, and prints how many it has
// saved.
func learnUntilKilled(dir string) {
	c, err := Open(Options{Dir: dir, Learn: true})
	if err != nil {
		panic(err)
	}
	_, _ = c.ReplaceListing("s", definitions(untyped), "")
	tool, _ := c.Toolset().FindExact("s", "get")
	for i := 1; ; i++ {
		c.learner.learnAnswer(ToolObservation{Tool: tool, Answer: json.RawMessage(fmt.Sprintf(`{"a%s":{"b":[%d]}}`, strings.Repeat("x", i%20), i))})
		c.learner.saveShapes()
		fmt.Println(i)
	}
}

// TestKilledWhileLearning checks that no learned answer is lost if the process is killed at any moment. Besides the
// answers that the process reported as saved, at most one other answer may be known afterwards.
func TestKilledWhileLearning(t *testing.T) {
	dir, answers := t.TempDir(), 0
	for i := range 20 {
		saved := testenv.KilledAtChange(t, learningDir, dir, []string{dir}, 1+i, 0)
		c := openLearning(t, dir)
		if got := problems(c); got != "" {
			t.Fatal(got)
		}
		n := 0
		if tool, ok := c.Toolset().FindExact("s", "get"); ok && tool.Learned != nil {
			n = tool.Learned.Observations
		}
		if n < answers+saved || n > answers+saved+1 {
			t.Fatalf("after kill %d, %d answers are known; before there were %d, and %d were saved since", i, n, answers, saved)
		}
		answers = n
	}
	if answers == 0 {
		t.Error("nothing was ever saved")
	}
}

// BenchmarkLearn measures how long LearnShape delays a call.
func BenchmarkLearn(b *testing.B) {
	c := openLearning(b, "")
	defer c.Close()
	if _, err := c.ReplaceListing("s", definitions(untyped), ""); err != nil {
		b.Fatal(err)
	}
	o := ToolObservation{Tool: &core.Tool{Server: "s", Name: "get", Pin: "x"}, Answer: json.RawMessage(`{"a":1}`)}
	for b.Loop() {
		c.LearnShape(o)
	}
}
