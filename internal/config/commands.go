package config

// Command is a program of the machine's that programs could start in their sandbox, with
// arguments of one of some patterns. It is read, so that asking for it is refused with the
// reason, and not taken for a mistake.
type Command struct {
	Command string
	Args    []string
}

func (c *Command) read() into {
	return object(field{"command", command(&c.Command)}, field{"args", list(&c.Args, text)})
}
