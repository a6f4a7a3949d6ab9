package cel

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	oracle "cel.dev/cel-go/cel"
	"github.com/google/go-cmp/cmp"
)

const arguments = `{"amount": 700, "price": 10.5, "big": 9007199254740993, "neg": -3, "zero": 0, "name": "Halvorsen", "to": ["a@x.com", "b@y.org"],
	"none": null, "yes": true, "no": false, "deep": {"list": [1, 2.5, "x", null, {"k": 1}], "name": "in"}, "empty": [], "object": {}, "uni": "Größe ☃", "num": "500"}`

// reference evaluates an expression with cel-go, but without its type checker, because the types of JSON values are
// not known in advance.
func reference(t testing.TB, env *oracle.Env, text string, variables map[string]any) (value string, parsed bool) {
	t.Helper()
	ast, issues := env.Parse(text)
	if issues.Err() != nil {
		return issues.Err().Error(), false
	}
	program, err := env.Program(ast)
	if err != nil {
		return err.Error(), false
	}
	out, _, err := program.Eval(variables)
	if err != nil {
		return "error", true
	}
	if b, ok := out.Value().(bool); ok {
		return fmt.Sprint(b), true
	}
	return "error", true
}

func ours(text string, variables map[string]any) (value string, parsed bool) {
	e, err := Compile(text, "args", "tool", "server", "principal")
	if err != nil {
		return err.Error(), false
	}
	b, err := e.IsTrue(variables)
	if err != nil {
		return "error", true
	}
	return fmt.Sprint(b), true
}

func setup(t testing.TB) (*oracle.Env, map[string]any) {
	t.Helper()
	env, err := oracle.NewEnv(oracle.Variable("args", oracle.DynType), oracle.Variable("tool", oracle.StringType),
		oracle.Variable("server", oracle.StringType), oracle.Variable("principal", oracle.StringType))
	if err != nil {
		t.Fatal(err)
	}
	args, err := DecodeJSON(json.RawMessage(arguments))
	if err != nil {
		t.Fatal(err)
	}
	return env, map[string]any{"args": args, "tool": "refund", "server": "pay", "principal": "ada"}
}

// TestLikeCEL checks that this package and cel-go accept the same sample expressions and return the same results for
// them.
func TestLikeCEL(t *testing.T) {
	env, variables := setup(t)
	for _, text := range strings.Split(strings.TrimSpace(samples), "\n") {
		want, parses := reference(t, env, text, variables)
		got, parsed := ours(text, variables)
		if parses != parsed || parses && got != want {
			t.Errorf("%s\n got %v %s\nwant %v %s", text, parsed, got, parses, want)
		}
	}
}

const samples = `
args.amount < 1000
args.amount<1000&&args.price>=10.5
args.amount < 700.5
args.big == 9007199254740993
args.big != 9007199254740992
args.big < 9007199254740992.0
args.missing < 1
!has(args.missing) || args.missing < 1
has(args.missing) && args.missing < 1
has(args.none)
has(args.deep.list)
has(args.deep.nothing.more)
has(args)
has(args["name"])
args.none == null
args.none < 1
args.name < 1
args.num < 1000
int(args.num) < 1000
double(args.num) < 1000.5
string(args.amount) == "700"
string(args.price) == '10.5'
string(1e21) == '1e+21'
int("x") == 1
int(2.9) == 2 && int(-2.9) == -2
int(1e300) == 1
args.name.startsWith("Hal") && args.name.endsWith('sen') && args.name.contains("vor")
args.name.startsWith(1)
args.amount.startsWith("7")
args.name.matches("^H.*n$")
matches(args.name, "alv")
args.uni.size() == 7
size(args.uni) == 7
size(args.to) == 2 && args.deep.size() == 2
size(args.amount) == 1
"a@x.com" in args.to
"name" in args
"nothing" in args || 1 in args
1 in args
1.0 in args.deep.list
null in args.deep.list
"x" in "xyz"
args.to.all(x, x.endsWith(".com"))
args.to.exists(x, x.endsWith(".com"))
args.to.exists_one(x, x.endsWith(".com"))
args.deep.list.all(x, x > 0)
args.deep.list.exists(x, x > 2)
args.deep.list.exists_one(x, x > 2)
args.empty.all(x, false)
args.empty.exists(x, true)
args.object.all(k, false)
args.deep.all(k, k in ["list", "name"])
args.deep.exists(name, name == "list")
args.amount.all(x, true)
args.to.all(x, 1)
args.to.filter(x, x.endsWith(".org")) == ["b@y.org"]
args.to.map(x, x.size()) == [7, 7]
args.to.map(x, x.endsWith(".org"), x.size()) == [7]
args.to.map(x, x < 1) == []
args.to.all(args, args.size() == 7)
args.to.all(x, args.to.exists(y, x == y))
args.to.all(1, true)
args["amount"] == 700
args["missing"] == 700
args.to[0] == "a@x.com"
args.to[1.0] == "b@y.org"
args.to[0.5] == "a@x.com"
args.to[2] == "x"
args.to[-1] == "x"
args[0] == 1
args.deep.list[4].k == 1
args.amount + 300 == 1000
args.amount + 0.5 == 700.5
args.price * 2.0 == 21.0
args.amount / 3 == 233 && args.amount % 3 == 1
args.neg / 2 == -1 && args.neg % 2 == -1
1 / args.zero == 1
1 % args.zero == 1
1.0 / 0.0 > 1e300
0.0 / 0.0 == 0.0 / 0.0
0.0 / 0.0 < 1.0
5.5 % 2.0 == 1.5
9223372036854775807 + 1 > 0
-9223372036854775808 - 1 < 0
-9223372036854775808 < 0
9223372036854775808 > 0
-9223372036854775808 / -1 > 0
-9223372036854775808 * -1 > 0
-1 * -9223372036854775808 > 0
3037000500 * 3037000500 > 0
0x1F == 31 && -0x1f == -31
0XfF == 255
.5 == 0.5 && 1e3 == 1000 && 1.5E-1 == 0.15
1. == 1
1e == 1
01 == 1
1e400 > 0.0
"a" + "b" == 'ab'
[1] + [2] == [1, 2]
[1, 2,] == [1, 2]
[1, 2] == [1.0, 2.0]
[1] < [2]
args.deep == args.deep
args.deep == args.object
args.deep.list == [1, 2.5, "x", null, args.deep.list[4]]
1 == "1"
1 == true
1 == 1.0
null == false
[] == args.object
true < false
false < true
"a" < "b" && "Z" < "a"
"a" < 1
!args.yes
!args.amount
!!args.yes
-args.amount == -700
--args.amount == 700
- 5 == -5
-args.name == 1
args.missing || true
true || args.missing
args.missing && false
false && args.missing
args.missing && true
args.missing || false
args.amount || true
true || args.amount
args.amount && false
args.amount || false
args.amount && true
args.yes ? args.amount < 1000 : args.missing
args.no ? args.missing : true
args.none ? true : true
args.missing ? true : true
true ? false : true ? true : true
true ? true ? false : true : true
args.yes || args.no && args.no
args.yes == args.no || args.yes
1 < 2 == true
1 < 2 < 3
1 + 2 * 3 == 7 && (1 + 2) * 3 == 9
10 - 3 - 2 == 5
2 in [1, 2] == true
tool == "refund" && server == 'pay' && principal == "ada"
args.package == 1
args.in == 1
args.true == 1
package == 1
in == 1
args. amount == 700
args .amount // with a comment
args.amount == 700 // with a comment
// only
'it''s' == ""
'it\'s' == "it's"
"\x41\u0041\U00000041\101" == 'AAAA'
"\400" == "x"
"\q" == "x"
"\ud800" == "x"
r"\d+" == "\\d+"
R'a"b' == 'a"b'
'''a'b"c''' == "a'b\"c"
"""a"b""" == 'a"b'
"\a\b\f\n\r\t\v\?\` + "`" + `" == "x"
"open
args.amount = 1
args.amount & 1
args.to.size(1) == 1
size() == 1
size(1, 2) == 1
args..amount
args.
(args.amount
args.amount)
[1
args[
1 +
? 1 : 2
true ? 1
@
#
args.amount == 7_0`

// TestLeftOut checks that Compile refuses those parts of CEL that this package omits, with a helpful message.
func TestLeftOut(t *testing.T) {
	for text, want := range map[string]string{
		"args.n == 1u":                      "this is not a number",
		"{'a': 1}.a == 1":                   "'{' is not valid here",
		"args.a.matches(args.b)":            "the pattern of matches must be a literal string",
		"b'a' == args.x":                    "there is no b",
		"args.amount":                       "",
		"args.amount + 1":                   "this is not true or false",
		"'true'":                            "this is not true or false",
		"arg.amount < 1":                    "there is no arg",
		"timestamp(args.at) > args.x":       "there is no function timestamp",
		"has(args.name.x) && args.all(x)":   "expected ,",
		"args.to.all(x, true, true)":        "all takes a name and an expression",
		"args.`a` == 1":                     "'`' is not valid here",
		"unknown.x == 1 && false":           "there is no unknown",
		"-args.yes":                         "this is not true or false",
		"args.x.matches('(')":               "missing closing ): `(`",
		"args.a.startswith('x')":            "there is no function startswith",
		strings.Repeat("(", 200) + "true":   "the condition is nested too deeply",
		strings.Repeat("true&&", 1000):      "the condition is longer than 4096 bytes",
		"args.x.matches('a{1000}{1000}')":   "invalid nested repetition operator: `{1000}{1000}`",
		"args.x.map(y, y)":                  "this is not true or false",
		"true ? args.amount : 1":            "",
		"true ? 2 : 1":                      "this is not true or false",
		strings.Repeat("!", 100) + "true":   "expected a value",
		"[" + strings.Repeat("[", 70) + "]": "the condition is nested too deeply",
	} {
		_, err := Compile(text, "args")
		if want == "" && err == nil {
			continue
		}
		if err == nil || want == "" || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestNames(t *testing.T) {
	e, err := Compile(`args.amount < 1 && args["to"].x == "a" && "key" in args && has(args.opt)`, "args")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"amount", "key", "opt", "to", "x"}, e.VariableNames()); diff != "" {
		t.Error(diff)
	}
}

// TestSteps checks that an expensive condition on large arguments is aborted after a bounded number of steps.
func TestSteps(t *testing.T) {
	list := make([]any, 10_000)
	for i := range list {
		list[i] = int64(i)
	}
	variables := map[string]any{"args": map[string]any{"list": list, "text": strings.Repeat("a", 16<<20)}}
	for _, text := range []string{
		"args.list.all(x, args.list.all(y, x == y || x != y))",
		"args.list.all(x, args.list.exists(y, y < 0) || x >= 0) || true",
		"args.text.matches('a*b')",
		"(args.text + args.text).size() > 0",
	} {
		e, err := Compile(text, "args")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.IsTrue(variables); err != errSteps {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestValue(t *testing.T) {
	for raw, want := range map[string]string{
		`{"amount":1,"amount":100000}`: `the key "amount" occurs twice`,
		`{"amount":1,"Amount":100000}`: `the key "Amount" occurs twice`,
		`{"ask":1,"as\u212a":2}`:       `the key "as` + "\u212a" + `" occurs twice`,
		`{"a":{"b":[{"c":1,"c":2}]}}`:  `the key "c" occurs twice`,
		`{"a":1e400}`:                  "a number is too large",
		`{"a":1} {"a":2}`:              "there is unexpected text after the value",
		`{"a":`:                        "EOF",
		strings.Repeat("[", 100_000):   "the value is nested too deeply",
		`{"a":18446744073709551616}`:   "",
	} {
		_, err := DecodeJSON(json.RawMessage(raw))
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%.40s: %v, want %s", raw, err, want)
		}
	}
}

// FuzzLikeCEL checks that random expressions have the same results as in cel-go.
func FuzzLikeCEL(f *testing.F) {
	env, variables := setup(f)
	for seed := range uint64(300) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 1))
		for range 10 {
			text := grow(r, 4, nil)
			want, parses := reference(t, env, text, variables)
			got, parsed := ours(text, variables)
			sooner := strings.HasPrefix(got, "this is not true or false") && want == "error"
			if sooner || strings.HasPrefix(want, "invalid qualifier type") { // null as an index: cel-go does not plan it
				continue
			}
			if !parses || !parsed || got != want {
				t.Errorf("%s\n got %v %s\nwant %v %s", text, parsed, got, parses, want)
			}
		}
	})
}

// FuzzCompile checks that Compile returns without a panic for any text.
func FuzzCompile(f *testing.F) {
	for _, text := range strings.Split(samples, "\n") {
		f.Add(text)
	}
	_, variables := setup(f)
	f.Fuzz(func(_ *testing.T, text string) { ours(text, variables) })
}

// grow returns a random expression that can be parsed, nested up to the given depth.
func grow(r *rand.Rand, depth int, names []string) string {
	pick := func(options ...string) string { return options[r.IntN(len(options))] }
	sub := func() string { return grow(r, depth-1, names) }
	if depth == 0 || r.IntN(6) == 0 {
		leaves := append([]string{"args.amount", "args.price", "args.big", "args.neg", "args.name", "args.to", "args.none", "args.yes", "args.no", "args.deep",
			"args.deep.list", "args.missing", "args.empty", "args.uni", "args.num", "1", "0", "-3", "700", "2.5", "1e3", "'Hal'", `""`, "true", "false", "null", "[]",
			"args.to[0]", "args['num']", "tool", "9007199254740993", "9223372036854775807"}, names...)
		return pick(leaves...)
	}
	switch r.IntN(12) {
	case 0, 1, 2:
		return "(" + sub() + " " + pick("&&", "||") + " " + sub() + ")"
	case 3, 4:
		return "(" + sub() + " " + pick("<", "<=", ">", ">=", "==", "!=", "in") + " " + sub() + ")"
	case 5:
		return "(" + sub() + " " + pick("+", "-", "*", "/", "%") + " " + sub() + ")"
	case 6:
		return pick("!", "-") + "(" + sub() + ")"
	case 7:
		return "(" + sub() + " ? " + sub() + " : " + sub() + ")"
	case 8:
		return "(" + sub() + ")." + pick("startsWith", "endsWith", "contains") + "(" + sub() + ")"
	case 9:
		name := pick("x", "y", "args")
		return "(" + sub() + ")." + pick("all", "exists", "exists_one", "filter", "map") + "(" + name + ", " + grow(r, depth-1, append(names, name)) + ")"
	case 10:
		return pick("size(", "int(", "double(", "string(") + sub() + ")"
	}
	return pick("(has(args.deep.list) == true)", "(has(args.missing) != true)", "["+sub()+", "+sub()+"]", "("+sub()+")["+sub()+"]", "("+sub()+").name")
}
