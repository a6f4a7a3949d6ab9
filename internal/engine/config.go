package engine

import (
	"log/slog"
	"os"
	"time"

	"retort/internal/config"
	"retort/internal/core"
)

// Config selects the servers and how programs are run. The zero Config reads the same files as the command.
type Config struct {
	// Files lists client files with MCP servers and at most one retort.yaml. The README describes which files are
	// read if the list is empty.
	Files []string
	// Dir is the directory in which configuration files are searched; if empty, the working directory.
	Dir string
	// Home is the data directory, which stores workspaces and the catalog; if empty, it is chosen next to the
	// configuration files.
	Home string
	// Keys is the folder of the key that seals the approvals; if empty, it is in the user's own data
	// folder. No server should have write access to it.
	Keys string
	// NoFiles makes the engine read no configuration file: only Servers and Settings apply.
	NoFiles bool
	// NoReload makes Serve and Listen ignore changes of the files after Open. Otherwise they apply changes within a
	// second.
	NoReload bool
	// Servers lists servers in addition to those of the files. A name in both is an error.
	Servers []Server
	// OnlyServers, if not nil, lists the names of the servers to use; other servers in the files are ignored.
	OnlyServers []string
	// Settings is the text of a retort.yaml. It replaces the text of a retort.yaml that is read from a file.
	Settings string
	// Guest is the command that is started inside a sandbox. Its program must call Init first. If empty, it is the
	// running program.
	Guest []string
	// Limits overrides the limits of the settings in the fields that are not zero.
	Limits Limits
	// Reserve selects what the engine starts before a program needs it.
	Reserve Reserve
	// internet, in tests, replaces the network for requests of programs.
	internet internet
	// spoolAbove, in tests, is the size in bytes above which a result is written to a file. 0 means the default of
	// package client.
	spoolAbove int64
	// exitPatience, in tests, sets client.Options.ExitPatience.
	exitPatience time.Duration
	// Log receives the engine's log: failures at level warn; executions, calls and connections at info; searches at
	// debug. It contains no values of programs and tools. Its handler must not block. If Log is nil, nothing is
	// logged.
	Log *slog.Logger
}

// Reserve selects the sandboxes and compilers that an engine starts in advance, so that programs start faster. It
// does not limit how many programs can run.
type Reserve int

const (
	// ReserveMany starts several sandboxes and a compiler when the engine opens, and another sandbox whenever a
	// program takes one.
	ReserveMany Reserve = iota
	ReserveOne          // starts one sandbox when the engine opens, and a compiler with the first program
	ReserveNone         // starts nothing before a program needs it
)

func (c Config) loadConfig() (*config.Config, error) { return c.readConfig(nil, false) }

// readConfig reads the configuration. It passes note and again to config.Load as the options with these names. again
// says that the configuration was read before and is now reloaded.
func (c Config) readConfig(note config.NoteFunc, again bool) (*config.Config, error) {
	dir := c.Dir
	if dir == "" {
		var err error
		if dir, err = os.Getwd(); err != nil {
			return nil, core.Errorf(core.KindInternal, "retort.open", "%w", err)
		}
	}
	if c.NoFiles {
		settings, err := config.ParseSettings("settings", dir, []byte(c.Settings), os.LookupEnv)
		return &config.Config{Settings: settings, Home: c.Home}, err
	}
	userHome, _ := os.UserHomeDir()
	loaded, err := config.Load(config.Options{
		Files: c.Files, Dir: dir, Home: c.Home, UserHome: userHome, Getenv: os.LookupEnv, Note: note, Again: again,
	})
	if err != nil || c.Settings == "" {
		return loaded, err
	}
	loaded.Settings, err = config.ParseSettings("settings", dir, []byte(c.Settings), os.LookupEnv)
	loaded.ApplyClientRules()
	return loaded, err
}
