package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"retort/internal/config"
	"retort/internal/core"
	"retort/internal/devel/demo"
)

// initCommands defines the command "retort init".
type initCommands struct{ *app }

// Names of the files that retort init writes.
const (
	settingsFile = "retort.yaml"
	schemaFile   = "retort.schema.json"
	serversFile  = ".mcp.json"
)

func (a initCommands) command() *cobra.Command {
	var sample bool
	c := &cobra.Command{
		Use: "init", Short: "Write a file retort.yaml with the main settings, and a schema for editors", Args: cobra.NoArgs,
		Long: `The command writes the file retort.yaml into this folder. The file explains each setting in a comment. All
settings in the file are commented out, so the defaults apply until you change a setting. The command also
writes the file retort.schema.json, with which editors complete and check the settings. With --demo, the
command also writes a file .mcp.json with the sample servers. If one of these files already exists, the
command writes nothing.`,
		Example: "  retort init         settings for the servers of this folder or client\n  retort init --demo  sample servers to try Retort with",
		RunE: func(*cobra.Command, []string) error {
			files, err := initialFiles(sample)
			if err != nil {
				return err
			}
			if err := refuseExisting(files); err != nil {
				return err
			}
			for _, f := range files {
				if err := writeNew(f); err != nil {
					return err
				}
				fmt.Fprintln(a.stdout, "wrote", f.name)
			}
			a.printFirstSteps(sample)
			return nil
		},
	}
	c.Flags().BoolVar(&sample, "demo", false, "also write a file .mcp.json with sample servers")
	return c
}

type initialFile struct {
	name    string
	content []byte
}

func initialFiles(sample bool) ([]initialFile, error) {
	schema, err := config.SettingsSchema()
	if err != nil {
		return nil, core.Errorf(core.KindInternal, "init", "%w", err)
	}
	files := []initialFile{{settingsFile, []byte(config.StarterSettings(schemaFile))}, {schemaFile, append(schema, '\n')}}
	if !sample {
		return files, nil
	}
	servers := map[string]any{}
	for _, name := range demo.ServerNames() {
		servers[name] = map[string]any{"command": retortCommand(false), "args": []string{"demo-server", name}}
	}
	text, err := json.MarshalIndent(map[string]any{"mcpServers": servers}, "", "  ")
	if err != nil {
		return nil, core.Errorf(core.KindInternal, "init", "%w", err)
	}
	return append(files, initialFile{serversFile, append(text, '\n')}), nil
}

// refuseExisting returns an error if one of the files already exists. The command then writes all files or none.
func refuseExisting(files []initialFile) error {
	var found []string
	for _, f := range files {
		if _, err := os.Lstat(f.name); !errors.Is(err, fs.ErrNotExist) {
			found = append(found, f.name)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return core.Errorf(core.KindInvalidArguments, "init", "there already is %s; nothing was written", strings.Join(found, " and ")).
		WithHint("to check the configuration, run retort config check; to start over, move the files away first")
}

func writeNew(f initialFile) error {
	file, err := os.OpenFile(filepath.Clean(f.name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err == nil {
		_, err = file.Write(f.content)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		return core.Errorf(core.KindInvalidArguments, "init", "could not write %s: %w", f.name, err)
	}
	return nil
}

func (a initCommands) printFirstSteps(sample bool) {
	if sample {
		fmt.Fprintf(a.stderr, "try: retort search \"read rows of a spreadsheet\"\n"+
			"     retort run -e 'const { rows } = await sheets.readRows({ spreadsheetId: \"orders-2026\", limit: 100 }); return rows.length'\n")
		return
	}
	if _, err := os.Stat(serversFile); err == nil {
		fmt.Fprintln(a.stderr, "next: retort tools shows the servers of .mcp.json and what they cost")
		return
	}
	fmt.Fprintln(a.stderr, "next: retort install CLIENT takes over the servers of a client such as cursor or claude-code")
}
