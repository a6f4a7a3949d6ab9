// Package nodejs turns Node.js, Bun and Deno into guests, for programs that compute much. It contains the script that
// such a process runs, and the arguments to start it. The script speaks the protocol of package wire on descriptors 0
// and 1 and gives programs the same environment as package guest. It exits when its input ends. If the program is
// busy, only killing the process ends it. The script removes features from the runtime so that programs behave alike
// everywhere. This is no protection, so the process must be confined.
package nodejs

import (
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"retort/internal/sandbox/guest/js"
)

//go:embed *.js
var files embed.FS

// FileName names the file that contains the script. There must be no package.json in its directory or a parent
// directory.
const FileName = "main.js"

// ScriptSource returns the complete guest script, which reads no other file. It is the same for all runtimes, and is
// valid both as a classic script and as a module.
func ScriptSource() ([]byte, error) {
	modules := map[string]string{}
	for _, name := range js.ModuleNames() {
		source, err := js.ModuleSource(name)
		if err != nil {
			return nil, err
		}
		modules[name] = source
	}
	own, err := fs.ReadDir(files, ".")
	if err != nil {
		return nil, err
	}
	for _, e := range own { // in the place of those of the same name
		source, err := files.ReadFile(e.Name())
		if err != nil {
			return nil, err
		}
		modules[strings.TrimSuffix(e.Name(), ".js")] = string(source)
	}
	return joinModules(modules), nil
}

// joinModules returns a script that contains the modules and the code that evaluates the first one.
func joinModules(modules map[string]string) []byte {
	var b strings.Builder
	b.WriteString("(function (load) {\n'use strict';\nconst modules = {\n__proto__: null,\n")
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		if name != bootModule {
			fmt.Fprintf(&b, "%s(require, exports, native) {\n%s},\n", name, modules[name])
		}
	}
	fmt.Fprintf(&b, "};\n%s})(globalThis.process?.getBuiltinModule ?? require);\n", modules[bootModule])
	return []byte(b.String())
}

// bootModule is the name of the module that evaluates the others.
const bootModule = "boot"
