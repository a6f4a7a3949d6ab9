package bindings

import (
	"maps"
	"strings"
)

// newSet returns the set of all words in the given texts.
func newSet(texts ...string) map[string]bool {
	out := map[string]bool{}
	for _, text := range texts {
		for w := range strings.FieldsSeq(text) {
			out[w] = true
		}
	}
	return out
}

// scriptReserved lists names that a JavaScript function or member should not have: keywords, members of every object,
// names that wrappers use, and then, which would make a namespace look like a promise.
var scriptReserved = newSet(`
	arguments async await break case catch class const continue debugger default delete do else enum eval export extends false
	finally for function if implements import in instanceof interface let new null package private protected public return static
	super switch this throw true try typeof undefined var void while with yield`,
	`constructor hasOwnProperty isPrototypeOf propertyIsEnumerable prototype then toJSON toLocaleString toString valueOf
	NaN Infinity globalThis callMCPTool named`)

// pythonKeyword lists names that a Python parameter cannot have: keywords, and names that wrappers use.
var pythonKeyword = newSet(`
	False None True and as assert async await break class continue def del elif else except finally for from global if import
	in is lambda nonlocal not or pass raise return try while with yield`,
	`call_mcp_tool given unset __debug__`)

// pythonReserved lists names that a Python function or module should not have: keywords, types used in annotations,
// names that wrappers use, and file names that Windows reserves for devices.
var pythonReserved = newSet(`
	False None True and as assert async await break case class continue def del elif else except finally for from global if import
	in is lambda match nonlocal not or pass raise return try type while with yield`,
	`bool bytes dict float int list object str tuple call_mcp_tool annotations given unset __debug__`,
	`aux con nul prn com0 com1 com2 com3 com4 com5 com6 com7 com8 com9 lpt0 lpt1 lpt2 lpt3 lpt4 lpt5 lpt6 lpt7 lpt8 lpt9`)

var builtinSet = newSet(`
	Object Function Array Number Boolean String Symbol Date Promise RegExp Error AggregateError EvalError RangeError ReferenceError
	SyntaxError TypeError URIError InternalError JSON Math Intl ArrayBuffer SharedArrayBuffer Atomics DataView Uint8Array Int8Array
	Uint16Array Int16Array Uint32Array Int32Array Float16Array Float32Array Float64Array Uint8ClampedArray BigUint64Array BigInt64Array
	BigInt Map Set WeakMap WeakSet WeakRef FinalizationRegistry Proxy Reflect Iterator AsyncIterator globalThis undefined NaN Infinity
	parseInt parseFloat isNaN isFinite decodeURI decodeURIComponent encodeURI encodeURIComponent escape unescape eval arguments`,
	`console setTimeout clearTimeout setInterval clearInterval setImmediate clearImmediate queueMicrotask structuredClone
	URL URLSearchParams TextEncoder TextDecoder atob btoa crypto Crypto AbortController AbortSignal Event EventTarget CustomEvent
	DOMException performance Buffer Blob fetch process require module exports global self window`,
	`callMCPTool searchTools exec sleep ToolError state skills pii servers fs input`,
	`math json re asyncio datetime read_file write_file list_files search_tools call_mcp_tool exec_command result print`)

// BuiltinNames returns the names that a program's environment defines, in either language. A server with such a name
// gets no global variable; programs must import it.
func BuiltinNames() map[string]bool { return maps.Clone(builtinSet) }
