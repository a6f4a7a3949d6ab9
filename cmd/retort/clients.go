package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"retort/internal/config/clientfiles"
	"retort/internal/core"
)

// clientPaths holds the paths of MCP clients' configuration files and of Retort's own configuration file. The commands
// import, install and uninstall use it.
type clientPaths struct {
	env       clientfiles.Environment
	out, home string
}

// clientCommands defines the commands "retort import", "retort install" and "retort uninstall".
type clientCommands struct{ *app }

func (a clientCommands) findClientPaths(out string, project bool) (clientPaths, error) {
	dir, err := os.Getwd()
	if err != nil {
		return clientPaths{}, core.Errorf(core.KindInternal, "retort.clients", "%w", err)
	}
	user, err := os.UserHomeDir()
	if err != nil {
		return clientPaths{}, core.Errorf(core.KindInvalidArguments, "retort.clients", "%w", err).WithHint("set HOME")
	}
	p := clientPaths{
		env: clientfiles.Environment{GOOS: runtime.GOOS, Getenv: os.Getenv, UserHome: user, Dir: dir},
		out: out, home: a.home,
	}
	if p.out == "" && len(a.configs) == 1 && !strings.HasSuffix(a.configs[0], ".yaml") && !strings.HasSuffix(a.configs[0], ".yml") {
		p.out = a.configs[0]
	}
	switch {
	case p.out != "":
	case project:
		p.out = filepath.Join(dir, "retort.json")
	default:
		p.out = filepath.Join(userFolder("XDG_CONFIG_HOME", user, ".config"), "retort", "mcp.json")
	}
	if p.home == "" {
		p.home = filepath.Join(userFolder("XDG_DATA_HOME", user, ".local", "share"), "retort")
	}
	if p.out, err = filepath.Abs(p.out); err == nil {
		p.home, err = filepath.Abs(p.home)
	}
	return p, err
}

// userFolder returns the folder that an XDG environment variable names. If the variable does not contain an absolute
// path, it returns the folder fallback in the user's home directory.
func userFolder(variable, user string, fallback ...string) string {
	if dir := os.Getenv(variable); filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(append([]string{user}, fallback...)...)
}

func (a clientCommands) importCommand() *cobra.Command {
	var o clientfiles.ImportOptions
	c := &cobra.Command{
		Use: "import", Short: "Copy the list of MCP servers from your clients to Retort", Args: cobra.NoArgs,
		Long: `The command reads the files of Claude Code, Claude Desktop, Cursor, VS Code, Codex, Windsurf, Gemini CLI,
Zed, opencode, Goose and LM Studio. It adds the MCP servers in these files to ~/.config/retort/mcp.json,
or to the file in --out. Placeholders such as ${NAME} stay placeholders. The command starts no server, and
does not change the files of the clients. With --project, the command adds the servers of the project in
this folder to ./retort.json.`,
		RunE: func(*cobra.Command, []string) error {
			p, err := a.findClientPaths(o.Out, o.Project)
			if err != nil {
				return err
			}
			o.Out, o.Home = p.out, p.home
			_, read := a.startProgress("reading the clients' files")
			done, err := clientfiles.ImportServers(p.env, o)
			read()
			if err != nil {
				return err
			}
			return a.printImported(done)
		},
	}
	c.Flags().StringVar(&o.From, "from", "", "import only the servers of this client, such as cursor, vscode or codex")
	c.Flags().BoolVar(&o.Project, "project", false, "import the servers of the project in the current folder")
	c.Flags().StringVar(&o.Out, "out", "", "file to which the command adds the servers")
	c.Flags().BoolVar(&o.DryRun, "dry-run", false, "print what the command would do, without doing it")
	offerJSON(c)
	return c
}

func (a clientCommands) printImported(done *clientfiles.ImportResult) error {
	code := error(nil)
	if len(done.Broken) > 0 {
		code = exitError(exitUsage)
	}
	if a.asJSON {
		if err := a.printJSON(done); err != nil {
			return err
		}
		return code
	}
	if len(done.Servers) > 0 {
		if err := a.printImportedServers(done.Servers); err != nil {
			return err
		}
	}
	a.printNotes(done.Servers, done.Warnings)
	for _, b := range done.Broken {
		fmt.Fprintln(a.stderr, a.styleText(a.stderr, red, "error:"), legibleLine(b.Error))
	}
	added := 0
	for _, s := range done.Servers {
		if s.State == clientfiles.Added {
			added++
		}
	}
	switch {
	case len(done.Servers) == 0:
		fmt.Fprintln(a.stderr, "no client has MCP servers")
	case done.DryRun:
		fmt.Fprintf(a.stderr, "would add %s to %s\n", formatPlural(added, "server"), legibleLine(done.File))
	default:
		fmt.Fprintf(a.stderr, "added %s to %s\n", formatPlural(added, "server"), legibleLine(done.File))
	}
	return code
}

func formatPlural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// legibleLine escapes line breaks and invisible characters in text that Retort did not write, so that the text prints
// as one legible line.
func legibleLine(s string) string { return core.LegibleLine(s) }

func (a clientCommands) printImportedServers(servers []clientfiles.FoundServer) error {
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SERVER\tFROM\tTRANSPORT\tRESULT")
	for _, s := range servers {
		from := s.Client
		if s.Scope != clientfiles.User {
			from += " (" + string(s.Scope) + ")"
		}
		result := string(s.State)
		if s.As != "" {
			result += " as " + legibleLine(s.As)
		}
		if s.Disabled {
			result += ", disabled"
		}
		if s.Reason != "" {
			result += ": " + legibleLine(s.Reason)
		}
		transport := s.Transport
		if transport == "" {
			transport = "-"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", legibleLine(s.Name), from, transport, result)
	}
	return w.Flush()
}

// printNotes prints the notes about the servers in client files, and the given warnings.
func (a clientCommands) printNotes(servers []clientfiles.FoundServer, warnings []string) {
	for _, s := range servers {
		for _, n := range s.Notes {
			fmt.Fprintf(a.stderr, "%s: %s\n", legibleLine(s.Name), legibleLine(n))
		}
	}
	for _, w := range warnings {
		a.printWarning(legibleLine(w))
	}
}

// installFlags holds the flags of install and uninstall.
type installFlags struct {
	clientfiles.InstallOptions
}

func (f *installFlags) addTo(c *cobra.Command) {
	c.Flags().BoolVar(&f.Project, "project", false,
		"change the client's file in the folder of this project, not the client's file in your home directory")
	c.Flags().BoolVar(&f.DryRun, "dry-run", false, "print the changes as a diff, without making them")
	offerJSON(c)
}

func (a clientCommands) installCommand() *cobra.Command {
	var f installFlags
	var measure bool
	c := &cobra.Command{
		Use: "install CLIENT", Short: "Put Retort in place of a client's MCP servers", Args: cobra.ExactArgs(1),
		Long: `The command adds the client's MCP servers to Retort's own file, like retort import. In the client's file,
the command replaces these servers by a single entry for Retort. Comments and everything else in the
client's file stay the same. The command retort uninstall undoes the change. CLIENT is one of: claude-code,
claude-desktop, cursor, vscode, codex, windsurf, gemini, zed, opencode, goose, lm-studio.

The command starts the servers only with --measure, or if you agree when it asks you in the terminal. If
it has started the servers, the command says how many tokens their tool definitions took in every
conversation, and how many tokens Retort's own tools take.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := a.findClientPaths(f.Out, f.Project)
			if err != nil {
				return err
			}
			f.Client, f.Out, f.Home = args[0], p.out, p.home
			f.Args = a.serveArgs(p, f.Project, f.Client)
			if f.Command == "" {
				f.Command = retortCommand(f.Project)
			}
			_, read := a.startProgress("reading the clients' files")
			done, err := clientfiles.Install(p.env, f.InstallOptions)
			read()
			if err != nil {
				return err
			}
			if !done.Changed || f.DryRun {
				return a.printInstalled(done, nil)
			}
			return a.printAndMeasure(cmd.Context(), done, measure)
		},
	}
	f.addTo(c)
	c.Flags().BoolVar(&measure, "measure", false, "start each server once, to count the tokens of its tool definitions")
	c.Flags().StringArrayVar(&f.Keep, "keep", nil, "name of a server that stays in the client's file (repeatable)")
	c.Flags().StringVar(&f.Out, "out", "", "file to which the command adds the servers")
	c.Flags().StringVar(&f.Command, "command", "", "command with which the client starts Retort")
	return c
}

// serveArgs returns the command line arguments with which a client starts Retort. In a client file that belongs to a
// project, the path of the configuration file is relative to the project if possible. The client file then also works
// on other machines.
func (a clientCommands) serveArgs(p clientPaths, project bool, client string) []string {
	file := p.out
	if rel, err := filepath.Rel(p.env.Dir, file); project && err == nil && filepath.IsLocal(rel) {
		file = filepath.ToSlash(rel)
		if client == "cursor" || client == "vscode" {
			file = "${workspaceFolder}/" + file
		}
	}
	args := []string{"serve", "--config", file}
	if a.home != "" {
		args = append(args, "--home", p.home)
	}
	return args
}

// retortCommand returns the path by which this program was started. It does not resolve links, because an update keeps
// the link and changes its target. The path is absolute, because graphical programs do not have the PATH of a shell.
func retortCommand(project bool) string {
	if project {
		return "retort"
	}
	self, err := os.Executable()
	if err != nil {
		return "retort"
	}
	found, err := exec.LookPath(os.Args[0])
	if err != nil {
		return self
	}
	if found, err = filepath.Abs(found); err != nil {
		return self
	}
	a, errA := os.Stat(self)
	b, errB := os.Stat(found)
	if errA == nil && errB == nil && os.SameFile(a, b) {
		return found
	}
	return self
}

// printInstalled prints what an install has changed. As JSON, it also prints the cost, which may be nil.
func (a clientCommands) printInstalled(done *clientfiles.InstallResult, cost *installCost) error {
	if a.asJSON {
		return a.printJSON(struct {
			*clientfiles.InstallResult
			Cost *installCost `json:"cost,omitempty"`
		}{done, cost})
	}
	if len(done.Moved) > 0 {
		if err := a.printImportedServers(done.Moved); err != nil {
			return err
		}
	}
	a.printNotes(done.Moved, done.Warnings)
	a.printKeptServers(done)
	fmt.Fprint(a.stdout, core.EscapeIllegible(done.Diff))
	switch {
	case !done.Changed:
		fmt.Fprintf(a.stderr, "%s already contains Retort\n", legibleLine(done.File))
	case done.DryRun:
		fmt.Fprintln(a.stderr, "nothing was written")
	default:
		fmt.Fprintf(a.stderr, "Retort was added to %s, and its servers were moved to %s; restart the client\n", legibleLine(done.File), legibleLine(done.Ours))
	}
	return nil
}

func (a clientCommands) printKeptServers(done *clientfiles.InstallResult) {
	for _, k := range done.Kept {
		fmt.Fprintf(a.stderr, "kept in %s: %s (%s)\n", done.Client, legibleLine(k.Name), legibleLine(k.Reason))
	}
}

func (a clientCommands) uninstallCommand() *cobra.Command {
	var f installFlags
	c := &cobra.Command{
		Use: "uninstall CLIENT", Short: "Remove Retort from a client, and put the client's MCP servers back", Args: cobra.ExactArgs(1),
		Long: `If nobody has changed the client's file since the installation, the command restores the file byte for
byte. Otherwise the command removes the entry of Retort and puts the servers back. If the name of a server
is already in use in the client's file, the command does not put this server back. Retort's own file keeps
the servers.`,
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := a.findClientPaths("", f.Project)
			if err != nil {
				return err
			}
			f.Client, f.Out, f.Home = args[0], p.out, p.home
			_, read := a.startProgress("reading the clients' files")
			done, err := clientfiles.Uninstall(p.env, f.InstallOptions)
			read()
			if err != nil {
				return err
			}
			return a.printUninstalled(done)
		},
	}
	f.addTo(c)
	return c
}

func (a clientCommands) printUninstalled(done *clientfiles.InstallResult) error {
	code := error(nil)
	if len(done.Still) > 0 {
		code = exitError(exitUsage)
	}
	if a.asJSON {
		if err := a.printJSON(done); err != nil {
			return err
		}
		return code
	}
	a.printKeptServers(done)
	a.printNotes(nil, done.Warnings)
	fmt.Fprint(a.stdout, core.EscapeIllegible(done.Diff))
	for _, name := range done.PutBack {
		fmt.Fprintf(a.stderr, "put back into %s: %s\n", done.Client, legibleLine(name))
	}
	switch {
	case len(done.Still) > 0:
		fmt.Fprintf(
			a.stderr, "%s still starts Retort through the entry %s; remove it by hand\n", legibleLine(done.File),
			legibleLine(strings.Join(done.Still, ", ")),
		)
	case done.Restored == "none":
		fmt.Fprintf(a.stderr, "%s does not contain Retort\n", legibleLine(done.File))
	case done.DryRun:
		fmt.Fprintln(a.stderr, "nothing was written")
	case done.Restored == "exact":
		fmt.Fprintf(a.stderr, "%s was restored to its content before the install\n", legibleLine(done.File))
	default:
		fmt.Fprintf(a.stderr, "Retort was removed from %s, which was changed after the install\n", legibleLine(done.File))
	}
	return code
}
