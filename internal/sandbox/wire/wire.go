// Package wire implements the framed protocol between the host and the guest inside a sandbox. It is the same over a
// pipe, a unix socket or a virtio-serial port. The guest is assumed to be hostile: the size of its frames is checked
// before memory is allocated for them, and the first unexpected frame ends the guest.
//
//	guest → host   ready    head GuestReady                    once, before anything else
//	host → guest   start    head ProgramStart   body code      once
//	guest → host   output                       body text      any number
//	guest → host   call     head CallHead       body JSON      any number
//	host → guest   result   head AnswerHead     body JSON      one per call, with its id, in any order
//	guest → host   wake     id milliseconds                    any number; a newer one replaces an older one
//	host → guest   wake                                        after that time, for guests that can wait only by reading
//	guest → host   done     head ProgramDone    body JSON      once, as the last frame
//
// Before start, the host can let a guest for Python parse programs:
//
//	host → guest   parse                        body code      any number, each answered before the next
//	guest → host   parsed   head JSON           body tree      one per parse: facts about the program, the syntax tree
//	guest → host   compiled head JSON                          one per parse, after parsed: whether the program compiles
//
// A guest that was started with the argument for a compiled harness first receives its harness, which the same
// runtime has compiled in another process:
//
//	host → guest   harness                      body code      once, before anything else
//
// A guest exits when its input ends.
//
// Arguments, results and values are sent as bodies: raw bytes that are not decoded and encoded again on the way. This
// preserves the digits of long integers and the order of keys.
package wire

import (
	"encoding/json"

	"retort/internal/core"
)

// Protocol is the version of the protocol. Host and guest are usually the same binary. If their versions differ, the
// host rejects the guest.
const Protocol = 1

// GuestReady represents the head of a ready frame. It contains the guest's protocol version and runtime.
type GuestReady struct {
	Protocol int    `json:"protocol"`
	Runtime  string `json:"runtime"`           // name of the runtime, such as "quickjs" or "python"
	Version  string `json:"version,omitempty"` // version of the runtime
}

// ProgramStart represents the head of a start frame. It contains all data of the program except its code.
type ProgramStart struct {
	Name       string             `json:"name"`
	Namespaces []ToolNamespace    `json:"namespaces,omitempty"`
	Modules    []core.SkillModule `json:"modules,omitempty"`
	Memory     int64              `json:"memory"` // maximum size of the program's heap, in bytes
	Result     int64              `json:"result"` // maximum size of the program's value as JSON, in bytes
}

// ToolNamespace holds a core.ServerNamespace with encoded functions. The guest decodes the functions only if the
// program uses them.
type ToolNamespace struct {
	Server    string          `json:"server"`
	Global    string          `json:"global,omitempty"`
	Modules   []string        `json:"modules"`
	Functions json.RawMessage `json:"functions"` // a []core.ToolFunction as JSON
}

// CallHead represents the head of a call frame. It names the function. The body contains the arguments.
type CallHead struct {
	Server string `json:"server,omitempty"`
	Tool   string `json:"tool"`
}

// AnswerHead represents the head of a result frame. If it contains no error, the body is the result of the call.
type AnswerHead struct {
	Error *core.Error `json:"error,omitempty"`
}

// ProgramDone represents the head of a done frame, which says how the program ended. HasValue is false if the
// program's value is undefined. Otherwise the body contains the value as JSON.
type ProgramDone struct {
	Status   core.OutcomeStatus `json:"status"`
	HasValue bool               `json:"has_value,omitempty"`
	Error    *core.Error        `json:"error,omitempty"`
	Warnings []string           `json:"warnings,omitempty"`
}

// ReadyFrame returns the frame with which a guest reports that it is ready for its program.
func ReadyFrame(runtime string) Frame {
	return Frame{Kind: KindReady, Head: encodeHead(GuestReady{Protocol: Protocol, Runtime: runtime})}
}

// HarnessFrame returns the frame that sends a guest its compiled harness, the code that runs programs in the guest.
func HarnessFrame(code []byte) Frame { return Frame{Kind: KindHarness, Body: code} }

// OutputFrame returns a frame with console output of the program.
func OutputFrame(text []byte) Frame { return Frame{Kind: KindOutput, Body: text} }

// CallFrame returns a frame that calls a function of the host. The host's result has the same id.
func CallFrame(id uint32, c CallHead, arguments []byte) Frame {
	return Frame{Kind: KindCall, ID: id, Head: encodeHead(c), Body: arguments}
}

// DoneFrame returns the frame that reports how the program ended. Its body is the program's value, or empty if the
// program has no value.
func DoneFrame(d ProgramDone, value []byte) Frame {
	return Frame{Kind: KindDone, Head: encodeHead(d), Body: value}
}
