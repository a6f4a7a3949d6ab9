package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"retort/internal/core"
	"retort/internal/engine"
	"retort/internal/mcp/client/oauth"
)

// authCommands defines the command "retort auth" and its subcommands.
type authCommands struct{ *app }

func (a authCommands) command() *cobra.Command {
	c := &cobra.Command{Use: "auth", Short: "Manage your logins at MCP servers"}
	c.AddCommand(a.loginCommand(), a.loginStatusCommand(), a.logoutCommand())
	return c
}

func (a authCommands) loginCommand() *cobra.Command {
	var device, paste bool
	var principal string
	var patience time.Duration
	c := &cobra.Command{
		Use: "login SERVER", Short: "Log in at an MCP server with a browser", Args: cobra.ExactArgs(1),
		Long: `The command logs in at an MCP server with a browser on this machine. If this machine has no browser, use
--device or --paste. With --device, the command prints a code that you enter on another device. With
--paste, you log in with a browser on another machine, and paste the address of the last page here.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if device && paste {
				return core.Errorf(core.KindInvalidArguments, "auth", "--device and --paste cannot be combined")
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), patience)
			defer cancel()
			l, err := engine.BeginLogin(ctx, a.retortConfig(), args[0], engine.LoginOptions{Device: device, Principal: principal})
			if err != nil {
				return err
			}
			defer l.Close()
			if err := a.completeLogin(ctx, l, paste); err != nil {
				return err
			}
			fmt.Fprintf(a.stdout, "logged in at %s, with %s\n", replaceControls(whoseLogin(args[0], principal)), replaceControls(l.Issuer()))
			return nil
		},
	}
	c.Flags().BoolVar(&device, "device", false, "print a code that you enter on another device")
	c.Flags().BoolVar(&paste, "paste", false,
		"log in with a browser on another machine, and paste the address of the last page into the terminal")
	c.Flags().StringVar(&principal, "principal", "", "log in for this user, who calls Retort over the network")
	c.Flags().DurationVar(&patience, "timeout", 10*time.Minute, "maximum time that the command waits")
	return c
}

// completeLogin waits until a login is complete. It first opens the login page in a browser, or tells the user how to
// open it.
func (a authCommands) completeLogin(ctx context.Context, l *engine.PendingLogin, paste bool) error {
	switch {
	case l.Code != "":
		fmt.Fprintf(a.stderr, "open  %s\nand enter  %s\n", replaceControls(l.URL), replaceControls(l.Code))
	case paste:
		fmt.Fprintf(
			a.stderr,
			"open this address in a browser:\n\n%s\n\nAt the end the browser shows, or fails to show, an address that begins with %s\nPaste it here: ",
			replaceControls(l.URL), l.Redirect(),
		)
		return a.completePastedLogin(ctx, l)
	default:
		fmt.Fprintf(
			a.stderr,
			"if no browser opens, open this address in a browser on this machine:\n\n%s\n\n(with a browser elsewhere, use --paste or --device)\n",
			replaceControls(l.URL),
		)
		if err := openBrowser(ctx, l.URL); err != nil {
			a.printWarning("no browser could be opened: " + replaceControls(err.Error()))
		}
	}
	return l.Wait(ctx)
}

// completePastedLogin completes a login with the address to which the browser was redirected. The user pastes the
// address as one line of standard input.
func (a authCommands) completePastedLogin(ctx context.Context, l *engine.PendingLogin) error {
	line := make(chan string, 1)
	go func() {
		in := bufio.NewScanner(a.stdin)
		in.Buffer(nil, 64<<10)
		in.Scan()
		line <- in.Text()
	}()
	select {
	case text := <-line:
		return l.Paste(ctx, text)
	case <-ctx.Done():
		return core.Errorf(core.KindCancelled, "auth", "nothing was pasted: %w", ctx.Err())
	}
}

// openBrowser opens an address with the command in BROWSER or the system's default browser.
func openBrowser(ctx context.Context, address string) error {
	command := map[string][]string{"darwin": {"open"}, "windows": {"rundll32", "url.dll,FileProtocolHandler"}}[runtime.GOOS]
	if command == nil {
		command = []string{"xdg-open"}
	}
	if first, _, _ := strings.Cut(os.Getenv("BROWSER"), ":"); first != "" && runtime.GOOS != "windows" {
		command = strings.Fields(first)
	}
	found := false
	for i, word := range command {
		if strings.Contains(word, "%s") {
			command[i], found = strings.ReplaceAll(word, "%s", address), true
		}
	}
	if !found {
		command = append(command, address)
	}
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	if err := c.Start(); err != nil {
		return err
	}
	go func() { _ = c.Wait() }()
	return nil
}

func (a authCommands) loginStatusCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "status [SERVER...]", Short: "Show which MCP servers need a login, and how long each login is valid",
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), time.Minute)
			defer cancel()
			all, err := engine.ListLogins(ctx, a.retortConfig(), args...)
			if err != nil {
				return err
			}
			if a.asJSON {
				return a.printJSON(map[string]any{"servers": append([]engine.LoginStatus{}, all...)})
			}
			w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "SERVER\tLOGIN\tWHAT TO DO")
			for _, s := range all {
				fmt.Fprintf(
					w, "%s\t%s\t%s\n", replaceControls(whoseLogin(s.Server, s.Principal)), replaceControls(loginText(s)),
					replaceControls(cmp.Or(s.Command, problemOf(s.Error))),
				)
			}
			return w.Flush()
		},
	}
	offerJSON(c)
	return c
}

// whoseLogin returns text that names the owner of a login: "SERVER", or "SERVER for PRINCIPAL" if the login belongs to
// one principal.
func whoseLogin(server, principal string) string {
	if principal == "" {
		return server
	}
	return server + " for " + principal
}

func problemOf(e *core.Error) string {
	if e == nil {
		return ""
	}
	return e.Message
}

// loginText returns text that describes the state of a login and the time until which it is valid.
func loginText(s engine.LoginStatus) string {
	switch {
	case s.State != oauth.StateLogged:
		if len(s.Wanted) > 0 {
			return s.State + " for more rights: " + strings.Join(s.Wanted, " ")
		}
		return s.State
	case s.Renews:
		return s.State + ", renewed automatically"
	case s.Until != nil:
		return s.State + " until " + s.Until.Local().Format(time.DateTime)
	}
	return s.State
}

func (a authCommands) logoutCommand() *cobra.Command {
	var principal string
	c := &cobra.Command{
		Use: "logout SERVER", Short: "Remove the login at an MCP server, and revoke the login if the server supports this", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), time.Minute)
			defer cancel()
			out, err := engine.Logout(ctx, a.retortConfig(), args[0], principal)
			switch {
			case err != nil:
				return err
			case a.asJSON:
				return a.printJSON(out)
			case !out.Was:
				fmt.Fprintln(a.stderr, "nobody was logged in at", replaceControls(whoseLogin(args[0], principal)))
			case out.Revoked:
				fmt.Fprintln(a.stdout, "logged out of", replaceControls(whoseLogin(args[0], principal))+"; the login was revoked")
			default:
				fmt.Fprintln(
					a.stdout, "logged out of",
					replaceControls(whoseLogin(args[0], principal))+"; the server offers no revocation, so its tokens may stay valid until they expire",
				)
			}
			return nil
		},
	}
	c.Flags().StringVar(&principal, "principal", "", "remove the login of this user")
	offerJSON(c)
	return c
}
