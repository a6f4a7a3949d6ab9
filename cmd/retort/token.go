package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"retort/internal/admin"
	"retort/internal/config"
	"retort/internal/core"
	"retort/internal/engine"
)

// tokenCommands defines the command "retort token" and its subcommands.
type tokenCommands struct{ *app }

func (a tokenCommands) command() *cobra.Command {
	c := &cobra.Command{Use: "token", Short: "Manage the access tokens with which clients call Retort over the network"}
	c.AddCommand(a.createTokenCommand(), a.listTokensCommand(), a.revokeTokenCommand())
	return c
}

func (a tokenCommands) createTokenCommand() *cobra.Command {
	var expires string
	c := &cobra.Command{
		Use: "create NAME", Short: "Create an access token for a user, and print the token once", Args: cobra.ExactArgs(1),
		Long: `The command prints an access token. A client sends this token as "Authorization: Bearer …". Retort keeps
only a hash of the token, so nobody can print the token again. If you lose a token, create a new one. NAME
is the name of the user. You can restrict what a user may do with the setting principals. A user can have
several tokens, for example while you replace one token by another.`,
		Example: "  retort token create anna --expires 30d",
		RunE: func(_ *cobra.Command, args []string) error {
			life, err := parseLifetime(expires)
			if err != nil {
				return err
			}
			made, err := admin.CreateToken(engine.Config{Files: a.configs, Home: a.home}, args[0], life)
			if err != nil {
				return err
			}
			if a.asJSON {
				return a.printJSON(made)
			}
			a.printWarnings(made.Warnings)
			until := "never expires"
			if !made.Expires.IsZero() {
				until = "expires on " + made.Expires.Local().Format(time.DateOnly)
			}
			fmt.Fprintf(a.stderr, "token %s of %s, %s; it is shown only once:\n", made.ID, replaceControls(made.Name), until)
			_, err = fmt.Fprintln(a.stdout, made.Text)
			return err
		},
	}
	c.Flags().StringVar(&expires, "expires", "90d",
		"time for which the token is valid, such as 12h or 90d, or never for no limit")
	offerJSON(c)
	return c
}

// parseLifetime parses the time for which a token is valid. It must be between a minute and ten years. parseLifetime
// returns 0 for "never", which means that the token does not expire.
func parseLifetime(text string) (time.Duration, error) {
	const least, most = time.Minute, 10 * 365 * 24 * time.Hour
	if text == "never" {
		return 0, nil
	}
	life, ok := config.ParseDuration(text)
	if !ok || life < least || life > most {
		return 0, core.Errorf(
			core.KindInvalidArguments, "token.create", "--expires %q is not a duration from one minute to ten years", text,
		).WithHint("such as 12h or 90d, or never")
	}
	return life, nil
}

func (a tokenCommands) listTokensCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "list", Short: "List all access tokens", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			tokens, err := admin.ListTokens(engine.Config{Files: a.configs, Home: a.home})
			if err != nil {
				return err
			}
			if a.asJSON {
				return a.printJSON(map[string]any{"tokens": tokens})
			}
			return a.printTokens(tokens)
		},
	}
	offerJSON(c)
	return c
}

func (a tokenCommands) printTokens(tokens []admin.Token) error {
	if len(tokens) == 0 {
		fmt.Fprintln(a.stderr, "there are no tokens; create one with retort token create NAME")
		return nil
	}
	now := time.Now()
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tID\tCREATED\tEXPIRES\tLAST USED\t")
	for _, t := range tokens {
		expires := "never"
		if !t.Expires.IsZero() {
			expires = t.Expires.Local().Format(time.DateOnly)
		}
		if t.Expired(now) {
			expires += " (expired)"
		}
		fmt.Fprintf(
			w, "%s\t%s\t%s\t%s\t%s\t\n", replaceControls(t.Name), t.ID, t.Created.Local().Format(time.DateOnly), expires,
			cmp.Or(t.Used, "never"),
		)
	}
	return w.Flush()
}

func (a tokenCommands) revokeTokenCommand() *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use: "revoke NAME|ID", Short: "Revoke all access tokens of a user, or a single token by its id", Args: cobra.MaximumNArgs(1),
		Long: `Retort processes that are running refuse a revoked token from the next request on. With --all, the command
revokes the tokens of all users. This also works if somebody has tampered with the token file and Retort
accepts no token any more. The command does not remove the logins of the user at MCP servers. To remove
these logins, use retort auth logout.`,
		RunE: func(_ *cobra.Command, args []string) error {
			if all == (len(args) == 1) {
				return core.Errorf(core.KindInvalidArguments, "token.revoke", "give a name, an id, or --all")
			}
			c := engine.Config{Files: a.configs, Home: a.home}
			revoke := admin.RevokeAllTokens
			if !all {
				revoke = func(c engine.Config) ([]admin.Token, error) { return admin.RevokeTokens(c, args[0]) }
			}
			gone, err := revoke(c)
			if gone == nil && err != nil {
				return err
			}
			if a.asJSON {
				if failed := a.printJSON(map[string]any{"revoked": gone}); failed != nil {
					return failed
				}
				return err
			}
			for _, t := range gone {
				fmt.Fprintf(a.stdout, "revoked %s of %s\n", t.ID, replaceControls(t.Name))
			}
			a.warnRemainingLogins(c, gone)
			if all && len(gone) == 0 {
				fmt.Fprintln(a.stdout, "no token is accepted")
			}
			return err
		},
	}
	c.Flags().BoolVar(&all, "all", false, "revoke the access tokens of all users")
	offerJSON(c)
	return c
}

// warnRemainingLogins prints the logins at upstream servers that remain after a principal's last access token was
// revoked. Revoking a token does not end these logins.
func (a tokenCommands) warnRemainingLogins(c engine.Config, gone []admin.Token) {
	left, err := engine.FindRemainingLogins(c, gone)
	if err != nil {
		return // it was about the tokens
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		for _, server := range left[name] {
			fmt.Fprintf(
				a.stdout, "%s is still logged in at %s: retort auth logout %s --principal %s\n", replaceControls(name),
				replaceControls(server), replaceControls(server), replaceControls(name),
			)
		}
	}
}
