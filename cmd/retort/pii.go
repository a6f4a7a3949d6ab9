package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"retort/internal/admin"
	"retort/internal/base/seal"
	"retort/internal/core"
	"retort/internal/privacy/pii"
	"retort/internal/privacy/redact"
)

// maxTestedFile bounds the size of a file for "retort pii test".
const maxTestedFile = 64 << 20

// personalCommands defines the command "retort pii" and its subcommands.
type personalCommands struct{ *app }

func (a personalCommands) command() *cobra.Command {
	c := &cobra.Command{Use: "pii", Short: "See which personal data Retort finds in a file, and add words that it misses"}
	c.AddCommand(a.testCommand(), a.learnCommand())
	return c
}

func (a personalCommands) testCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "test [FILE]", Short: "Print the personal data that Retort finds in a file, and the reason for each value",
		Args: cobra.MaximumNArgs(1),
		Long: `The command prints the personal data in a text or JSON file as Retort would find it in the result of a
tool, with your settings. Without FILE, it reads standard input. The output contains the real values. The
command stores and sends nothing. The column MODE says who cannot see the value:

  sealed  programs and the model cannot see it
  border  the model cannot see it, but programs can
  off     Retort does not hide it`,
		Example: `  retort pii test export.json
  retort pii test --json < notes.txt`,
		RunE: func(_ *cobra.Command, args []string) error {
			name, text, err := a.readTested(args)
			if err != nil {
				return err
			}
			_, done := a.startProgress("searching for personal data")
			found, err := admin.FindPersonalData(a.retortConfig(), name, text)
			done()
			if err != nil {
				return err
			}
			if a.asJSON {
				return a.printJSON(map[string]any{"values": found})
			}
			return a.printPersonal(found)
		},
	}
	offerJSON(c)
	return c
}

// readTested returns the name and the content of the file in the arguments, or of standard input.
func (a personalCommands) readTested(args []string) (name string, text []byte, err error) {
	if len(args) == 1 && args[0] != "-" {
		name = args[0]
		text, err = seal.ReadFile(name, maxTestedFile)
	} else {
		name = "standard input"
		if text, err = io.ReadAll(io.LimitReader(a.stdin, maxTestedFile+1)); err == nil && len(text) > maxTestedFile {
			err = fmt.Errorf("it is larger than %d MB", maxTestedFile>>20)
		}
	}
	if err != nil {
		return "", nil, core.Errorf(core.KindInvalidArguments, "pii.test", "%s cannot be read: %w", name, err)
	}
	return name, text, nil
}

func (a personalCommands) printPersonal(found []admin.PersonalValue) error {
	counts := map[pii.Type]int{}
	visible := 0
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	if len(found) > 0 {
		fmt.Fprintln(w, "LINE\tCOLUMN\tTYPE\tMODE\tVALUE\tREASON")
	}
	for _, v := range found {
		counts[v.Type]++
		if v.Mode == redact.Off {
			visible++
		}
		fmt.Fprintf(w, "%d\t%d\t%s\t%s\t%s\t%s\n", v.Line, v.Column, v.Type, v.Mode, replaceControls(v.Value), replaceControls(describeReason(v)))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	var types []string
	for _, t := range slices.Sorted(maps.Keys(counts)) {
		types = append(types, fmt.Sprintf("%s: %d", t, counts[t]))
	}
	summary := ""
	if len(types) > 0 {
		summary = " (" + strings.Join(types, ", ") + ")"
	}
	fmt.Fprintf(a.stderr, "%d values found%s\n", len(found), summary)
	if visible > 0 {
		fmt.Fprintf(a.stderr, "%d of them have a type with the mode off, so nothing hides them\n", visible)
	}
	if len(found) == 0 {
		fmt.Fprintln(a.stderr, "if the file has personal data, add words with retort pii learn, or field names with the setting pii.keys")
	}
	return nil
}

// describeReason returns the reason for which a value counts as personal data, as a short text.
func describeReason(v admin.PersonalValue) string {
	switch v.Reason {
	case pii.FoundByWords:
		return "a word of your settings"
	case pii.FoundByPattern:
		return "matches the pattern " + v.Evidence
	case pii.FoundByKey:
		return "the key " + v.Evidence
	case pii.FoundByContext:
		if v.Evidence == "" {
			return "the text of its line"
		}
		return `the words beside it: "` + v.Evidence + `"`
	case pii.FoundInDocument:
		return "the rest of the file, such as the heading of a column"
	}
	switch v.Type {
	case pii.Name, pii.Company, pii.Address:
		return "its words"
	}
	return "its form"
}

func (a personalCommands) learnCommand() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use: "learn TYPE WORD...", Short: "Add words and phrases that Retort always hides", Args: cobra.MinimumNArgs(2),
		Long: `The command adds words and phrases to the setting pii.words in the file retort.yaml of this folder. Retort
then hides them wherever they occur. TYPE is a type of personal data, such as name or company, or a type
in the setting pii.types. A word has at least four letters. The words stay readable in the file. A running
Retort reads the file again.`,
		Example: `  retort pii learn company "Blue Bird" Orionis
  retort pii learn name "Kwame Mensah" --file ~/.config/retort/retort.yaml`,
		RunE: func(_ *cobra.Command, args []string) error {
			added, err := admin.LearnPersonalWords(file, pii.Type(args[0]), args[1:])
			if err != nil {
				return err
			}
			if a.asJSON {
				return a.printJSON(map[string]any{"file": file, "added": append([]string{}, added...)})
			}
			if len(added) == 0 {
				fmt.Fprintf(a.stderr, "%s already lists these words, so nothing was changed\n", file)
				return nil
			}
			fmt.Fprintf(a.stderr, "added to pii.words.%s in %s: %s\n", args[0], file, replaceControls(strings.Join(added, ", ")))
			return nil
		},
	}
	c.Flags().StringVar(&file, "file", settingsFile, "file of settings to change")
	offerJSON(c)
	return c
}
