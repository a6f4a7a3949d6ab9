package guest

import (
	"errors"
	"reflect"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/libquickjs"
	"modernc.org/quickjs"
)

// jsEngine represents a QuickJS virtual machine. It adds features that package quickjs does not offer: a file name
// for evaluated code, the state of promises, unhandled rejections, and bytes that are not converted to text. For
// these it calls the QuickJS library below package quickjs directly, with handles that quickjs.VM does not export.
// newEngine fails if it does not find these handles. A jsEngine must be used by one goroutine at a time.
type jsEngine struct {
	*quickjs.VM
	tls     *libc.TLS
	runtime uintptr
	context uintptr
	// functions holds the Go functions that the QuickJS library may call, so that Go does not collect them.
	functions   []*cFunction
	offVM, offV uintptr // byte offsets of two unexported fields of quickjs.Value
	onRejection func(*libc.TLS, uintptr, lib.TJSValue, lib.TJSValue, int32, uintptr)
	rejections  map[uint64]unhandledRejection // maps the address of a promise to its rejection
	rejected    int                           // number of rejections so far
}

// unhandledRejection represents a rejected promise that has no handler yet.
type unhandledRejection struct {
	promise, reason lib.TJSValue
	seq             int
}

// maxDepth bounds the depth of JavaScript calls. The QuickJS library counts the depth in slots, about one for each
// call. At a million calls, Go's own stack would overflow, which ends the process.
const maxDepth = 30_000

var errLayout = errors.New("guest: this version of the QuickJS library has an unknown memory layout")

func newEngine() (*jsEngine, error) {
	vm, err := quickjs.NewVM()
	if err != nil {
		return nil, err
	}
	vm.SetMaxStackSize(maxDepth)
	e := &jsEngine{VM: vm, rejections: map[uint64]unhandledRejection{}}
	if err := e.findHandles(); err != nil {
		_ = vm.Close()
		return nil, err
	}
	e.onRejection = e.trackRejection
	lib.XJS_SetHostPromiseRejectionTracker(e.tls, e.runtime, funcPointer(&e.onRejection), 0)
	return e, nil
}

// findHandles reads the QuickJS library's handles, such as that of its context, from unexported fields of the
// quickjs.VM.
func (e *jsEngine) findHandles() (err error) {
	defer func() {
		if recover() != nil { // reflect, at a field that is not there
			err = errLayout
		}
	}()
	vm := reflect.ValueOf(e.VM).Elem()
	e.context = uintptr(vm.FieldByName("cContext").Uint())
	rt := vm.FieldByName("runtime").Elem()
	e.runtime = uintptr(rt.FieldByName("cRuntime").Uint())
	tls := rt.FieldByName("tls")
	value := reflect.TypeFor[quickjs.Value]()
	ofVM, ok1 := value.FieldByName("vm")
	ofV, ok2 := value.FieldByName("v")
	if !ok1 || !ok2 || ofVM.Type != reflect.TypeFor[*quickjs.VM]() || ofV.Type != reflect.TypeFor[lib.TJSValue]() ||
		tls.Type() != reflect.TypeFor[*libc.TLS]() {
		return errLayout
	}
	e.tls = (*libc.TLS)(tls.UnsafePointer())
	e.offVM, e.offV = ofVM.Offset, ofV.Offset
	return nil
}

// funcPointer converts f to a function pointer that the translated C code can call. f must stay reachable for the
// garbage collector as long as it may be called.
func funcPointer[F any](f *F) uintptr { return *(*uintptr)(unsafe.Pointer(f)) }

// pointerAt converts an address in the memory that the QuickJS library manages itself to a pointer. Go's garbage
// collector does not move that memory.
func pointerAt[T any](address uintptr) *T { return *(**T)(unsafe.Pointer(&address)) }

// wrapValue converts v to a quickjs.Value, which takes ownership of v.
func (e *jsEngine) wrapValue(v lib.TJSValue) quickjs.Value {
	var value quickjs.Value
	p := unsafe.Pointer(&value)
	*(**quickjs.VM)(unsafe.Add(p, e.offVM)) = e.VM
	*(*lib.TJSValue)(unsafe.Add(p, e.offV)) = v
	return value
}

// unwrapValue returns the QuickJS library's own value inside v. v keeps the ownership of that value.
func (e *jsEngine) unwrapValue(v quickjs.Value) lib.TJSValue {
	return *(*lib.TJSValue)(unsafe.Add(unsafe.Pointer(&v), e.offV))
}

// objectAddress returns the address of the object that v refers to.
func objectAddress(v lib.TJSValue) uint64 { return *(*uint64)(unsafe.Pointer(&v)) }

// evaluateScript evaluates a script in strict mode. The argument file is the file name that stack traces show. If the
// script throws, ok is false and value is the thrown value.
func (e *jsEngine) evaluateScript(source, file string) (value quickjs.Value, ok bool, err error) {
	code, err := libc.CString(source)
	if err != nil {
		return value, false, err
	}
	defer libc.Xfree(e.tls, code)
	name, err := libc.CString(file)
	if err != nil {
		return value, false, err
	}
	defer libc.Xfree(e.tls, name)
	v := lib.XJS_Eval(e.tls, e.context, code, libc.Tsize_t(len(source)), name, lib.MJS_EVAL_TYPE_GLOBAL|lib.MJS_EVAL_FLAG_STRICT)
	if v.Ftag == lib.EJS_TAG_EXCEPTION {
		return e.wrapValue(lib.XJS_GetException(e.tls, e.context)), false, nil
	}
	return e.wrapValue(v), true, nil
}

// withoutText determines whether QuickJS drops the source text of the functions that it compiles from now on. The
// guest's own JavaScript code is compiled without text, so that its functions look like native code to programs.
func (e *jsEngine) withoutText(yes bool) {
	var flags int32
	if yes {
		flags = lib.MJS_STRIP_SOURCE
	}
	lib.XJS_SetStripInfo(e.tls, e.runtime, flags)
}

// promiseState returns the state of a promise: whether it is settled, whether it was fulfilled, and its value or
// reason.
func (e *jsEngine) promiseState(promise quickjs.Value) (value quickjs.Value, fulfilled, settled bool) {
	p := e.unwrapValue(promise)
	state := lib.XJS_PromiseState(e.tls, e.context, p)
	if state != lib.EJS_PROMISE_FULFILLED && state != lib.EJS_PROMISE_REJECTED {
		return value, false, false
	}
	return e.wrapValue(lib.XJS_PromiseResult(e.tls, e.context, p)), state == lib.EJS_PROMISE_FULFILLED, true
}

// trackRejection is QuickJS's callback for a promise that is rejected without a handler (handled is 0) or gets a
// handler afterwards.
func (e *jsEngine) trackRejection(_ *libc.TLS, _ uintptr, promise, reason lib.TJSValue, handled int32, _ uintptr) {
	if handled == 0 {
		e.rejected++
		e.rejections[objectAddress(promise)] = unhandledRejection{e.dupValue(promise), e.dupValue(reason), e.rejected}
		return
	}
	if r, ok := e.rejections[objectAddress(promise)]; ok {
		delete(e.rejections, objectAddress(promise))
		e.freeValue(r.promise)
		e.freeValue(r.reason)
	}
}

func (e *jsEngine) dupValue(v lib.TJSValue) lib.TJSValue { return lib.XDupValue(e.tls, e.context, v) }
func (e *jsEngine) freeValue(v lib.TJSValue)             { lib.XFreeValue(e.tls, e.context, v) }

// firstUnhandled returns the reason of the first rejected promise that has no handler. It ignores the promise that
// the argument except holds. found is false if there is no other.
func (e *jsEngine) firstUnhandled(except quickjs.Value) (reason quickjs.Value, found bool) {
	first := unhandledRejection{seq: e.rejected + 1}
	for promise, r := range e.rejections {
		if promise != objectAddress(e.unwrapValue(except)) && r.seq < first.seq {
			first, found = r, true
		}
	}
	if !found {
		return reason, false
	}
	return e.wrapValue(e.dupValue(first.reason)), true
}

// bufferBytes copies the content of an ArrayBuffer.
func (e *jsEngine) bufferBytes(buffer quickjs.Value) []byte {
	const word = int(unsafe.Sizeof(libc.Tsize_t(0)))
	size := e.tls.Alloc(word)
	defer e.tls.Free(word)
	p := lib.XJS_GetArrayBuffer(e.tls, e.context, size, e.unwrapValue(buffer))
	n := *pointerAt[libc.Tsize_t](size)
	if p == 0 || n == 0 {
		return nil
	}
	return append([]byte(nil), unsafe.Slice(pointerAt[byte](p), n)...)
}

// newBytes creates an ArrayBuffer with a copy of b.
func (e *jsEngine) newBytes(b []byte) quickjs.Value {
	p := libc.Xmalloc(e.tls, libc.Tsize_t(max(len(b), 1)))
	if p == 0 {
		return e.wrapValue(lib.XJS_ThrowOutOfMemory(e.tls, e.context))
	}
	defer libc.Xfree(e.tls, p)
	copy(unsafe.Slice(pointerAt[byte](p), len(b)), b)
	return e.wrapValue(lib.XJS_NewArrayBufferCopy(e.tls, e.context, p, libc.Tsize_t(len(b))))
}
