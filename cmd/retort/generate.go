package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"retort"
	"retort/internal/pipeline/emit"
	"retort/internal/run"
)

func (a *app) generate() *cobra.Command {
	var out, lang string
	c := &cobra.Command{
		Use: "generate --out DIR", Short: "Write the wrapper files of all tools", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := language(lang, "")
			if err != nil {
				return err
			}
			return a.with(cmd, func(e *retort.Engine) error {
				a.settle(cmd.Context(), e, time.Minute)
				return a.writeTree(out, l, e)
			})
		},
	}
	c.Flags().StringVar(&out, "out", "", "folder to write to")
	c.Flags().StringVar(&lang, "lang", "ts", "ts or py")
	_ = c.MarkFlagRequired("out")
	return c
}

func (a *app) writeTree(out string, lang run.Language, e *retort.Engine) error {
	tools := e.Toolset()
	if err := os.MkdirAll(out, 0o755); err != nil {
		return run.Errorf(run.KindInvalidArguments, "generate", "%w", err)
	}
	root, err := os.OpenRoot(out)
	if err != nil {
		return run.Errorf(run.KindInvalidArguments, "generate", "%w", err)
	}
	defer root.Close()
	files := 0
	for name, text := range emit.Files(tools, lang) {
		if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return run.Errorf(run.KindInvalidArguments, "generate", "%w", err)
		}
		if err := root.WriteFile(name, []byte(e.Wrapped(lang, name, text)), 0o644); err != nil {
			return run.Errorf(run.KindInvalidArguments, "generate", "%w", err)
		}
		files++
	}
	fmt.Fprintf(a.stdout, "%d files for %d tools of %d servers in %s\n", files, tools.Count(), len(tools.Servers), out)
	return nil
}
