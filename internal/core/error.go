package core

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// Kind classifies errors. New versions only add kinds.
type Kind string

// Values of Kind.
const (
	KindSyntax             Kind = "syntax"              // the program has a syntax error
	KindType               Kind = "type"                // the program does not fit the types of the tools
	KindPolicy             Kind = "policy"              // a rule, a setting or a person refused it
	KindRuntime            Kind = "runtime"             // the program failed while it ran
	KindToolError          Kind = "tool_error"          // the server reported an error, or its answer is invalid
	KindToolNotFound       Kind = "tool_not_found"      // no server has this tool, or the policy hides it
	KindInvalidArguments   Kind = "invalid_arguments"   // an argument, a setting or a request is wrong
	KindUpstreamGone       Kind = "upstream_gone"       // the server is not connected, or its connection ended
	KindUpstreamTimeout    Kind = "upstream_timeout"    // the server did not answer in time
	KindToolChanged        Kind = "tool_changed"        // the definition of the tool differs from the trusted one
	KindLimit              Kind = "limit"               // a limit was reached, such as memory, output or calls
	KindSandboxUnavailable Kind = "sandbox_unavailable" // the sandbox cannot be used on this machine
	KindCancelled          Kind = "cancelled"           // the client or a person cancelled it
	KindInternal           Kind = "internal"            // Retort itself failed
)

// Error describes a failure for a person or a model. Line and Column are positions in the original program.
type Error struct {
	Kind    Kind   `json:"kind"`             // What failed, for programs: one of the [error kinds](errors.md#error-kinds).
	Op      string `json:"-"`                // the operation, for logs: "upstream.connect"
	Message string `json:"message"`          // The cause.
	Hint    string `json:"hint,omitempty"`   // The next step.
	Line    int    `json:"line,omitempty"`   // The line of the program, from 1.
	Column  int    `json:"column,omitempty"` // The column, from 1.
	Server  string `json:"server,omitempty"` // The server that was called.
	Tool    string `json:"tool,omitempty"`   // The tool that was called.
	Skill   string `json:"skill,omitempty"`  // The skill in which the error is, if it is not in the program itself.
	Frame   string `json:"frame,omitempty"`  // A few lines of the program, with the place marked.
	Stack   string `json:"stack,omitempty"`  // The functions of the program, innermost first.
	Err     error  `json:"-"`                // cause
}

// Errorf returns an Error of the given kind. The message is formatted as by fmt.Errorf.
func Errorf(kind Kind, op, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	cause := errors.Unwrap(err)
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		cause = errors.Join(several.Unwrap()...)
	}
	e := &Error{Kind: kind, Op: op, Message: err.Error(), Err: cause}
	if LacksFiles(err) {
		e.Hint = moreFiles
		if !strings.Contains(e.Message, tooManyFiles) {
			e.Message += " (" + tooManyFiles + ")"
		}
		if kind == KindInternal {
			e.Kind = KindLimit
		}
	}
	if kind == KindInternal && isMisplaced(err) {
		e.Kind, e.Hint = KindInvalidArguments, moveAway
	}
	return e
}

// isMisplaced reports whether err was caused by a wrong kind of file at a path, such as a directory where a file
// should be, or by a file that is too large. Such an error names the path. It has the method Misplaced or comes from
// the operating system.
func isMisplaced(err error) bool {
	var misplaced interface{ Misplaced() }
	if errors.As(err, &misplaced) {
		return true
	}
	var errno interface {
		error
		Temporary() bool
		Timeout() bool
	}
	if !errors.As(err, &errno) {
		return false
	}
	var path *fs.PathError
	if errors.As(err, &path) && (path.Op == "fork/exec" || path.Op == "open" && errors.Is(err, fs.ErrExist)) {
		return false // O_EXCL makes a file under a new name
	}
	switch errno.Error() {
	case "not a directory", "is a directory", "too many levels of symbolic links", "directory not empty", "file exists":
		return true
	}
	return false
}

// moveAway is the hint to move a file away, for errors caused by a wrong kind of file at a path.
const moveAway = "Retort did not create the file or folder in this place: the person who runs Retort should move it away; then try again"

// LacksFiles reports whether err was caused by too many open files in the process or on the machine. Only an error of
// the operating system counts, not a text from a server or a program.
func LacksFiles(err error) bool {
	var errno interface {
		error
		Temporary() bool
		Timeout() bool
	}
	if !errors.As(err, &errno) {
		return false
	}
	// A process that is started gets its files under numbers that may be beyond what it may have open, and the
	// system says then that they are bad.
	var starting *fs.PathError
	return strings.Contains(errno.Error(), tooManyFiles) ||
		errors.As(err, &starting) && starting.Op == "fork/exec" && strings.Contains(errno.Error(), "bad file descriptor")
}

const tooManyFiles = "too many open files"

// moreFiles is the hint to allow more open files, for errors caused by too many open files.
const moreFiles = "allow this process to open more files: ulimit -n 4096 in the shell that starts it, LimitNOFILE= for a service; or do less at once"

// WithHint returns a copy of e with a hint. If e was caused by too many open files, the copy gets the hint about open
// files instead.
func (e *Error) WithHint(format string, args ...any) *Error {
	c := *e
	c.Hint = fmt.Sprintf(format, args...)
	switch {
	case LacksFiles(e.Err):
		c.Hint = moreFiles
	case e.Hint == moveAway:
		c.Hint = moveAway
	}
	return &c
}

// AtTool returns a copy of e that names the server and tool.
func (e *Error) AtTool(server, tool string) *Error {
	c := *e
	c.Server, c.Tool = server, tool
	return &c
}

// IsDenial reports whether e means that a person or a rule refused the action.
func (e *Error) IsDenial() bool { return e.Kind == KindPolicy || e.Kind == KindToolChanged }

func (e *Error) Error() string { return string(e.Kind) + ": " + e.Message }

func (e *Error) Unwrap() error { return e.Err }

// AsError returns err as an *Error. An error of another type gets the kind internal.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return Errorf(KindInternal, "", "%w", err)
}

// ErrLogin marks, for errors.Is, the error of a call to a server that requires a person to log in first. The call had
// no effect.
var ErrLogin = errors.New("a login is required")

// ErrUnanswered marks, for errors.Is, the error of a question that no person answered in time.
var ErrUnanswered = errors.New("no person answered in time")

// ErrPage marks, for errors.Is, the error of a call whose server first wants a person to visit a web page in a
// browser (MCP's URL elicitation). The person did not open that page or could not be asked to.
var ErrPage = errors.New("a page must be opened first")

// ErrOutcomeUnknown marks, for errors.Is, the error of a call that was sent and got no readable answer. The call may
// have taken effect.
var ErrOutcomeUnknown = errors.New("it is unknown whether the call took effect")

// HintOutcomeUnknown is the beginning of the hint in an error of a call that may have taken effect.
const HintOutcomeUnknown = "the call may have taken effect and was not repeated: look at the current state before you make it again"
