package rules

import "strings"

// nameDanger says which rule a use of a name violates, and how severely.
type nameDanger struct {
	rule     string
	severity RuleSeverity // 0 is the rule's own
	whole    bool         // its members are meant too
}

// lookupDanger returns the rule that a program violates if it uses this dotted path. A rule can apply to the path
// itself, or to a module or object with which the path begins, including all of its members. Members such as .call
// and .bind at the end of the path are ignored.
func lookupDanger(l TreeLanguage, path string) (nameDanger, bool) {
	names := scriptNames
	if l == Python {
		names = pythonNames
	}
	for end := len(path); end > 0; end = strings.LastIndexAny(path[:end], ".(") {
		d, ok := names[path[:end]]
		if !ok {
			continue
		}
		rest := path[end:]
		if rest == "" || d.whole || rest == ".call" || rest == ".apply" || rest == ".bind" || rest == ".__call__" || rest == ".constructor" {
			return d, true
		}
	}
	return nameDanger{}, false
}

// addAll enters all names into the map m, with d as the danger of each name.
func addAll(m map[string]nameDanger, d nameDanger, names ...string) {
	for _, n := range names {
		m[n] = d
	}
}

var scriptNames = makeScriptNames()

func makeScriptNames() map[string]nameDanger {
	m := map[string]nameDanger{}
	addAll(m, nameDanger{rule: "code.eval"}, "eval", "execScript")
	addAll(m, nameDanger{rule: "code.function"}, "Function", "AsyncFunction", "GeneratorFunction")
	addAll(m, nameDanger{rule: "code.import"}, "require", "import", "process.getBuiltinModule")
	addAll(m, nameDanger{rule: "code.decode"}, "atob", "Buffer.from", "@js-base64", "@base-64", "@base64-js")
	addAll(m, nameDanger{rule: "code.crypto", whole: true}, "crypto")
	addAll(m, nameDanger{rule: "code.crypto"}, "@crypto", "@crypto-js")
	addAll(m, nameDanger{rule: "code.deserialize", whole: true}, "@v8.deserialize", "@node-serialize", "@serialize-javascript")
	addAll(m, nameDanger{rule: "process.spawn", whole: true}, "@child_process", "@execa", "@shelljs", "@cross-spawn", "@zx", "@node-pty",
		"Deno.run", "Deno.Command", "Bun.spawn", "Bun.spawnSync", "Bun.$")
	addAll(m, nameDanger{rule: "process.command"}, "exec")
	addAll(m, nameDanger{rule: "process.exit"}, "process.exit", "process.kill", "process.abort", "process.reallyExit", "process._kill", "process._debugProcess",
		"Deno.exit", "Deno.kill", "Bun.exit")
	addAll(m, nameDanger{rule: "process.env"}, "process.env", "Deno.env.toObject()", "Bun.env")
	addAll(m, nameDanger{
		rule: "native.module", whole: true,
	}, "process.binding", "process._linkedBinding", "process.dlopen", "Deno.dlopen", "Deno.UnsafePointer",
		"@ffi-napi", "@ffi", "@bun:ffi", "@koffi", "@bindings", "@node-gyp-build")
	addAll(m, nameDanger{rule: "native.wasm", whole: true}, "WebAssembly", "@wasi")
	addAll(m, nameDanger{
		rule: "escape.vm", whole: true,
	}, "@vm", "@vm2", "@inspector", "@repl", "@module", "@worker_threads", "@cluster", "@isolated-vm",
		"process.mainModule", "process.constructor", "Error.prepareStackTrace", "Worker", "SharedWorker")
	addAll(m, nameDanger{
		rule: "network.fetch", whole: true,
	}, "fetch", "XMLHttpRequest", "EventSource", "WebSocket", "navigator.sendBeacon", "@http", "@https", "@http2",
		"@undici", "@axios", "@node-fetch", "@got", "@request", "@superagent", "@ws", "Bun.fetch")
	addAll(m, nameDanger{
		rule: "network.socket", whole: true,
	}, "@net", "@dgram", "@tls", "@dns", "Deno.connect", "Deno.listen", "Deno.serve", "Bun.listen", "Bun.connect",
		"Bun.serve", "@http.createServer", "@https.createServer", "RTCPeerConnection")
	addAll(m, nameDanger{rule: "dom.document", whole: true}, "document", "navigator", "location")
	addAll(m, nameDanger{rule: "dom.storage", whole: true}, "localStorage", "sessionStorage", "indexedDB", "document.cookie", "caches")
	addAll(m, nameDanger{rule: "files.tree", whole: true}, "@rimraf", "@del", "@fs-extra")
	return m
}

var pythonNames = makePythonNames()

func makePythonNames() map[string]nameDanger {
	m := map[string]nameDanger{}
	addAll(m, nameDanger{rule: "code.eval"}, "eval", "exec", "compile", "execfile", "@timeit.timeit", "@timeit.repeat", "@cProfile.run", "@cProfile.runctx", "@profile.run",
		"@trace.Trace", "@doctest.testmod", "@typing.ForwardRef")
	addAll(m, nameDanger{rule: "code.import"}, "__import__", "@importlib.import_module", "@importlib.__import__")
	addAll(m, nameDanger{rule: "code.decode"}, "@base64")
	addAll(m, nameDanger{rule: "code.crypto", whole: true}, "@cryptography", "@Crypto", "@Cryptodome", "@nacl")
	addAll(m, nameDanger{rule: "code.os"}, "@os")
	addAll(m, nameDanger{
		rule: "code.deserialize", whole: true,
	}, "@pickle.loads", "@pickle.load", "@pickle.Unpickler", "@_pickle", "@cPickle", "@dill", "@shelve",
		"@jsonpickle", "@marshal.loads", "@marshal.load", "@yaml.load", "@yaml.unsafe_load", "@yaml.full_load", "@joblib.load")
	addAll(m, nameDanger{
		rule: "process.spawn", whole: true,
	}, "@subprocess", "@pty", "@commands", "@popen2", "@os.system", "@os.popen", "@os.fork", "@os.forkpty",
		"@os.startfile", "@os.posix_spawn", "@os.posix_spawnp", "@os.execl", "@os.execle", "@os.execlp", "@os.execlpe", "@os.execv", "@os.execve",
		"@os.execvp", "@os.execvpe", "@os.spawnl", "@os.spawnle", "@os.spawnlp", "@os.spawnlpe", "@os.spawnv", "@os.spawnve", "@os.spawnvp", "@os.spawnvpe",
		"@posix", "@nt", "@_posixsubprocess", "@asyncio.create_subprocess_exec", "@asyncio.create_subprocess_shell", "@asyncio.subprocess", "@pexpect", "@sh")
	addAll(m, nameDanger{rule: "process.spawn", severity: Medium, whole: true}, "@multiprocessing", "@concurrent.futures.ProcessPoolExecutor")
	addAll(m, nameDanger{rule: "process.command"}, "exec_command")
	addAll(
		m, nameDanger{rule: "process.exit"}, "@os._exit", "@os.kill", "@os.killpg", "@os.abort", "@signal.raise_signal",
		"@signal.pthread_kill",
	)
	addAll(m, nameDanger{rule: "process.env"}, "@os.environ", "@os.environb")
	addAll(
		m, nameDanger{rule: "native.module", whole: true}, "@ctypes", "@_ctypes", "@cffi", "@sys.setdlopenflags",
		"@_imp", "@imp", "@importlib.machinery.ExtensionFileLoader",
	)
	addAll(m, nameDanger{
		rule: "escape.vm", whole: true,
	}, "@sys._getframe", "@sys._current_frames", "@sys.settrace", "@sys.setprofile", "@types.CodeType",
		"@types.FunctionType", "@code", "@codeop", "@runpy", "@importlib.util.spec_from_file_location", "@importlib.util.module_from_spec",
		"@importlib.machinery", "@_frozen_importlib", "@_frozen_importlib_external", "@_thread._excepthook", "@os.ptrace", "@os.chroot", "@os.setuid", "@os.unshare")
	addAll(m, nameDanger{
		rule: "escape.vm", severity: Medium, whole: true,
	}, "@inspect.currentframe", "@inspect.stack", "@gc.get_objects", "@gc.get_referrers",
		"@gc.get_referents", "breakpoint", "@pdb", "@bdb", "@faulthandler")
	addAll(
		m, nameDanger{rule: "network.fetch", whole: true}, "@urllib.request", "@http.client", "@requests", "@httpx",
		"@aiohttp", "@urllib3", "@webbrowser", "@urllib2",
	)
	addAll(m, nameDanger{
		rule: "network.socket", whole: true,
	}, "@socket", "@_socket", "@asyncio.open_connection", "@asyncio.start_server", "@asyncio.open_unix_connection",
		"@socketserver", "@http.server", "@telnetlib", "@ftplib", "@smtplib", "@poplib", "@imaplib", "@paramiko", "@ssl", "@xmlrpc")
	return m
}

// scriptGlobals lists the global names of JavaScript. Other undeclared names are assumed to be servers, and their
// members tools.
var scriptGlobals = setOf(
	"Object", "Array", "String", "Number", "Boolean", "Symbol", "BigInt", "Math", "JSON", "Date", "RegExp", "Promise", "Map", "Set", "WeakMap", "WeakSet", "WeakRef",
	"Error", "TypeError", "RangeError", "SyntaxError", "AggregateError", "ReferenceError", "EvalError", "URIError", "Reflect", "Proxy", "Intl", "Iterator",
	"ArrayBuffer", "SharedArrayBuffer", "DataView", "Atomics", "Uint8Array", "Int8Array", "Uint8ClampedArray", "Uint16Array", "Int16Array", "Uint32Array", "Int32Array",
	"Float32Array", "Float64Array", "BigInt64Array", "BigUint64Array", "FinalizationRegistry", "console", "process", "Buffer", "URL", "URLSearchParams",
	"TextEncoder", "TextDecoder", "AbortController", "AbortSignal", "performance", "crypto", "structuredClone", "setTimeout", "setInterval", "setImmediate",
	"clearTimeout", "clearInterval", "queueMicrotask", "atob", "btoa", "parseInt", "parseFloat", "isNaN", "isFinite", "encodeURIComponent", "decodeURIComponent",
	"encodeURI", "decodeURI", "escape", "unescape", "eval", "Function", "fetch", "require", "import", "module", "exports", "globalThis", "global", "undefined", "NaN", "Infinity",
	"arguments", "state", "pii", "skills", "sleep", "searchTools", "ToolError", "document", "window", "navigator", "location", "localStorage", "sessionStorage",
	"indexedDB", "caches", "XMLHttpRequest", "WebSocket", "EventSource", "Worker", "SharedWorker", "WebAssembly", "Deno", "Bun", "Event", "EventTarget", "Blob", "File",
	"FormData", "Headers", "Request", "Response", "exec", "execScript", "RTCPeerConnection", "AsyncFunction", "fs",
)

// pythonGlobals lists the global names of Python.
var pythonGlobals = setOf(
	"abs", "aiter", "all", "anext", "any", "ascii", "bin", "bool", "breakpoint", "bytearray", "bytes", "callable", "chr", "classmethod", "compile", "complex", "delattr",
	"dict", "dir", "divmod", "enumerate", "eval", "exec", "execfile", "exit", "filter", "float", "format", "frozenset", "getattr", "globals", "hasattr", "hash", "help",
	"hex", "id", "input", "int", "isinstance", "issubclass", "iter", "len", "list", "locals", "map", "max", "memoryview", "min", "next", "object", "oct", "open", "ord",
	"pow", "print", "property", "quit", "range", "repr", "reversed", "round", "set", "setattr", "slice", "sorted", "staticmethod", "str", "sum", "super", "tuple", "type",
	"vars", "zip", "__import__", "__name__", "__file__", "__doc__", "__builtins__", "Exception", "ValueError", "KeyError", "TypeError", "RuntimeError", "Ellipsis",
	"NotImplemented", "BaseException", "state", "pii", "skills", "sleep", "search_tools", "searchTools", "ToolError", "read_file", "write_file", "list_files", "load_skill", "exec_command",
	"global",
)

// pythonModules lists Python modules that the rules recognise by name even if the program does not import them.
var pythonModules = setOf(
	"os", "sys", "subprocess", "shutil", "ctypes", "socket", "importlib", "pickle", "marshal", "base64", "codecs", "zlib", "urllib", "json", "re", "math", "datetime",
	"asyncio", "itertools", "functools", "collections", "statistics", "random", "time", "csv", "io", "string", "textwrap", "hashlib", "pathlib", "operator", "typing",
	"types", "inspect", "gc", "signal", "threading", "multiprocessing", "concurrent", "http", "tempfile", "glob", "uuid", "decimal", "fractions", "heapq", "bisect",
	"copy", "enum", "dataclasses", "contextlib", "traceback", "logging", "warnings", "html", "zoneinfo", "difflib", "platform", "binascii", "struct", "pprint",
)

func setOf(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// globalNames returns the set of global names in the program's language.
func (t *SyntaxTree) globalNames() map[string]bool {
	if t.Language == Python {
		return pythonGlobals
	}
	return scriptGlobals
}
