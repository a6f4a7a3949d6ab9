package guest

import (
	"crypto/md5"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"
	"time"
	_ "time/tzdata" // Intl knows all time zones, and no sandbox shows it the machine's
	"unicode/utf16"
	"unicode/utf8"

	lib "modernc.org/libquickjs"
	"modernc.org/quickjs"
	"modernc.org/quickjs/intl"
)

// nativeFunc represents a Go function for the prelude, the JavaScript code that forms the program's environment. The
// program itself cannot call it.
type nativeFunc struct {
	name string
	// fn is a Go function: a quickjs.HostFunc for RegisterHostFunc, a directFunc for registerFunc, any other for
	// RegisterFunc.
	fn any
}

func (g *guestProgram) nativeFuncs() []nativeFunc {
	return []nativeFunc{
		{"compile", g.nativeCompile},
		{"target", hostFunc(g.nativeTarget)},
		{"call", directFunc(g.nativeCall)},
		{"callSync", hostFunc(g.nativeCallSync)},
		{"print", hostFunc(g.nativePrint)},
		{"warn", hostFunc(g.nativeWarn)},
		{"functions", hostFunc(g.nativeFunctions)},
		{"skill", g.nativeSkill},
		{"timer", hostFunc(g.nativeTimer)},
		{"clearTimer", hostFunc(g.nativeClearTimer)},
		{"now", hostFunc(g.nativeNow)},
		{"random", g.nativeRandom},
		{"digest", g.nativeDigest},
		{"encode", g.nativeEncode},
		{"decode", g.nativeDecode},
		{"registerIntl", hostFunc(g.nativeRegisterIntl)},
	}
}

func hostFunc(fn func(args []any) (any, error)) quickjs.HostFunc { return fn }

type directFunc func(a, b lib.TJSValue) lib.TJSValue

func (g *guestProgram) registerNatives() error {
	for _, n := range g.nativeFuncs() {
		var err error
		switch fn := n.fn.(type) {
		case quickjs.HostFunc:
			err = g.js.RegisterHostFunc(n.name, fn)
		case directFunc:
			err = g.js.registerFunc(n.name, fn)
		default:
			err = g.js.RegisterFunc(n.name, n.fn, false)
		}
		if err != nil {
			return fmt.Errorf("guest: %s: %w", n.name, err)
		}
	}
	return nil
}

// textArgument returns an argument of a native function as text, or "" if it is missing or not a text. It never
// panics, even if the guest's own JavaScript code, its only caller, passes invalid arguments.
func textArgument(args []any, i int) string {
	if i < len(args) {
		if s, ok := args[i].(string); ok {
			return s
		}
	}
	return ""
}

func numberArgument(args []any, i int) float64 {
	if i < len(args) {
		switch v := args[i].(type) {
		case int:
			return float64(v)
		case int32:
			return float64(v)
		case int64:
			return float64(v)
		case float64:
			return v
		}
	}
	return 0
}

// nativeCompile compiles a module of the prelude, the JavaScript environment of programs, and returns the module's
// function.
func (g *guestProgram) nativeCompile(name string) quickjs.Value {
	v, err := g.compileModule(name)
	if err != nil {
		return quickjs.UndefinedValue
	}
	return v
}

func (g *guestProgram) nativePrint(args []any) (any, error) {
	g.printText(textArgument(args, 0))
	return nil, nil
}

// nativeWarn adds a warning to the program's report, unless the report already contains the same text.
func (g *guestProgram) nativeWarn(args []any) (any, error) {
	const most, long = 5, 4 << 10
	if warning := clipText(textArgument(args, 0), long); len(g.warnings) < most && !slices.Contains(g.warnings, warning) {
		g.warnings = append(g.warnings, warning)
	}
	return nil, nil
}

// nativeFunctions returns the functions of a namespace, as JSON. Its argument is the namespace's index.
func (g *guestProgram) nativeFunctions(args []any) (any, error) {
	i := int(numberArgument(args, 0))
	if i < 0 || i >= len(g.program.Namespaces) {
		return "[]", nil
	}
	return string(g.program.Namespaces[i].Functions), nil
}

// nativeSkill returns the compiled function of a skill, a saved module that the program can import. Its argument is
// the skill's index.
func (g *guestProgram) nativeSkill(i int) quickjs.Value {
	if i < 0 || i >= len(g.program.Modules) {
		return quickjs.UndefinedValue
	}
	m := g.program.Modules[i]
	function, ok, err := g.js.evaluateScript(programHead+m.Code+programTail, m.File)
	if err != nil || !ok { // what the compiler made compiles
		return quickjs.UndefinedValue
	}
	return function
}

// nativeTimer schedules a timer. Its arguments are the timer's id and the delay in milliseconds.
func (g *guestProgram) nativeTimer(args []any) (any, error) {
	g.timers.addTimer(int(numberArgument(args, 0)), time.Now().Add(time.Duration(numberArgument(args, 1)*float64(time.Millisecond))))
	return nil, nil
}

func (g *guestProgram) nativeClearTimer(args []any) (any, error) {
	g.timers.removeTimer(int(numberArgument(args, 0)))
	return nil, nil
}

// nativeNow returns the number of milliseconds since the program started.
func (g *guestProgram) nativeNow([]any) (any, error) {
	return float64(time.Since(g.started)) / float64(time.Millisecond), nil
}

// nativeRandom returns n random bytes, at most 64 KiB.
func (g *guestProgram) nativeRandom(n int) quickjs.Value {
	b := make([]byte, min(max(n, 0), 64<<10))
	_, _ = rand.Read(b) // never fails
	return g.js.newBytes(b)
}

// nativeDigest returns the digest of a buffer in hex, or "" if the algorithm is unknown.
func (g *guestProgram) nativeDigest(algorithm string, buffer quickjs.Value) string {
	algorithms := map[string]func() hash.Hash{
		"md5": md5.New, "sha1": sha1.New, "sha256": sha256.New, "sha384": sha512.New384, "sha512": sha512.New,
	}
	make, ok := algorithms[algorithm]
	if !ok {
		return ""
	}
	h := make()
	h.Write(g.js.bufferBytes(buffer))
	return hex.EncodeToString(h.Sum(nil))
}

// nativeEncode returns an ArrayBuffer with the UTF-8 encoding of a string.
func (g *guestProgram) nativeEncode(s string) quickjs.Value { return g.js.newBytes([]byte(s)) }

// nativeDecode creates a string from UTF-8 or UTF-16LE bytes. Invalid bytes become U+FFFD. If strict is set, it
// returns null for invalid UTF-8 instead.
func (g *guestProgram) nativeDecode(buffer quickjs.Value, encoding string, strict bool) any {
	b := g.js.bufferBytes(buffer)
	switch {
	case encoding == "utf-16le":
		units := make([]uint16, len(b)/2)
		for i := range units {
			units[i] = uint16(b[2*i]) | uint16(b[2*i+1])<<8
		}
		return string(utf16.Decode(units))
	case strict && !utf8.Valid(b):
		return nil
	}
	return string(b)
}

func (g *guestProgram) nativeRegisterIntl([]any) (any, error) {
	return nil, intl.Register(g.js.VM, intl.TimeZone("UTC"))
}
