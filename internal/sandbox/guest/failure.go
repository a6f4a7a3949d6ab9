package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"modernc.org/quickjs"

	"retort/internal/core"
	"retort/internal/sandbox/wire"
)

// The text before the first line and after the last line of a program's code, which makes the code an async function.
// In error positions in the first line, the length of the text before it is subtracted.
const (
	programHead = `(async function (__import, __exports, __meta) {`
	programTail = "\n})"
)

// fileName returns the program's file name for stack traces. It is the program's own name if that is short and has no
// special characters, otherwise "program.ts".
func (g *guestProgram) fileName() string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/"
	if name := g.program.Name; name != "" && len(name) <= 100 && strings.Trim(name, plain) == "" {
		return name
	}
	return "program.ts"
}

// thrownValue holds the description of a value that the program has thrown. A JavaScript function of the guest makes
// it.
type thrownValue struct {
	Name    string    `json:"name"`    // name of the error's class, such as "TypeError"
	Message string    `json:"message"` // message of the error, such as "not a function"
	Null    bool      `json:"null"`    // the thrown value is null
	Blank   bool      `json:"unreadable"`
	Kind    core.Kind `json:"kind"` // kind of the error, if it is a ToolError
	Server  string    `json:"server"`
	Tool    string    `json:"tool"`
	Hint    string    `json:"hint"`
	Stack   string    `json:"stack"`
}

// reportThrown returns the report for a program that threw a value or rejected a promise without a handler. It takes
// ownership of the value.
func (g *guestProgram) reportThrown(value quickjs.Value) wire.ProgramDone {
	g.js.SetMemoryLimit(uintptr(g.program.Memory + 4*preludeMemory)) // enough for a message
	defer value.Free()
	described, err := g.describe.Call(quickjs.UndefinedValue, value)
	if err != nil {
		return g.reportFailure(err)
	}
	text, _ := described.(string)
	var t thrownValue
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return g.reportFailure(err)
	}
	return g.reportError(t)
}

// reportFailure returns the report for an error that occurred outside of the program's own functions and ended the
// program.
func (g *guestProgram) reportFailure(err error) wire.ProgramDone {
	if errors.Is(err, errDeadlock) {
		return failedDone(&core.Error{Kind: core.KindRuntime, Message: "the program waits for something that can never happen",
			Hint: "it awaits a promise that can no longer be settled: look for a resolve that is never called"})
	}
	var e *quickjs.Error
	if errors.As(err, &e) {
		return g.reportError(thrownValue{Name: e.Name, Message: e.Message, Stack: e.Stack, Null: e.Error() == "null"})
	}
	return failedDone(core.Errorf(core.KindInternal, "guest", "%v", err))
}

func failedDone(e *core.Error) wire.ProgramDone {
	return wire.ProgramDone{Status: core.StatusError, Error: e}
}

// clipText cuts a text from the program that is too long for a report.
func clipText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// reportError converts a thrown value to the program's status and error.
func (g *guestProgram) reportError(t thrownValue) wire.ProgramDone {
	if g.outOfMemory(t) {
		stop := wire.MemoryStop(g.program.Memory)
		return wire.ProgramDone{Status: stop.Status, Error: g.addLocation(stop.Reason, t.Stack)}
	}
	const long, brief = 16 << 10, 1 << 10
	e := &core.Error{
		Kind: core.Kind(clipText(string(t.Kind), brief)), Server: clipText(t.Server, brief),
		Tool: clipText(t.Tool, brief), Hint: clipText(t.Hint, long), Message: clipText(t.Message, long),
	}
	switch {
	case t.Kind != "":
	case strings.HasSuffix(t.Message, "stack overflow") && (t.Name == "InternalError" || t.Name == "SyntaxError"):
		e.Kind, e.Message = core.KindLimit, "the call stack overflowed: functions called each other too deeply"
		e.Hint = "look for endless recursion, or use a loop"
	default:
		e.Kind = core.KindRuntime
		if t.Name != "" {
			e.Message = strings.TrimSuffix(clipText(t.Name, brief)+": "+e.Message, ": ")
		}
	}
	e = g.addLocation(e, t.Stack)
	if e.Message == "TypeError: not a function" && !strings.Contains(firstLine(e.Stack), skillFolder) {
		e.Message = g.nameCallee(e, t.Stack)
	}
	return failedDone(e)
}

// outOfMemory reports whether a thrown value means that memory has run out. That is an InternalError about memory, or
// a RangeError about the length of a string or buffer. If much memory is in use, it is also null or an unreadable
// value.
func (g *guestProgram) outOfMemory(t thrownValue) bool {
	switch t.Message {
	case "out of memory", "string too long":
		return t.Name == "InternalError"
	case "invalid string length", "invalid array buffer length":
		return t.Name == "RangeError"
	}
	return (t.Null || t.Blank) && peakMemory() > g.program.Memory/2
}

// asSyntax changes a report with a runtime error to a report with a syntax error. It is for code that does not
// compile. QuickJS reports such code by throwing an error, as it does at run time.
func asSyntax(d wire.ProgramDone) wire.ProgramDone {
	if d.Error.Kind == core.KindRuntime {
		d.Error.Kind = core.KindSyntax
	}
	return d
}

// calleePattern and the following variables are regular expressions that are compiled on first use, because most
// guests end without a failure.
var (
	// calleePattern matches the name of a called function, such as a.b, at the end of the code before the parenthesis
	// of the call. After an expression that has no name, as in f().x, it matches only the members.
	calleePattern = lazyRegexp(`([)\]]\??\.)?[\pL_$][\pL\pN_$]*(?:\??\.[\pL_$#][\pL\pN_$]*)*$`)
	// builtins matches a stack trace whose first frame is a built-in function.
	builtins = lazyRegexp(`^\s*at (\S+) \(native\)`)
	// frames matches a line of a stack trace: "    at name (file:line:column)".
	frames = lazyRegexp(`^\s*at (?:(.*) \()?(.+):(\d+):(\d+)\)?$`)
)

func lazyRegexp(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// nameCallee adds the name of the called function to the engine's message "not a function". It reads the name from
// the code at the position of the call.
func (g *guestProgram) nameCallee(e *core.Error, stack string) string {
	if m := builtins().FindStringSubmatch(stack); m != nil {
		return "TypeError: what was passed to " + m[1] + " is not a function"
	}
	lines := strings.Split(g.code, "\n")
	if e.Line < 1 || e.Line > len(lines) {
		return e.Message
	}
	line := []rune(lines[e.Line-1])
	name := calleePattern().FindString(string(line[:min(max(e.Column-1, 0), len(line))]))
	if name == "" {
		return e.Message
	}
	if name[0] == ')' || name[0] == ']' {
		name = "(intermediate value)" + strings.TrimLeft(name, ")]?")
	}
	return "TypeError: " + name + " is not a function"
}

// addLocation returns a copy of the error e that also contains the program's own stack frames and the position of the
// innermost frame.
func (g *guestProgram) addLocation(e *core.Error, stack string) *core.Error {
	const maxFrames = 10
	c := *e
	var own []string
	for line := range strings.Lines(clipText(stack, 64<<10)) {
		m := frames().FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil || m[2] != g.fileName() && !g.isSkill(m[2]) {
			continue
		}
		row, column := programPosition(m[3], m[4])
		if c.Line == 0 && m[2] == g.fileName() {
			c.Line, c.Column = row, column
		}
		if own = append(own, formatFrame(m[1], m[2], row, column)); len(own) == maxFrames {
			break
		}
	}
	c.Stack = strings.Join(own, "\n")
	return &c
}

// skillFolder is the folder that stack traces show in the file names of skills, the saved modules that programs can
// import.
const skillFolder = "skills/"

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

func (g *guestProgram) isSkill(file string) bool {
	return slices.ContainsFunc(g.program.Modules, func(m core.SkillModule) bool { return m.File == file })
}

// programPosition converts a position in the evaluated text to the position in the program's own code.
func programPosition(row, column string) (int, int) {
	r, _ := strconv.Atoi(row)
	c, _ := strconv.Atoi(column)
	if r == 1 {
		c = max(c-len(programHead), 1)
	}
	return r, c
}

func formatFrame(function, file string, row, column int) string {
	function = clipText(function, 100)
	if function == "" || function == "<anonymous>" {
		return fmt.Sprintf("at %s:%d:%d", file, row, column)
	}
	return fmt.Sprintf("at %s (%s:%d:%d)", function, file, row, column)
}
