// Package python holds the guest for Python: plain files that python3 -I -S -B
// runs inside a sandbox, which needs nothing but the interpreter's own library.
// main.py is the one to be started, with the frames of package wire on its
// standard input and output and an empty environment; the others lie beside it.
//
// # Programs
//
// A program's value is what a top-level return gives; else result, if it is
// assigned; else the trailing expression; else what main gives, or the only
// function of a program that does nothing else, if nothing calls it. Top-level
// await works. The tools of a server are functions of a module of its name, which
// is a global or imported from servers. Called plainly, a tool blocks and gives
// its value; awaited, gathered or made a task, it runs beside the others.
//
// # Values
//
// See values.py. Integers have all their digits in either direction.
//
// # When a program is over
//
// A program is over when its last statement is done, when it raised, or when it
// waits for something that never happens. Tasks and calls that it did not await
// are given a second while calls are under way. What they raise, and nobody looks
// at, ends the program with an error. Threads are not waited for.
package python

import (
	"embed"
	"io/fs"
)

//go:embed *.py
var files embed.FS

// Main is the name of the file that the interpreter runs.
const Main = "main.py"

// Files returns the guest's files by name. They are placed in one folder, which the guest only reads.
func Files() map[string][]byte {
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
