package rules

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"retort/internal/devel/testenv"
)

// grown makes a valid syntax tree from any bytes, with three bytes for each node. Fuzz tests use it.
func grown(data []byte) *SyntaxTree {
	words := []string{"", "=", "of", "+", ",", "eval", "constructor", "__proto__", "a", "globalThis", "crm", "run", "command", "rm -rf /", "fs", "join", "map", "::-1", "Function",
		"__class__", "os", "system", "?:", "*", "**", "getattr", "import", "97", "require", "format", "{0.__class__}", "fromCharCode", "String", "of", "prototype", "\u202e"}
	t := &SyntaxTree{Language: TreeLanguage(len(data) % 2), Source: strings.Repeat("x\\x41", 20)}
	var open []int
	t.Nodes = append(t.Nodes, TreeNode{Kind: Other})
	open = append(open, 0)
	for len(data) >= 3 && len(t.Nodes) < 3000 {
		kind, text, bind := data[0], data[1], data[2]
		data = data[3:]
		for range min(int(kind>>5), len(open)-1) {
			last := open[len(open)-1]
			t.Nodes[last].Size, open = int32(len(t.Nodes)-last), open[:len(open)-1]
		}
		at := len(t.Nodes)
		n := TreeNode{Kind: Kind(kind) % kindCount, Text: words[int(text)%len(words)], Bind: int32(bind % 8), Start: int32(text % 50), End: int32(50 + bind%50)}
		if int(n.Bind) > at {
			n.Bind = 0
		}
		t.Nodes = append(t.Nodes, n)
		open = append(open, at)
	}
	for k := len(open) - 1; k >= 0; k-- {
		t.Nodes[open[k]].Size = int32(len(t.Nodes) - open[k])
	}
	return t
}

func FuzzJudge(f *testing.F) {
	f.Add([]byte("abcdefghijklmnopqrstuvwxyz0123456789"))
	f.Add([]byte{25, 1, 1, 1, 8, 1, 10, 0, 0, 1, 5, 0, 35, 8, 1, 130, 1, 1, 27, 17, 0})
	f.Add([]byte(strings.Repeat("\x0a\x05\x01\x27\x06\x02", 300)))
	f.Add([]byte(strings.Repeat("\x19\x01\x01\x01\x08\x01\xc1\x08\x01", 200)))
	f.Fuzz(func(t *testing.T, data []byte) {
		tree := grown(data)
		report, err := JudgeTree(tree)
		if err != nil {
			t.Fatalf("a grown tree is refused: %v", err)
		}
		again, _ := JudgeTree(tree)
		if !reflect.DeepEqual(report, again) {
			t.Errorf("two answers for one program:\n%+v\n%+v", report, again)
		}
		for _, f := range report.Findings {
			if _, ok := RuleOf(f.Rule); !ok || f.Severity == 0 || f.Start < 0 || f.End > len(tree.Source) || f.Start > f.End {
				t.Errorf("%+v", f)
			}
		}
		// What is no tree is an error, and nothing worse.
		if len(data) > 2 {
			n := &tree.Nodes[int(data[0])%len(tree.Nodes)]
			n.Size, n.Bind, n.Start, n.Kind = int32(data[1])-100, int32(data[2])-100, int32(data[2])-20, Kind(data[1])
			_, _ = JudgeTree(tree)
		}
	})
}

func TestCheckTree(t *testing.T) {
	good := func() *SyntaxTree {
		return &SyntaxTree{Source: "ab", Nodes: []TreeNode{{Size: 3, End: 2}, {Size: 2, End: 2}, {Kind: Name, Text: "a", Size: 1, End: 1}}}
	}
	if err := good().CheckStructure(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*SyntaxTree){
		"empty":       func(t *SyntaxTree) { t.Nodes = nil },
		"short":       func(t *SyntaxTree) { t.Nodes[0].Size = 2 },
		"overlap":     func(t *SyntaxTree) { t.Nodes[2].Size = 2 },
		"no size":     func(t *SyntaxTree) { t.Nodes[1].Size = 0 },
		"negative":    func(t *SyntaxTree) { t.Nodes[1].Start = -1 },
		"beyond":      func(t *SyntaxTree) { t.Nodes[1].End = 3 },
		"backwards":   func(t *SyntaxTree) { t.Nodes[1].Start = 2; t.Nodes[1].End = 1 },
		"kind":        func(t *SyntaxTree) { t.Nodes[1].Kind = kindCount },
		"variable":    func(t *SyntaxTree) { t.Nodes[1].Bind = 4 },
		"no variable": func(t *SyntaxTree) { t.Nodes[1].Bind = -1 },
	} {
		tree := good()
		if spoil(tree); !errors.Is(tree.CheckStructure(), ErrTree) {
			t.Errorf("%s: %v", name, tree.CheckStructure())
		}
	}
}

// nested returns a tree of n nodes of the same kind, each inside the previous one.
func nested(n int, kind Kind, text string) *SyntaxTree {
	t := &SyntaxTree{Nodes: make([]TreeNode, n)}
	for i := range t.Nodes {
		t.Nodes[i] = TreeNode{Kind: kind, Text: text, Size: int32(n - i)}
	}
	return t
}

// flat returns a tree with n copies of a subtree below its root.
func flat(n int, part ...TreeNode) *SyntaxTree {
	t := &SyntaxTree{Nodes: []TreeNode{{Kind: Other, Size: int32(1 + n*len(part))}}}
	for range n {
		t.Nodes = append(t.Nodes, part...)
	}
	return t
}

// chain returns a program with n variables. The value of each contains the previous variable twice.
func chain(n int, op string) *SyntaxTree {
	t := flat(0)
	for i := 1; i <= n; i++ {
		before := TreeNode{Kind: Name, Text: "a", Bind: int32(i - 1), Size: 1}
		if i == 1 {
			before = TreeNode{Kind: String, Text: "eval", Size: 1}
		}
		t.Nodes = append(t.Nodes, TreeNode{Kind: Assign, Text: "=", Size: 5}, TreeNode{Kind: Name, Text: "a", Bind: int32(i), Size: 1},
			TreeNode{Kind: Binary, Text: op, Size: 3}, before, before)
	}
	t.Nodes = append(t.Nodes, TreeNode{Kind: Index, Size: 3}, TreeNode{Kind: Name, Text: "globalThis", Size: 1}, TreeNode{Kind: Name, Bind: int32(n), Size: 1})
	t.Nodes[0].Size = int32(len(t.Nodes))
	return t
}

// TestJudgeIsLinear checks that the time of JudgeTree grows linearly with the size of the program.
func TestJudgeIsLinear(t *testing.T) {
	if _, err := JudgeTree(nested(maxDepth+1, Other, "")); !errors.Is(err, ErrDeep) {
		t.Errorf("a tree of depth %d: %v", maxDepth+1, err)
	}
	member := []TreeNode{{Kind: Call, Size: 3}, {Kind: Name, Text: "eval", Size: 1}, {Kind: Name, Text: "x", Size: 1}}
	for name, c := range map[string]struct {
		size int
		tree func(size int) *SyntaxTree
	}{
		"loops":       {maxDepth, func(n int) *SyntaxTree { return nested(n, Loop, "for") }},
		"functions":   {maxDepth, func(n int) *SyntaxTree { return nested(n, Function, "") }},
		"calls":       {maxDepth, func(n int) *SyntaxTree { return nested(n, Call, "") }},
		"members":     {maxDepth, func(n int) *SyntaxTree { return nested(n, Member, "constructor") }},
		"binary":      {maxDepth, func(n int) *SyntaxTree { return nested(n, Binary, "+") }},
		"logical":     {maxDepth, func(n int) *SyntaxTree { return nested(n, Logical, "||") }},
		"templates":   {maxDepth, func(n int) *SyntaxTree { return nested(n, Template, "") }},
		"patterns":    {maxDepth, func(n int) *SyntaxTree { return nested(n, Object, "") }},
		"assignments": {maxDepth, func(n int) *SyntaxTree { return nested(n, Assign, "=") }},
		"evals":       {100_000, func(n int) *SyntaxTree { return flat(n, member...) }},
		"aliases":     {60_000, func(n int) *SyntaxTree { return chain(n, ",") }},
		"doubling":    {60_000, func(n int) *SyntaxTree { return chain(n, "+") }},
		"arguments": {200_000, func(n int) *SyntaxTree {
			return flat(1, slices.Concat([]TreeNode{{Kind: Call, Size: int32(n + 1)}}, slices.Repeat([]TreeNode{{Kind: Name, Text: "a", Size: 1}}, n))...)
		}},
	} {
		testenv.GrowsLinearly(t, name, c.size, func(n int) {
			if _, err := JudgeTree(c.tree(n)); err != nil {
				t.Errorf("%s of size %d: %v", name, n, err)
			}
		})
	}
}

func TestKindsHaveNames(t *testing.T) {
	for k := range kindCount {
		if found, ok := KindOf(k.String()); !ok || found != k {
			t.Errorf("%d is called %q", k, k)
		}
	}
	if _, ok := KindOf("nothing"); ok {
		t.Error("there is a kind of nothing")
	}
}

func TestRulesAreWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range AllRules() {
		if seen[r.ID] || r.Severity == 0 || r.Message == "" || r.Hint == "" || !strings.Contains(r.ID, ".") {
			t.Errorf("%+v", r)
		}
		seen[r.ID] = true
	}
	for l, names := range map[TreeLanguage]map[string]nameDanger{Script: scriptNames, Python: pythonNames} {
		for path, d := range names {
			if !seen[d.rule] {
				t.Errorf("%d %s: there is no rule %s", l, path, d.rule)
			}
		}
	}
}

func TestLevels(t *testing.T) {
	for _, c := range []struct {
		level StrictnessLevel
		want  string
	}{{Permissive, "ignore ignore warn warn warn"}, {Standard, "ignore ignore warn deny deny"}, {Strict, "ignore warn deny deny deny"}, {Maximum, "warn deny deny deny deny"}} {
		var got []string
		for s := Info; s <= Critical; s++ {
			got = append(got, c.level.ActionFor(s).String())
		}
		if strings.Join(got, " ") != c.want || LevelOf(c.level.String()) != c.level {
			t.Errorf("%s: %s", c.level, got)
		}
	}
}

// TestGraveFindingsStay checks that a full report drops less severe findings to make room for a severe one.
func TestGraveFindingsStay(t *testing.T) {
	j := &treeJudge{analyzedTree: &analyzedTree{SyntaxTree: &SyntaxTree{Source: strings.Repeat("x", 100)}}, said: map[string]int{}}
	for k := range 60 {
		j.findAt(AllRules()[k%len(allRules)].ID, Medium, k, k+1, "")
	}
	if j.findAt("code.decoded", Critical, 70, 71, ""); len(j.found) > maxFindings || j.found[len(j.found)-1].Severity != Critical {
		t.Errorf("%d findings, the last of them %+v", len(j.found), j.found[len(j.found)-1])
	}
	for k := range maxSame {
		j.findAt("process.spawn", Medium, 80+k, 81+k, "")
	}
	if j.findAt("process.spawn", Critical, 99, 100, ""); j.found[len(j.found)-1].Start != 99 {
		t.Errorf("the last finding is %+v", j.found[len(j.found)-1])
	}
}
