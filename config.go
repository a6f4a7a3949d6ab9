package retort

import (
	"context"
	"io"
	"log/slog"
	"time"

	"retort/internal/core"
	"retort/internal/engine"
	"retort/internal/mcp/client"
)

// Config selects the servers and how programs are run. The zero Config uses the same files as the retort command.
type Config struct {
	Files []string // client files with MCP servers and at most one retort.yaml; if empty, the files that the README describes
	Dir   string   // folder in which configuration files are searched; if empty, the working directory
	Home  string   // data directory, with workspaces and the catalog; if empty, it is chosen next to the configuration files
	// Keys is the folder of the key that authenticates people's stored decisions. If empty, it is in the user's own
	// data folder. No server should have write access to it.
	Keys     string
	NoFiles  bool     // reads no configuration file: only Servers and Settings apply
	NoReload bool     // ignores changes of the files after Open; otherwise Serve and Listen apply them within a second
	Servers  []Server // in addition to those of the files; a name in both is an error
	Settings string   // text of a retort.yaml, in place of a file
	Guest    []string // command that is started inside a sandbox and calls Init first; if empty, the running program
	Limits   Limits   // fields that are not zero replace those of the settings
	Reserve  Reserve  // what is started before a program needs it
	// Log receives failures at level warn, executions, calls and connections at info, and searches at debug. It never
	// receives values of programs or tools. Its handler must not block. If Log is nil, nothing is logged.
	Log *slog.Logger
}

// Reserve selects what an engine starts in advance. It does not limit how many programs can run.
type Reserve int

const (
	ReserveMany Reserve = iota // starts several sandboxes and a compiler with the engine, and replaces sandboxes that are taken
	ReserveOne                 // starts one sandbox when the engine opens, and a compiler with the first program
	ReserveNone                // starts nothing before a program needs it
)

// Server describes one MCP server. Exactly one of Command, URL and Dial must be set. Zero durations and sizes mean
// the defaults. The settings, not this type, say how principals share the server and what it may ask of clients.
type Server struct {
	Name    string
	Command string            // program started as a child process, with JSON lines over its standard streams
	Args    []string          // arguments of Command
	Env     map[string]string // variables added to a small safe part of this process's environment
	Dir     string            // working directory; this process's own if empty
	URL     string
	Headers map[string]string // sent to the origin of URL and nowhere else

	Dial func(ctx context.Context) (io.ReadWriteCloser, error) // connects to a server in this process, with JSON lines over the stream

	// Transport is "stdio", "http" (Streamable HTTP, or legacy SSE if the server refuses it) or "sse". If empty, it
	// is chosen by which of Command, URL and Dial is set.
	Transport string

	ConnectTimeout time.Duration // default 60 s: the first npx of a package downloads it
	CallTimeout    time.Duration // for one call or one listing of tools; default 60 s
	MaxMessage     int64         // bytes of one message from the server that may be in memory; default 64 MiB
}

// Limits bounds one execution. A field that is zero means the limit in the settings, never "unlimited".
type Limits struct {
	Timeout     time.Duration // active time, without the time spent waiting for a person
	Computing   time.Duration // part of Timeout for the program itself, without waiting for tools or sleeping
	Memory      int64         // bytes of the program's heap
	CPU         float64       // cores
	Disk        int64         // bytes of workspace and temporary files
	Processes   int
	Output      int64 // bytes of console output
	Result      int64 // bytes of the returned value's JSON
	ToolCalls   int
	Concurrency int // concurrent tool calls
}

func (c Config) internal() engine.Config {
	return engine.Config{
		Files: c.Files, Dir: c.Dir, Home: c.Home, Keys: c.Keys, NoFiles: c.NoFiles, NoReload: c.NoReload,
		Servers: convertAll(c.Servers, Server.internal), Settings: c.Settings, Guest: c.Guest,
		Limits: core.Limits(c.Limits), Reserve: engine.Reserve(c.Reserve), Log: c.Log,
	}
}

func (s Server) internal() client.ServerSpec {
	return client.ServerSpec{
		Name: s.Name, Command: s.Command, Args: s.Args, Env: s.Env, Dir: s.Dir, URL: s.URL, Headers: s.Headers,
		Dial: s.Dial, Transport: s.Transport, ConnectTimeout: s.ConnectTimeout, CallTimeout: s.CallTimeout, MaxMessage: s.MaxMessage,
	}
}

// convertAll applies convert to every element of all and returns the results in order.
func convertAll[A, B any](all []A, convert func(A) B) []B {
	converted := make([]B, len(all))
	for i, a := range all {
		converted[i] = convert(a)
	}
	return converted
}
