// Package doctor diagnoses why Retort or a server does not work and suggests how to fix it. It derives the cause of a
// server's failure from errors and the server's last output. It checks the machine directly.
package doctor

import (
	"strings"
	"time"
)

// FailureCause describes, as text, why something does not work and how to fix it.
type FailureCause struct {
	ID    string `json:"id"` // stable, such as command_not_found; "other" if the cause is not known
	Words string `json:"words"`
	Mend  string `json:"mend,omitempty"` // command that fixes it, or a sentence if no command does
}

// FailureSymptom describes the observed behaviour of a server that does not work. Its texts are shown to users, so
// they must not contain secrets.
type FailureSymptom struct {
	Server  string
	Command string // of a stdio server, with Args and Dir
	Args    []string
	Dir     string
	Path    string // PATH of the server's environment
	URL     string // of an HTTP server
	Login   bool   // whether retort auth login supports the server

	Err     error // error of the connection attempt
	Message string
	Hint    string
	Status  int      // HTTP status; 0: no response
	Stderr  []string // last lines of standard error
	Rubbish []string // lines on standard output that are not MCP messages
	Waited  time.Duration
	Pending bool // the server has not answered in the given time
}

// allText returns all texts of the symptom, for matching against patterns.
func (s FailureSymptom) allText() string {
	return strings.Join(append([]string{s.Message, s.Hint}, s.Stderr...), "\n")
}

// ExplainFailure returns the cause of a symptom. If no known cause matches, it returns the symptom's own message and
// hint.
func ExplainFailure(s FailureSymptom) FailureCause {
	for _, known := range []func(FailureSymptom) *FailureCause{explainConfiguration, explainRemote, explainStart, explainOutput, explainTimeout} {
		if c := known(s); c != nil {
			return *c
		}
	}
	return FailureCause{ID: "other", Words: s.Message, Mend: s.Hint}
}

// shellQuote quotes a word for a shell if necessary.
func shellQuote(word string) string {
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// commandLine returns the command line of a server as a user would type it. It omits the arguments if there are many.
func (s FailureSymptom) commandLine() string {
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
