package config

import (
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"retort/internal/core"
)

// Transport selects the protocol with which Retort connects to an upstream server.
type Transport string

// The transports. TransportAuto applies to an entry that has a URL and no type. It stands for Streamable HTTP, or
// for SSE if the server supports only that.
const (
	TransportAuto  Transport = "auto"
	TransportStdio Transport = "stdio"
	TransportHTTP  Transport = "http" // Streamable HTTP
	TransportSSE   Transport = "sse"
)

// Server describes one upstream server: the entry of a client's file with its variables expanded, joined with the
// settings for it.
type Server struct {
	Name      string
	Transport Transport
	Command   string            // program; stdio only
	Args      []string          // stdio only
	Env       map[string]string // variables added to the environment; stdio only
	Cwd       string            // absolute path of the working directory; stdio only
	URL       string            // all transports except stdio
	Headers   map[string]string // all transports except stdio
	Timeout   time.Duration     // of one call; 0: not set
	Disabled  bool
	OAuth     OAuthClient // all transports except stdio
	// Allow and Deny are patterns of tools that the entry itself allows and denies, in addition to the settings. A
	// nil Allow allows all.
	Allow, Deny []string
	Err         *core.Error // why the server cannot be started; nil: it can
	Category    string
	Reveal      []string // types of personal data that may be sent to it even if they came from other servers
	// Extra holds the fields of the entry that mean something only to the client, as strict JSON.
	Extra  map[string]json.RawMessage
	Source Position
}

// checkServerName adds a problem for a name that cannot be written in a program or a log.
func checkServerName(r *nodeReader, key *valueNode) {
	switch s := key.text; {
	case strings.TrimSpace(s) == "":
		r.addProblem(key, "", "a server's name is empty")
	case len(s) > 128:
		r.addProblem(key, "", "the server's name %q is longer than 128 bytes", shortenText(s))
	case strings.ContainsFunc(s, unicode.IsControl):
		r.addProblem(key, "", "the server's name %q contains control characters", shortenText(s))
	}
}

// serverEntry holds a client's entry while it is read. Clients spell some fields in several ways: the fields type and
// transport both set kind, and url, serverUrl and httpUrl all set URL.
type serverEntry struct {
	Server
	kind    string
	envFile string
}

func (s *serverEntry) fieldReaders() []fieldReader {
	return []fieldReader{
		{"type", "", readText(&s.kind)},
		{"transport", "", readText(&s.kind)},
		{"command", "", readText(&s.Command)},
		{"args", "", readList(&s.Args, readText)},
		{"env", "", readMap(&s.Env, checkEnvName, readText)},
		{"envFile", "", readFilePath(&s.envFile)},
		{"cwd", "", readPath(&s.Cwd)},
		{"url", "", readText(&s.URL)},
		{"serverUrl", "", readText(&s.URL)},
		{"httpUrl", "", readText(&s.URL)},
		{"headers", "", readMap(&s.Headers, checkHeaderName, readHeaderValue)},
		{"timeout", "", readDuration(&s.Timeout, time.Millisecond, 24*time.Hour)},
		{"disabled", "", readBool(&s.Disabled)},
		{"oauth", "", s.OAuth.entryReader()},
		{"auth", "", s.OAuth.entryReader()},
		{"allow", "", readPatterns(&s.Allow)},
		{"includeTools", "", readPatterns(&s.Allow)}, // Gemini CLI
		{"enabled_tools", "", readPatterns(&s.Allow)},
		{"available_tools", "", readPatterns(&s.Allow)},
		{"deny", "", readPatterns(&s.Deny)},
		{"excludeTools", "", readPatterns(&s.Deny)},  // Gemini CLI
		{"disabledTools", "", readPatterns(&s.Deny)}, // Windsurf
		{"disabled_tools", "", readPatterns(&s.Deny)},
	}
}

// readPatterns returns a reader that appends patterns of tool names to a list. An empty list in the file adds
// nothing, because clients treat it like a missing one.
func readPatterns(all *[]string) settingReader {
	list := readList(all, readPattern)
	return list.checkedBy(func(r *nodeReader, n *valueNode) {
		var found []string
		readList(&found, readPattern).read(r, n)
		*all = append(*all, found...)
	})
}

func checkEnvName(r *nodeReader, key *valueNode) {
	if key.text == "" || strings.ContainsAny(key.text, "=\x00") {
		r.addProblem(key, "", "%q is not a name for an environment variable", shortenText(key.text))
	}
}

func checkHeaderName(r *nodeReader, key *valueNode) {
	odd := func(c rune) bool {
		return c <= ' ' || c > '~' || strings.ContainsRune(`()<>@,;:\"/[]?={}`, c)
	}
	if key.text == "" || strings.ContainsFunc(key.text, odd) {
		r.addProblem(key, "", "%q is not a name for a header", shortenText(key.text))
	}
}

func readHeaderValue(v *string) settingReader {
	return secret(readText(v)).checkedBy(func(r *nodeReader, n *valueNode) {
		s, ok := r.scalarText(n)
		switch {
		case !ok:
		case strings.ContainsFunc(s, func(c rune) bool { return unicode.IsControl(c) && c != '\t' }):
			r.addProblem(n, "", "a header cannot contain control characters")
		default:
			*v = s
		}
	})
}

// readServer reads a server's entry in a client's file. Its problems become the Err of the Server and do not affect
// other servers. r collects these problems, so each entry needs a new nodeReader.
func readServer(r *nodeReader, key, value *valueNode) Server {
	var s serverEntry
	s.Name, s.Source = key.text, r.positionOf(key)
	fields := s.fieldReaders()
	readOpenObject(fields...).read(r, value)
	if len(r.problems) == 0 {
		s.chooseTransport(r, key)
	}
	if s.envFile != "" && len(r.problems) == 0 {
		s.readEnvFile(r, key)
	}
	for _, e := range value.entries {
		if !slices.ContainsFunc(fields, func(f fieldReader) bool { return f.key == e.key.text }) {
			if s.Extra == nil {
				s.Extra = map[string]json.RawMessage{}
			}
			s.Extra[e.key.text] = e.value.appendJSON(nil)
		}
	}
	if err := r.problems.sortedError(); err != nil {
		s.Err = &core.Error{
			Kind: core.KindUpstreamGone, Op: "config.server", Server: s.Name, Err: err,
			Message: fmt.Sprintf("the server %q cannot be started: %s", s.Name, core.AsError(err).Message),
			Hint:    "fix its entry in " + s.Source.File,
		}
	}
	return s.Server
}

// chooseTransport sets the transport and checks that the fields are consistent.
func (s *serverEntry) chooseTransport(r *nodeReader, key *valueNode) {
	switch strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(s.kind)) {
	case "":
		s.Transport = TransportStdio
		if s.Command == "" && s.URL != "" {
			s.Transport = TransportAuto
		}
	case "stdio", "local":
		s.Transport = TransportStdio
	case "http", "streamablehttp", "remote":
		s.Transport = TransportHTTP
	case "sse":
		s.Transport = TransportSSE
	default:
		r.addProblem(key, "valid transports are stdio, http and sse", "unknown transport %q", shortenText(s.kind))
		return
	}
	remote := s.Transport != TransportStdio
	switch {
	case s.Command != "" && s.URL != "":
		r.addProblem(key, "", "the entry has both a command and a url")
	case !remote && s.Command == "" && s.kind == "":
		r.addProblem(key, "", "the entry has neither a command nor a url")
	case !remote && s.Command == "":
		r.addProblem(key, "", "the command is missing")
	case remote && s.URL == "":
		r.addProblem(key, "", "the url is missing")
	case remote && !isHTTP(s.URL):
		r.addProblem(key, "", "the url is not an http or https address")
	}
	if !remote && s.Cwd == "" {
		s.Cwd = r.dir
	}
}

// IsRetort reports whether a command starts retort serve, directly or through a launcher.
func IsRetort(command string, args []string) bool {
	return isOurselves(Server{Command: command, Args: args})
}

// isOurselves reports whether s starts retort serve, directly or through a launcher such as npx retort serve or go
// run ./cmd/retort serve.
func isOurselves(s Server) bool {
	words := append([]string{s.Command}, s.Args...)
	for i, word := range words {
		base := strings.ToLower(path.Base(filepath.ToSlash(strings.ReplaceAll(word, `\`, "/"))))
		if strings.TrimSuffix(base, ".exe") != "retort" {
			continue
		}
		rest := words[i+1:]
		for len(rest) > 0 && strings.HasPrefix(rest[0], "-") {
			rest = rest[1:]
		}
		if slices.Contains(rest, "serve") {
			return true
		}
	}
	return false
}
