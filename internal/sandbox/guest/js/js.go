// Package js holds what programs find around them, in JavaScript: modules, each
// of which is the body of a function (require, exports, native). They are the
// same in every runtime; native is what a runtime does for them.
package js

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed *.js
var files embed.FS

// Source is the source of a module.
func Source(name string) (string, error) {
	source, err := files.ReadFile(name + ".js")
	if err != nil {
		return "", fmt.Errorf("guest: there is no module %q", name)
	}
	return string(source), nil
}

// Names are the names of all modules, sorted.
func Names() []string {
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
