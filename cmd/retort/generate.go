package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"retort/internal/core"
	"retort/internal/engine"
	"retort/internal/pipeline/bindings"
)

// generateCommands defines the command "retort generate".
type generateCommands struct{ *app }

func (a generateCommands) command() *cobra.Command {
	var out, lang string
	c := &cobra.Command{
		Use: "generate --out DIR", Short: "Write files with a typed function for each tool", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := parseLanguage(lang, "")
			if err != nil {
				return err
			}
			return a.withEngine(cmd, func(e *engine.Engine) error {
				a.waitForServers(cmd.Context(), e, time.Minute)
				return a.writeTree(out, l, e)
			})
		},
	}
	c.Flags().StringVar(&out, "out", "", "folder to which the command writes the files")
	c.Flags().StringVar(&lang, "lang", "ts", "language of the definitions: ts or py")
	_ = c.MarkFlagRequired("out")
	return c
}

func (a generateCommands) writeTree(out string, lang core.Language, e *engine.Engine) error {
	tools := e.Toolset()
	root, err := openFolder(out)
	if err != nil {
		return core.Errorf(core.KindInvalidArguments, "generate", "%w", err)
	}
	defer root.Close()
	files := 0
	for name, text := range bindings.WrapperFiles(tools, lang) {
		text = stampIndex(root, name, e.RenderWrapper(lang, name, text), time.Now())
		if err := writeInFolder(root, name, []byte(text)); err != nil {
			return core.Errorf(core.KindInvalidArguments, "generate", "%w", err)
		}
		files++
	}
	fmt.Fprintf(a.stdout, "%d files for %d tools of %d servers in %s\n", files, tools.CountTools(), len(tools.Servers), out)
	return nil
}

// openFolder opens a folder to write to, and creates it if it is missing.
func openFolder(out string) (*os.Root, error) {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return nil, err
	}
	return os.OpenRoot(out)
}

// writeInFolder writes a file below a folder. It creates missing folders on the file's path.
func writeInFolder(root *os.Root, name string, text []byte) error {
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return root.WriteFile(name, text, 0o644)
}

// stampIndex adds a first line with the time of generation to the text of an index file. If the existing file differs
// only in that line, stampIndex returns the existing text. Generating again then changes nothing. stampIndex returns
// the text of other files unchanged.
func stampIndex(root *os.Root, name, text string, now time.Time) string {
	comment := map[string]string{"index.ts": "//", "__init__.py": "#"}[filepath.Base(name)]
	if comment == "" {
		return text
	}
	begin := comment + " Generated at: "
	if old, err := root.ReadFile(name); err == nil {
		if first, rest, ok := strings.Cut(string(old), "\n"); ok && strings.HasPrefix(first, begin) && rest == text {
			return string(old)
		}
	}
	return begin + now.UTC().Format(time.RFC3339) + "\n" + text
}
