package policy

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"retort/internal/core"
)

// AllowedCommand is a rule for a host command that programs may start: its name and the arguments that it accepts. If
// several rules have the same name, a call needs to match only one of them.
type AllowedCommand struct {
	Name string
	// Args lists patterns. Each argument must match one of them as a whole, and an empty list allows no arguments.
	//
	// In a pattern, * matches any characters except control characters such as line ends, and every other character
	// matches itself. An argument that begins with - is matched only by a pattern that begins with -. Therefore a
	// pattern for file names, for example, never allows an option.
	//
	// A pattern of the form /^…$/ is a regular expression for the whole argument, options included. It never matches
	// control characters.
	Args []string
}

// These bounds apply to the arguments of a command. They are stricter than the bounds of every operating system.
const (
	MaxArguments     = 256
	MaxArgument      = 16 << 10 // bytes of one
	MaxArgumentBytes = 64 << 10 // of all
)

// CommandNames returns the sorted names of the commands that all active policies allow programs to start.
func (v *PrincipalView) CommandNames() []string {
	first := true
	var names []string
	v.eachSight(func(s *principalSight) {
		allowed := s.commandNames()
		if first {
			names, first = allowed, false
		}
		names = slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(allowed, name) })
	})
	return names
}

func (s *principalSight) commandNames() []string {
	var names []string
	for _, c := range s.commands {
		if s.deniedCommand(c.Name) == "" {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// deniedCommand returns the rule that denies the command because of a permission level, or "" if none does.
func (s *principalSight) deniedCommand(name string) string {
	for _, l := range s.layers {
		switch {
		case slices.Contains(l.rules.DenyCommands, name):
			return l.levelRule() + ".commands.deny: " + name
		case l.rules.Commands == nil && l.level == ReadOnly:
			return l.prefix + "permissionLevel: " + string(ReadOnly)
		case l.rules.Commands != nil && !slices.Contains(l.rules.Commands, "*") && !slices.Contains(l.rules.Commands, name):
			return l.levelRule() + ".commands.allow"
		}
	}
	return ""
}

// CheckCommand returns an error if a program may not start a command with these arguments. The error gives the
// position of the rejected argument but never quotes it, because it may contain personal data.
func (v *PrincipalView) CheckCommand(name string, args []string) *core.Error {
	var refused *core.Error
	v.eachSight(func(s *principalSight) {
		if refused == nil {
			refused = s.checkCommand(name, args)
		}
	})
	return refused
}

func (s *principalSight) checkCommand(name string, args []string) *core.Error {
	allowed := s.commandNames()
	known := slices.ContainsFunc(s.commands, func(c AllowedCommand) bool { return c.Name == name })
	if rule := s.deniedCommand(name); rule != "" && (known || len(allowed) == 0) {
		return refusedCommand("the policy does not allow starting %s: %s", quoteName(name), rule).WithHint(
			"do without; only the person who runs Retort can change the rule",
		)
	}
	if len(allowed) == 0 {
		return refusedCommand("programs may not start commands here").WithHint(
			"do without commands, or ask the person who runs Retort to allow one: commands: [{command: …, args: […]}]",
		)
	}
	if !slices.Contains(allowed, name) {
		return refusedCommand("%s is not one of the commands that programs may start", quoteName(name)).
			WithHint("allowed commands: %s; only the person who runs Retort can add one (setting commands)", strings.Join(allowed, ", "))
	}
	if refused := checkArgumentBounds(name, args); refused != nil {
		return refused
	}
	farthest, patterns := -1, []string{}
	for _, c := range s.commands {
		if c.Name != name {
			continue
		}
		at := slices.IndexFunc(args, func(a string) bool { return !c.allowsArgument(a) })
		if at < 0 {
			return nil
		}
		farthest, patterns = max(farthest, at), append(patterns, c.Args...)
	}
	e := refusedCommand("the settings do not allow argument %d of %s", farthest+1, name)
	if len(patterns) == 0 {
		return e.WithHint("%s may not be given arguments; only the person who runs Retort can change that (setting commands)", name)
	}
	return e.WithHint(
		"each argument must match one of these: %s; only the person who runs Retort can change them (setting commands)",
		strings.Join(patterns, "  "),
	)
}

func refusedCommand(format string, args ...any) *core.Error {
	return core.Errorf(core.KindPolicy, "policy", format, args...)
}

// quoteName quotes a name from a program for use in a message.
func quoteName(name string) string {
	const most = 100
	return `"` + strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, name[:min(len(name), most)]) + `"`
}

// checkArgumentBounds returns an error for arguments that exceed the bounds or contain a NUL character, which no
// command could receive.
func checkArgumentBounds(name string, args []string) *core.Error {
	refuse := func(format string, a ...any) *core.Error {
		return core.Errorf(core.KindInvalidArguments, "policy", format, a...)
	}
	if len(args) > MaxArguments {
		return refuse("%s was given %d arguments; at most %d are allowed", name, len(args), MaxArguments)
	}
	size := 0
	for i, a := range args {
		size += len(a)
		switch {
		case strings.ContainsRune(a, 0):
			return refuse("argument %d of %s contains a NUL character", i+1, name)
		case len(a) > MaxArgument || size > MaxArgumentBytes:
			return refuse(
				"the arguments of %s are too long: one may have at most %d bytes, all together %d", name, MaxArgument,
				MaxArgumentBytes,
			).WithHint("pass long texts as stdin")
		}
	}
	return nil
}

// allowsArgument reports whether at least one of the rule's patterns matches an argument.
func (c AllowedCommand) allowsArgument(argument string) bool {
	return slices.ContainsFunc(c.Args, func(pattern string) bool {
		if inner, ok := anchoredExpression(pattern); ok {
			return matchesWhole(inner, argument)
		}
		return strings.HasPrefix(argument, "-") == strings.HasPrefix(pattern, "-") && likeArgument(pattern, argument)
	})
}

// anchoredExpression returns the regular expression inside a pattern of the form /^…$/, and false for other patterns.
func anchoredExpression(pattern string) (inner string, ok bool) {
	inner, begins := strings.CutPrefix(pattern, "/^")
	inner, ends := strings.CutSuffix(inner, "$/")
	return inner, begins && ends
}

// matchesWhole reports whether a regular expression matches the whole argument. It returns false for an argument with
// control characters.
func matchesWhole(inner, argument string) bool {
	whole, err := regexp.Compile(`\A(?:` + inner + `)\z`)
	return err == nil && whole.MatchString(argument) && !strings.ContainsFunc(argument, isControl)
}

// CheckArgument returns an error if an argument pattern is invalid. Only a regular expression can be invalid.
func CheckArgument(pattern string) error {
	inner, ok := anchoredExpression(pattern)
	if !ok {
		return nil
	}
	_, err := regexp.Compile(inner) // alone: a parenthesis that is not closed must not be closed by what is put around it
	return err
}

// likeArgument reports whether an argument matches a pattern with *. It never backtracks beyond the last *, so the
// time that it takes is at most proportional to the product of both lengths.
func likeArgument(pattern, text string) bool {
	p, t, star, kept := 0, 0, -1, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, kept = p, t
			p++
		case p < len(pattern) && pattern[p] == text[t]:
			p++
			t++
		case star >= 0 && !startsWithControl(text[kept:]):
			p, kept = star+1, kept+1
			t = kept
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// startsWithControl reports whether a text begins with a control character, which * in a pattern does not match.
func startsWithControl(text string) bool {
	for _, r := range text {
		return isControl(r)
	}
	return false
}

func isControl(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }

// validCommands returns an error for command rules that must be mistakes, for example if the name of a command is a
// path or a regular expression is invalid.
func validCommands(commands []AllowedCommand) *core.Error {
	for _, c := range commands {
		if c.Name == "" || c.Name != path.Base(c.Name) || strings.ContainsRune(c.Name, 0) || c.Name == "." || c.Name == ".." {
			return core.Errorf(core.KindInvalidArguments, "policy.new", "commands: %s is not a valid command name", quoteName(c.Name))
		}
		if slices.ContainsFunc(c.Args, func(a string) bool { return strings.ContainsRune(a, 0) }) {
			return core.Errorf(core.KindInvalidArguments, "policy.new", "commands: a pattern of %s contains a NUL character", c.Name)
		}
		for _, a := range c.Args {
			if err := CheckArgument(a); err != nil {
				return core.Errorf(
					core.KindInvalidArguments, "policy.new", "commands: a pattern of %s is not a valid regular expression: %v",
					c.Name, err,
				)
			}
		}
	}
	return nil
}
