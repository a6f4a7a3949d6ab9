// Command stylestats measures the style of a tree of Go files: names, comments, sizes and line widths. It ignores
// tests, generated code, and the folders vendor, testdata and node_modules.
//
//	go run ./scripts/stylestats [-sample N -seed S | -repeated] [DIRECTORY...]
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "stylestats:", err)
		os.Exit(1)
	}
}

func run(args []string, w io.Writer) error {
	flags := flag.NewFlagSet("stylestats", flag.ContinueOnError)
	sample := flags.Int("sample", 0, "print this many doc comments, drawn at random, instead of figures")
	seed := flags.Uint64("seed", 1, "the seed of -sample: the same seed draws the same comments of the same tree")
	repeated := flags.Bool("repeated", false, "list the names of functions and types in more than 3 packages instead of figures")
	if err := flags.Parse(args); err != nil {
		return err
	}
	roots := flags.Args()
	if len(roots) == 0 {
		roots = []string{"."}
	}
	tree, err := readTree(roots)
	if err != nil {
		return err
	}
	switch {
	case *sample > 0:
		return printSample(w, tree, *sample, *seed)
	case *repeated:
		return printRepeated(w, tree)
	}
	return printFigures(w, tree)
}
