// Package python contains the guest for Python: plain files that python3 -I -S -B runs inside a sandbox. They need
// only the interpreter's own library. The interpreter runs main.py with an empty environment. main.py speaks the
// protocol of package wire on its standard input and output. The other files are in the same folder.
//
// # Programs
//
// A program's value is the first of these that exists: the value of a top-level return, the variable result, the
// trailing expression, the return value of main. If a program consists of one function that is never called, that
// function is called instead of main. Top-level await works.
//
// The tools of a server are functions of a module with the server's name. The module is a global and can also be
// imported from servers. A plain call of a tool blocks and returns the tool's result. A call that is awaited,
// gathered or made a task runs concurrently.
//
// # Values
//
// The file values.py describes the conversion of values. Integers keep all their digits in either direction.
//
// # When a program is over
//
// A program is over when its last statement is done, when it has raised an exception, or when it waits for something
// that never happens. Tasks and calls that it did not await get a second to end while calls are pending. An exception
// of such a task that is not retrieved ends the program with an error. Threads are not waited for.
package python

import (
	"embed"
	"io/fs"
)

//go:embed *.py
var files embed.FS

// Main is the name of the file that the interpreter runs.
const Main = "main.py"

// GuestFiles returns the guest's files by name. They must be placed in one folder, which may be read-only.
func GuestFiles() map[string][]byte {
	all := map[string][]byte{}
	names, err := fs.Glob(files, "*.py")
	if err != nil {
		panic("python: " + err.Error()) // the pattern is a constant
	}
	for _, name := range names {
		data, err := files.ReadFile(name)
		if err != nil {
			panic("python: " + err.Error())
		}
		all[name] = data
	}
	return all
}
