package python

import (
	"context"
	"testing"

	"retort/internal/core"
	"retort/internal/pipeline/check/python/parsertest"
)

// unjudged accepts every program. Tests use it in place of the rules.
func unjudged(*pythonProgram) *core.Error { return nil }

func TestTree(t *testing.T) {
	c := New(parsertest.NewInterpreter(t))
	for _, test := range []struct{ code, want string }{
		{"a.b['c'](1, *d, e=2, **f)", "call(index(member:b(name:a) string:c) number:1 spread(name:d) property:e(number:2) spread(name:f))"},
		{"x = y\nx", "assign:=(name:x# name:y) name:x#"},
		{"a = b = 1", "assign:=(name:a# assign:=(name:b# number:1))"},
		{"x: int = 1\ny: int", "assign:=(name:x# number:1 name:int) other(name:y# name:int)"},
		{"x += 1", "assign:+=(name:x# number:1)"},
		{"def f(a, b=1, *c, d: int = 2, **e):\n  return a", "function:f#(parameter:a# parameter:b#(number:1) parameter:d#(number:2 name:int) parameter:c# parameter:e# return(name:a#))"},
		{"@d\nclass A(B, k=1):\n  def m(self): pass\n  x = 1", "other(name:d class:A#(name:B property:k(number:1) property:m(function:m#(parameter:self# other)) assign:=(name:x# number:1)))"},
		{"import os.path, re as r\nfrom a.b import c as d, e\nfrom .x import *", "other(import:os.path import:os(imported:*#) import:re(imported:*#)) import:a.b(imported:c# imported:e#) import:.x(imported:**)"},
		{"[x for x in y if x]", "loop:comprehension(assign:of(name:x# name:y) name:x# name:x#)"},
		{"{k: v for k, v in d}", "loop:comprehension(assign:of(array(name:k# name:v#) name:d) name:k# name:v#)"},
		{"for a in b:\n  c\nwhile d: pass", "loop:for(assign:of(name:a# name:b) name:c) loop:while(name:d other)"},
		{"if a and b or not c: d\nelif e < f: g", "branch:if(logical:or(logical:and(name:a name:b) unary:not(name:c)) name:d branch:if(binary:<(name:e name:f) name:g))"},
		{"f'a{b}c{d:>3}'", "template(string:a name:b string:c other(name:d template(string:>3)))"},
		{"{'a': 1, b: 2, **c}", "object(property:a(number:1) property(name:b number:2) spread(name:c))"},
		{"a[::-1], a[1:2]", "array(index(name:a slice:::-1(unary:-(number:1))) index(name:a slice(number:1 number:2)))"},
		{"with open(a) as b, c: d", "other(assign:=(name:b# call(name:open name:a)) name:c name:d)"},
		{"try: a\nexcept E as e: e", "other(name:a branch:catch(parameter:e# name:E name:e#))"},
		{"lambda x=1: x + y", "function(parameter:x#(number:1) binary:+(name:x# name:y))"},
		{"b'a\\x62', None, 1.5, ...", "array(string:ab constant:None number:1.5 constant:Ellipsis)"},
		{"del a.b\nraise c", "delete(member:b(name:a)) throw(name:c)"},
		{"(x := 1)\nasync def f(): await g()", "assign:=(name:x# number:1) function:f#(await(call(name:g)))"},
	} {
		p, refusal := c.parseProgram(context.Background(), test.code, sample(), unjudged)
		if refusal != nil {
			t.Errorf("%s: %s", test.code, refusal.Message)
			continue
		}
		if err := p.tree.CheckStructure(); err != nil {
			t.Errorf("%s: %v", test.code, err)
			continue
		}
		if got := drawn(p.tree); got != test.want {
			t.Errorf("%s\n got %s\nwant %s", test.code, got, test.want)
		}
	}
}

func TestPlace(t *testing.T) {
	c := New(parsertest.NewInterpreter(t))
	code := "Here:\n```python\n  ø = 'æ'; x = eval(ø)\n```"
	report, refusal := c.JudgeProgram(context.Background(), code)
	if refusal != nil || len(report.Findings) != 1 {
		t.Fatal(refusal, report.Findings)
	}
	p, _ := c.parseProgram(context.Background(), code, sample(), unjudged)
	if line, column, width := p.findingPlace(report.Findings[0]); line != 3 || column != 16 || width != 4 {
		t.Errorf("%d:%d, %d wide", line, column, width)
	}
}
