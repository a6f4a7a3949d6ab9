package config

import (
	"path"
	"strings"

	"retort/internal/policy"
)

// Command describes a program installed on this machine that sandboxed programs may start, and the arguments that
// it accepts. Each start runs in its own sandbox.
type Command struct {
	Command string   // name in PATH, or absolute path
	Args    []string // patterns, one of which each argument must match; empty: no arguments are allowed
}

func (c *Command) reader() settingReader {
	whole := readObject(
		fieldReader{"command", "Name or absolute path of the program.", readChecked(&c.Command, "the name or absolute path of a program", func(s string) bool { return s != "" && !strings.ContainsRune(s, 0) })},
		fieldReader{"args", "Patterns, one of which each argument must match: text with *, or a regular expression /^…$/. Without patterns, no argument is allowed. A pattern with * does not match an argument that begins with -, unless it begins with - itself.", readList(&c.Args, readArgumentPattern)},
	)
	whole.schema = whole.schema.withRequired("command")
	return whole.checkedBy(func(r *nodeReader, v *valueNode) {
		whole.read(r, v)
		if v.kind == objectKind && v.findEntry("command") == nil {
			r.addProblem(v, "", "the rule does not name a command")
		}
	})
}

func readArgumentPattern(s *string) settingReader {
	return readChecked(
		s, "the allowed form of an argument, perhaps with *, or a regular expression /^…$/",
		func(s string) bool { return !strings.ContainsRune(s, 0) && policy.CheckArgument(s) == nil },
	)
}

// baseName returns the name under which programs call the command: the base name of its path.
func (c Command) baseName() string { return path.Base(c.Command) }
