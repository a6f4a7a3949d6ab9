package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"retort/internal/devel/testenv"
)

var updateDocs = flag.Bool("update", false, "write docs/reference/cli.md from the commands")

const (
	repository = "../.." // root of the repository, relative to this folder
	cliPage    = repository + "/docs/reference/cli.md"
)

// TestCommandReference checks that docs/reference/cli.md agrees with the commands and their flags. With -update it
// writes the page.
func TestCommandReference(t *testing.T) {
	want := cliReference(documentedRoot())
	if *updateDocs {
		if err := os.WriteFile(cliPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(cliPage)
	if err != nil || string(got) != want {
		t.Errorf("%v: %s differs from the commands. Write it: go test ./cmd/retort -run TestCommandReference -update", err, cliPage)
	}
}

func documentedRoot() *cobra.Command {
	root := (&app{}).rootCommand()
	root.InitDefaultHelpFlag()
	root.InitDefaultVersionFlag()
	root.InitDefaultCompletionCmd("")
	return root
}

// cliReference returns the text of the reference page, which describes all commands that help shows.
func cliReference(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString("# Commands and flags\n\n<!-- Written by: go test ./cmd/retort -run TestCommandReference -update -->\n")
	b.WriteString("\nExit codes are in [Use it in scripts](../guides/scripting.md).\n\n## Flags of every command\n\n" + flagTable(root.PersistentFlags()))
	for _, c := range documentedCommands(root) {
		fmt.Fprintf(&b, "\n## `%s`\n\n%s.\n", c.CommandPath(), strings.TrimSuffix(c.Short, "."))
		if c.Runnable() {
			fmt.Fprintf(&b, "\n```\n%s\n```\n", c.UseLine())
		}
		if long := strings.TrimSpace(c.Long); long != "" && long != c.Short {
			fmt.Fprintf(&b, "\n```\n%s\n```\n", long)
		}
		if flags := flagTable(c.LocalNonPersistentFlags()); flags != "" {
			b.WriteString("\n" + flags)
		}
		if c.Example != "" {
			fmt.Fprintf(&b, "\n```\n%s\n```\n", strings.Trim(c.Example, "\n"))
		}
	}
	return b.String()
}

// documentedCommands returns all subcommands of c that help shows, including their own subcommands, in the order of
// the help text. It leaves out "help" and the subcommands of "completion", because Cobra writes their texts.
func documentedCommands(c *cobra.Command) (all []*cobra.Command) {
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() || sub.Name() == "help" || c.Name() == "completion" {
			continue
		}
		sub.InitDefaultHelpFlag()
		all = append(append(all, sub), documentedCommands(sub)...)
	}
	return all
}

func flagTable(flags *pflag.FlagSet) string {
	var b strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		value, usage := pflag.UnquoteUsage(f)
		standard := ""
		if f.Value.Type() != "bool" && f.DefValue != "" && f.DefValue != "[]" && f.DefValue != "0" {
			standard = "`" + f.DefValue + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", strings.TrimSpace(name+" "+value), tableCell(usage), standard)
	})
	if b.Len() == 0 {
		return ""
	}
	return "| flag | meaning | default |\n|---|---|---|\n" + b.String()
}

func tableCell(s string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ").Replace(s)
}

// TestPagesNameRealCommands checks that each command and flag in the code of a page exists.
func TestPagesNameRealCommands(t *testing.T) {
	found := 0
	for _, page := range userPages(t) {
		for _, words := range namedCommands(readDoc(t, page)) {
			found++
			if problem := commandProblem(words); problem != "" {
				t.Errorf("%s: retort %s: %s", page, strings.Join(words, " "), problem)
			}
		}
	}
	if found < 150 {
		t.Errorf("only %d commands were found", found)
	}
	for _, wrong := range []string{"serv", "audit queries", "run --dryrun x.ts", "tools --all"} {
		if commandProblem(strings.Fields(wrong)) == "" {
			t.Errorf("nothing was found in %q", wrong)
		}
	}
}

var (
	shellBlock    = regexp.MustCompile("(?m)^```(?:console|sh)?\\n((?:.*\\n)*?)^```$")
	spannedRetort = regexp.MustCompile("`retort ([^`\n]+)`")
	lineRetort    = regexp.MustCompile(`(?m)^(?:\$ )?retort +([^'"\n#]+)`)
)

// namedCommands returns the retort commands in the code of a page. For each command it returns the arguments up to the
// first quoted one.
func namedCommands(page string) (all [][]string) {
	texts := []string{}
	for _, m := range spannedRetort.FindAllStringSubmatch(page, -1) {
		texts = append(texts, m[1])
	}
	for _, block := range shellBlock.FindAllStringSubmatch(page, -1) {
		for _, m := range lineRetort.FindAllStringSubmatch(block[1], -1) {
			texts = append(texts, m[1])
		}
	}
	for _, text := range texts {
		text, _, _ = strings.Cut(text, "'")
		text, _, _ = strings.Cut(text, "\"")
		if words := strings.Fields(text); len(words) > 0 {
			all = append(all, words)
		}
	}
	return all
}

// commandProblem returns text that names the first command or flag of a command line that does not exist. It returns
// "" if all of them exist.
func commandProblem(words []string) string {
	c, value := documentedRoot(), false
	for _, word := range words {
		if value || strings.HasPrefix(word, "[") && !strings.HasPrefix(word, "[--") {
			value = false
			continue
		}
		word = strings.Trim(word, "[],.…")
		switch {
		case strings.HasPrefix(word, "--"):
			name, _, given := strings.Cut(word[2:], "=")
			f := c.Flag(name)
			if f == nil && name != "help" {
				return "there is no flag --" + name
			}
			value = f != nil && !given && f.NoOptDefVal == ""
		case c.HasSubCommands() && word != "" && word == strings.ToLower(word) && !strings.ContainsAny(word, "-.|/"):
			next, _, err := c.Find([]string{word})
			if err != nil || next == c {
				return "there is no command " + word
			}
			c = next
		}
	}
	return ""
}

// TestConsoleBlocks checks that the commands in the console blocks of the README and of docs/start print what these
// pages show. In a block, "…" matches any text within a line, and a line "…" matches any lines. A comment before a
// block names the folder in which the block is run, or the reason why it is not run.
func TestConsoleBlocks(t *testing.T) {
	ran, skipped := 0, 0
	for _, page := range userPages(t) {
		text := readDoc(t, page)
		blocks := consoleBlock.FindAllStringSubmatch(text, -1)
		if len(blocks) != strings.Count(text, "```console\n") {
			t.Errorf("%s: a console block has no comment \"run: FOLDER\" or \"not run: REASON\" before it", page)
		}
		for _, m := range blocks {
			if m[1] == "not run" {
				skipped++
				continue
			}
			ran++
			runConsole(t, page, filepath.Join(repository, m[2]), m[3])
		}
	}
	if ran < 1 || skipped > 3 {
		t.Errorf("%d console blocks were run and %d were not", ran, skipped)
	}
}

var consoleBlock = regexp.MustCompile("(?m)^<!-- (run|not run): (.+) -->\\n```console\\n((?:.*\\n)*?)^```$")

// progressLines matches the progress lines that a command prints to standard error if it runs for longer than a
// second.
var progressLines = regexp.MustCompile(`(?m)^[a-z ']+… \d+ s.*\n`)

// runConsole runs the commands of a console block with a new data directory. It checks that they print what the page
// shows.
func runConsole(t *testing.T, page, dir, block string) {
	t.Helper()
	home := t.TempDir()
	bin := filepath.Dir(retortIn(t, dir).Path)
	for part := range strings.SplitSeq(strings.TrimPrefix(block, "$ "), "\n$ ") {
		command, output := splitConsole(part)
		cmd := exec.Command("sh", "-c", command)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME=", "XDG_DATA_HOME=", "RETORT_HOME=",
			"PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
		cmd.Args[2] = strings.Replace(command, "retort ", "retort --home '"+home+"' ", 1)
		printed, _ := cmd.CombinedOutput()
		printed = progressLines.ReplaceAll(printed, nil) // they depend on how busy the machine is
		if !consolePattern(output).Match(printed) {
			t.Errorf("%s: %s\nprints\n%s\nbut the page shows\n%s", page, command, printed, output)
		}
	}
}

// splitConsole splits a part of a console block into the command and its output. The command ends with the first line
// at whose end all single quotes are closed.
func splitConsole(part string) (command, output string) {
	lines := strings.SplitAfter(part, "\n")
	for i := range lines {
		command = strings.Join(lines[:i+1], "")
		if strings.Count(command, "'")%2 == 0 {
			return strings.TrimSpace(command), strings.Join(lines[i+1:], "")
		}
	}
	return part, ""
}

func consolePattern(output string) *regexp.Regexp {
	p := regexp.QuoteMeta(strings.TrimRight(output, "\n"))
	p = regexp.MustCompile(`(?m)^…\n`).ReplaceAllString(p, `(?:.*\n)*?`)
	return regexp.MustCompile(`^` + strings.ReplaceAll(p, "…", `.*`) + `\n*$`)
}

// TestConsolePattern checks the patterns that are made from console blocks. A pattern must match fitting output and
// reject other output.
func TestConsolePattern(t *testing.T) {
	command, output := splitConsole("retort run -e '\n  return 1'\n1\nok · … ms\n…\nend\n")
	if command != "retort run -e '\n  return 1'" {
		t.Errorf("the command is %q", command)
	}
	if rest := progressLines.ReplaceAllString("running… 2 s 1 tool calls\nok · 3 ms\n", ""); rest != "ok · 3 ms\n" {
		t.Errorf("a progress line stays: %q", rest)
	}
	for text, want := range map[string]bool{
		"1\nok · 12 ms\nend\n": true, "1\nok · 1 ms\nx\ny\nend\n": true, "2\nok · 12 ms\nend\n": false, "1\nok · 12 ms\n": false,
	} {
		if consolePattern(output).MatchString(text) != want {
			t.Errorf("%q: want %v", text, want)
		}
	}
}

// userPages returns the README, SECURITY.md and the pages of docs/ for users.
func userPages(t *testing.T) []string {
	return append([]string{"README.md", "SECURITY.md"}, testenv.MarkdownPages(t, repository, []string{"docs"}, "contributing")...)
}

func readDoc(t *testing.T, page string) string { return testenv.ReadPage(t, repository, page) }

// TestEveryCommandIsExplained checks that each command in help has an example, and that each top-level command has a
// group. The commands and flags in examples must exist.
func TestEveryCommandIsExplained(t *testing.T) {
	root := documentedRoot()
	for _, c := range documentedCommands(root) {
		if c.Runnable() && c != root && c.Example == "" {
			t.Errorf("%s has no example", c.CommandPath())
		}
		if c.Parent() == root && c.GroupID == "" && c.Name() != "version" && c.Name() != "completion" {
			t.Errorf("%s is in no group", c.CommandPath())
		}
		for line := range strings.Lines(c.Example) {
			if problem := exampleProblem(line); problem != "" {
				t.Errorf("the example %q: %s", strings.TrimSpace(line), problem)
			}
		}
	}
}

// exampleProblem returns text that names the first command or flag in a line of an example that does not exist. It
// returns "" if all of them exist, or if the line is not a command.
func exampleProblem(line string) string {
	text, found := strings.CutPrefix(strings.TrimSpace(line), "retort ")
	if !found {
		return ""
	}
	if end := strings.IndexAny(text, `'">`); end >= 0 {
		text = text[:end]
	}
	return commandProblem(strings.Fields(text))
}
