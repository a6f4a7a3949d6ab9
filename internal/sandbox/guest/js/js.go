// Package js holds the JavaScript modules that form the environment of programs. Each module is the body of a
// function with the parameters require, exports and native. The modules are the same in every runtime. The parameter
// native contains the functions that the runtime provides for them.
package js

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed *.js
var files embed.FS

// ModuleSource returns the source of a module.
func ModuleSource(name string) (string, error) {
	source, err := files.ReadFile(name + ".js")
	if err != nil {
		return "", fmt.Errorf("guest: there is no module %q", name)
	}
	return string(source), nil
}

// ModuleNames returns the names of all modules, sorted.
func ModuleNames() []string {
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return nil // the files are part of the program
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = strings.TrimSuffix(e.Name(), ".js")
	}
	return names
}
