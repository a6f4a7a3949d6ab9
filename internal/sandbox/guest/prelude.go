package guest

import (
	"fmt"

	"modernc.org/quickjs"

	"retort/internal/sandbox/guest/js"
)

// compileModule returns the function of a module of the prelude, the JavaScript environment of programs. Modules that
// the prelude's main module requires are evaluated before the program arrives. Others are evaluated on first use.
func (g *guestProgram) compileModule(name string) (quickjs.Value, error) {
	if code, ok := g.compiled[name]; ok {
		return g.js.EvalBytecodeValue(code)
	}
	source, err := moduleSource(name)
	if err != nil {
		return quickjs.Value{}, err
	}
	g.js.withoutText(true)
	defer g.js.withoutText(false)
	return g.js.EvalValue(source, quickjs.EvalGlobal)
}

// moduleSource returns a script that evaluates to the function of a module of the prelude, the JavaScript environment
// of programs.
func moduleSource(name string) (string, error) {
	source, err := js.ModuleSource(name)
	return "(function (require, exports, native) {\n" + source + "\n})", err
}

// loadPrelude evaluates the prelude, the JavaScript environment of programs. It stores those functions of the prelude
// that the event loop needs.
func (g *guestProgram) loadPrelude() error {
	if err := g.registerNatives(); err != nil {
		return err
	}
	names := make([]any, 0, len(g.nativeFuncs()))
	for _, n := range g.nativeFuncs() {
		names = append(names, n.name)
	}
	boot, err := g.js.EvalValue(bootstrap, quickjs.EvalGlobal)
	if err != nil {
		return fmt.Errorf("guest: bootstrap: %w", err)
	}
	defer boot.Free()
	main, err := boot.CallValue(quickjs.UndefinedValue, names...)
	if err != nil {
		return fmt.Errorf("guest: prelude: %w", err)
	}
	defer main.Free()
	for name, function := range map[string]*quickjs.Value{
		"preload": &g.preload, "prepare": &g.prepare, "importModule": &g.importModule, "exported": &g.exported, "startLater": &g.startLater,
		"parsed": &g.parsed, "revived": &g.revived, "failed": &g.failed, "fire": &g.fire, "finish": &g.finish, "describe": &g.describe,
	} {
		atom, err := g.js.NewAtom(name)
		if err != nil {
			return err
		}
		if *function, err = main.GetPropertyValue(atom); err != nil {
			return fmt.Errorf("guest: prelude: %s: %w", name, err)
		}
	}
	return nil
}

// bootstrap is a script that the guest runs once, before any program. It takes the Go functions whose names are its
// arguments from the global object, removes them there so that programs cannot reach them, and creates the module
// loader.
const bootstrap = `'use strict'; (function (...names) {
	const native = { __proto__: null }, loaded = { __proto__: null };
	for (const name of names) {
		native[name] = globalThis[name];
		delete globalThis[name];
	}
	function require(name) {
		if (!(name in loaded)) {
			loaded[name] = { __proto__: null };
			native.compile(name)(require, loaded[name], native);
		}
		return loaded[name];
	}
	return require('main');
})`

// warmModules lists the modules of the prelude (the JavaScript environment of programs) that most programs use.
var warmModules = []string{"inspect", "console", "losses"}

// preloadWarm evaluates modules of the prelude, the JavaScript environment of programs, while the guest waits for a
// program. It evaluates those that the program will probably use.
func (g *guestProgram) preloadWarm() {
	for _, name := range warmModules {
		if g.inbox.hasFrame() {
			return
		}
		_, _ = g.preload.Call(quickjs.UndefinedValue, name) // fails again when it is used
	}
}
