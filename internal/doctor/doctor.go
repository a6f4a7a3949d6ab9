// Package doctor knows why things do not work and what mends them: servers by their
// errors and last words, the machine by looking at it.
package doctor

import (
	"strings"
	"time"
)

// Cause describes why something does not work, in words, and what a person does about it.
type Cause struct {
	ID    string `json:"id"` // stable, such as command_not_found; other if the cause is not known
	Words string `json:"words"`
	Mend  string `json:"mend,omitempty"` // a command, or a sentence where no command does it
}

// Symptom describes what is known of a server that does not work. Texts are shown to people, so they have no secrets.
type Symptom struct {
	Server  string
	Command string // of a stdio server, with Args and Dir
	Args    []string
	Dir     string
	Path    string // the PATH that the server sees
	URL     string // of another one
	Login   bool   // it is one that retort auth login can log in to

	Err     error // what came of connecting, with all that it wraps
	Message string
	Hint    string
	Status  int      // of HTTP, 0 if there was no answer
	Stderr  []string // its last lines
	Rubbish []string // lines on standard output that are no messages
	Waited  time.Duration
	Pending bool // it had not answered when patience was over
}

// allText is everything that was said, for patterns.
func (s Symptom) allText() string {
	return strings.Join(append([]string{s.Message, s.Hint}, s.Stderr...), "\n")
}

// Explain finds the cause. There is always one: what nobody knows is told as it was said.
func Explain(s Symptom) Cause {
	for _, known := range []func(Symptom) *Cause{explainConfiguration, explainRemote, explainStart, explainOutput, explainTimeout} {
		if c := known(s); c != nil {
			return *c
		}
	}
	return Cause{ID: "other", Words: s.Message, Mend: s.Hint}
}

// shellQuote returns a word as a shell reads it.
func shellQuote(word string) string {
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// commandLine returns the command line of a server as a person would type it, without its arguments if they are many.
func (s Symptom) commandLine() string {
	words := []string{shellQuote(s.Command)}
	for _, a := range s.Args {
		words = append(words, shellQuote(a))
	}
	line := strings.Join(words, " ")
	if s.Dir != "" {
		line = "cd " + shellQuote(s.Dir) + " && " + line
	}
	return line
}
