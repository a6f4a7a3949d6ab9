package config

import (
	"path"
	"strings"

	"retort/internal/policy"
)

// Command describes a program installed on this machine that sandboxed programs may start, and the arguments it
// accepts. Each start runs in a sandbox of its own.
type Command struct {
	Command string   // a name, or an absolute path
	Args    []string // patterns, of which each argument matches one; none allows no argument
}

func (c *Command) read() into {
	whole := object(
		field{
			"command",
			checked(&c.Command, "the name or absolute path of a program", func(s string) bool { return s != "" && !strings.ContainsRune(s, 0) }),
		},
		field{"args", list(&c.Args, func(s *string) into {
			return checked(
				s, "what an argument may be, perhaps with *, or a regular expression /^…$/",
				func(s string) bool { return !strings.ContainsRune(s, 0) && policy.CheckArgument(s) == nil },
			)
		})},
	)
	return func(r *reader, v *node) {
		whole(r, v)
		if v.kind == objectKind && v.find("command") == nil {
			r.fail(v, "", "the rule names no command")
		}
	}
}

// name returns the name under which programs call the command: the base name of its path.
func (c Command) name() string { return path.Base(c.Command) }
