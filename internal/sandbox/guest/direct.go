package guest

import (
	"unicode/utf8"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/libquickjs"
	"modernc.org/quickjs"
)

// What follows speaks to the library without the conversions of package quickjs,
// which cost more than the calls of tools that they would be for. Values passed
// to a function are borrowed, values that it returns are owned.

// cFunction is the signature of Go functions that the translated C code of QuickJS can call.
type cFunction func(tls *libc.TLS, context uintptr, this lib.TJSValue, argc int32, argv uintptr) lib.TJSValue

// registerFunc makes fn a global function of two parameters. fn must neither use the methods of the VM nor panic.
func (e *jsEngine) registerFunc(name string, fn func(a, b lib.TJSValue) lib.TJSValue) error {
	cname, err := libc.CString(name)
	if err != nil {
		return err
	}
	defer libc.Xfree(e.tls, cname)
	f := cFunction(func(_ *libc.TLS, _ uintptr, _ lib.TJSValue, _ int32, argv uintptr) lib.TJSValue {
		args := pointerAt[[2]lib.TJSValue](argv) // the library adds what is missing
		return fn(args[0], args[1])
	})
	e.functions = append(e.functions, &f)
	global := lib.XJS_GetGlobalObject(e.tls, e.context)
	defer e.freeValue(global)
	made := lib.XJS_NewCFunction2(e.tls, e.context, funcPointer(&f), cname, 2, lib.EJS_CFUNC_generic, 0)
	if lib.XJS_SetPropertyStr(e.tls, e.context, global, cname, made) < 0 {
		return e.takeException()
	}
	return nil
}

func isException(v lib.TJSValue) bool { return v.Ftag == lib.EJS_TAG_EXCEPTION }

// takeException clears the pending exception and returns it as an error.
func (e *jsEngine) takeException() error {
	v := e.wrapValue(lib.XJS_GetException(e.tls, e.context))
	defer v.Free()
	return quickjs.ErrorFromValue(v)
}

// callFunction calls f. If f throws, the exception stays pending in the engine.
func (e *jsEngine) callFunction(f lib.TJSValue, args ...lib.TJSValue) lib.TJSValue {
	size := len(args) * int(unsafe.Sizeof(lib.TJSValue{}))
	argv := e.tls.Alloc(size)
	defer e.tls.Free(size)
	copy(unsafe.Slice(pointerAt[lib.TJSValue](argv), len(args)), args)
	undefined := lib.TJSValue{Ftag: lib.EJS_TAG_UNDEFINED}
	return lib.XJS_Call(e.tls, e.context, f, undefined, int32(len(args)), argv)
}

// newPromise creates a promise and the functions that resolve and reject it.
func (e *jsEngine) newPromise() (promise, resolve, reject lib.TJSValue) {
	const size = 2 * int(unsafe.Sizeof(lib.TJSValue{}))
	p := e.tls.Alloc(size)
	defer e.tls.Free(size)
	promise = lib.XJS_NewPromiseCapability(e.tls, e.context, p)
	if !isException(promise) {
		settlers := pointerAt[[2]lib.TJSValue](p)
		resolve, reject = settlers[0], settlers[1]
	}
	return promise, resolve, reject
}

// intValue returns the int in a JavaScript number. It must be used only for numbers that the guest's own JavaScript
// code made from an int.
func (e *jsEngine) intValue(v lib.TJSValue) int { return int(*(*int32)(unsafe.Pointer(&v))) }

// stringBytes returns a copy of a string as UTF-8. If memory runs out, ok is false and an exception is pending in the
// engine.
func (e *jsEngine) stringBytes(v lib.TJSValue) (text []byte, ok bool) {
	const word = int(unsafe.Sizeof(libc.Tsize_t(0)))
	size := e.tls.Alloc(word)
	defer e.tls.Free(word)
	p := lib.XJS_ToCStringLen2(e.tls, e.context, size, v, 0)
	if p == 0 {
		return nil, false
	}
	defer lib.XJS_FreeCString(e.tls, e.context, p)
	return append([]byte(nil), unsafe.Slice(pointerAt[byte](p), *pointerAt[libc.Tsize_t](size))...), true
}

// newText creates a JavaScript string from UTF-8. Each invalid byte becomes U+FFFD.
func (e *jsEngine) newText(text []byte) lib.TJSValue {
	if !utf8.Valid(text) {
		text = []byte(string([]rune(string(text))))
	}
	return e.withBytes(text, func(p uintptr, n libc.Tsize_t) lib.TJSValue {
		return lib.XJS_NewStringLen(e.tls, e.context, p, n)
	})
}

// parseJSON calls JSON.parse for valid UTF-8.
func (e *jsEngine) parseJSON(text []byte) lib.TJSValue {
	return e.withBytes(text, func(p uintptr, n libc.Tsize_t) lib.TJSValue {
		return lib.XJS_ParseJSON(e.tls, e.context, p, n, p+uintptr(n)) // the name is empty
	})
}

// withBytes calls f with the address of a zero-terminated copy of b in the memory of the C library.
func (e *jsEngine) withBytes(b []byte, f func(p uintptr, n libc.Tsize_t) lib.TJSValue) lib.TJSValue {
	n := libc.Tsize_t(len(b))
	p := libc.Xmalloc(e.tls, n+1)
	if p == 0 {
		return lib.XJS_ThrowOutOfMemory(e.tls, e.context)
	}
	defer libc.Xfree(e.tls, p)
	place := unsafe.Slice(pointerAt[byte](p), len(b)+1)
	place[copy(place, b)] = 0
	return f(p, n)
}

// stackTrace represents a captured call stack, innermost function first. QuickJS formats the stack of an error from
// it, which takes far longer than capturing it.
type stackTrace []tracePlace

type tracePlace struct {
	function lib.TJSValue
	pc       uintptr
	mode     int32
}

// maxTrace bounds the number of frames in a stack trace, and thereby its memory.
const maxTrace = 200

// captureTrace captures the current stack of the program that has called a Go function. The caller must call
// freeTrace.
func (e *jsEngine) captureTrace() stackTrace {
	var t stackTrace
	sf := pointerAt[lib.TJSStackFrame](pointerAt[lib.TJSRuntime](e.runtime).Fcurrent_stack_frame).Fprev_frame
	for ; sf != 0 && len(t) < maxTrace; sf = pointerAt[lib.TJSStackFrame](sf).Fprev_frame {
		f := pointerAt[lib.TJSStackFrame](sf)
		t = append(t, tracePlace{e.dupValue(f.Fcur_func), f.Fcur_pc, f.Fjs_mode})
	}
	return t
}

func (e *jsEngine) freeTrace(t stackTrace) {
	for _, p := range t {
		e.freeValue(p.function)
	}
}

// callWithTrace calls f while the engine's stack is replaced by t, so that errors created by f have the stack t.
func (e *jsEngine) callWithTrace(t stackTrace, f func()) {
	const size = unsafe.Sizeof(lib.TJSStackFrame{})
	frames := libc.Xcalloc(e.tls, libc.Tsize_t(len(t)+1), libc.Tsize_t(size))
	if frames == 0 {
		f()
		return
	}
	defer libc.Xfree(e.tls, frames)
	var outer uintptr
	for i := len(t) - 1; i >= 0; i-- {
		frame := frames + uintptr(i)*size
		*pointerAt[lib.TJSStackFrame](frame) = lib.TJSStackFrame{
			Fprev_frame: outer, Fcur_func: t[i].function, Fcur_pc: t[i].pc, Fjs_mode: t[i].mode,
		}
		outer = frame
	}
	current := &pointerAt[lib.TJSRuntime](e.runtime).Fcurrent_stack_frame
	before := *current
	*current = outer
	f()
	*current = before
}
