package main

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"retort/internal/admin"
	"retort/internal/core"
	"retort/internal/engine"
)

func (a auditCommands) verifyCommand() *cobra.Command {
	var files []string
	var key string
	c := &cobra.Command{
		Use: "verify", Short: "Verify that nobody has changed the audit log", Args: cobra.NoArgs,
		Long: `Computes the hash and the authentication code of each entry again, also in archives. Compares the
audit log with all signed checkpoints. Checks that each execution is in the log once, from its beginning to its
end. If something is wrong, the command names the first wrong entry and the reason, and exits with 1.

Checkpoints that are stored on another machine (audit.checkpoint) also reveal changes by somebody who controls this
machine. If you do not have the key of the user, give the public key with --key. Each checkpoint contains it. Engines
can run while the command verifies.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			public, err := publicKey(key)
			if err != nil {
				return err
			}
			say, done := a.startProgress("verifying")
			v, err := admin.VerifyAudit(cmd.Context(), engine.Config{Files: a.configs, Home: a.home}, admin.VerifyOptions{
				Checkpoints: files, Key: public, Progress: func(n int64) { say(fmt.Sprintf("%s entries", groupThousands(int(n)))) },
			})
			done()
			if err != nil {
				return err
			}
			return a.printVerdict(v)
		},
	}
	c.Flags().StringArrayVar(&files, "checkpoints", nil, "a file with checkpoints that were stored elsewhere (repeatable)")
	c.Flags().StringVar(&key, "key", "", "the public key that verifies the signatures of checkpoints, in base64")
	offerJSON(c)
	return c
}

func publicKey(text string) (ed25519.PublicKey, error) {
	if text == "" {
		return nil, nil
	}
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, core.Errorf(
			core.KindInvalidArguments, "audit.verify", "--key is not a public key",
		).WithHint("use the field key of a checkpoint: 44 characters of base64")
	}
	return key, nil
}

func (a auditCommands) printVerdict(v admin.AuditVerdict) error {
	var code error
	if !v.OK {
		code = exitError(exitFailed)
	}
	if a.asJSON {
		if err := a.printJSON(v); err != nil {
			return err
		}
		return code
	}
	for _, note := range v.Notes {
		fmt.Fprintln(a.stderr, a.styleText(a.stderr, amber, "note:"), replaceControls(note))
	}
	if v.OK {
		fmt.Fprintf(
			a.stdout, "%s · entries: %s, chains: %d, checkpoints: %s\n", a.styleText(a.stdout, green, "the audit log is intact"),
			groupThousands(int(v.Entries)), len(v.Chains), groupThousands(int(v.Checkpoints)),
		)
		return nil
	}
	fmt.Fprintf(a.stdout, "%s %s: %s\n", a.styleText(a.stdout, red, "the audit log failed verification:"), v.First.What, replaceControls(v.First.Says))
	for _, f := range v.Findings {
		if f != *v.First {
			fmt.Fprintf(a.stdout, "  %s: %s\n", f.What, replaceControls(f.Says))
		}
	}
	return code
}

func (a auditCommands) acceptClockCommand() *cobra.Command {
	return &cobra.Command{
		Use: "accept-clock", Short: "Confirm the clock although it is behind the audit log", Args: cobra.NoArgs,
		Long: `Calls that may have effects are refused while the clock is more than two minutes behind
the newest entry of the audit log. If the clock is right now, and was wrong when that entry was
written, this command makes engines of this user accept it for an hour. The confirmation is
recorded in the audit log.`,
		RunE: func(*cobra.Command, []string) error {
			if err := admin.AcceptClock(engine.Config{Files: a.configs, Home: a.home}); err != nil {
				return err
			}
			fmt.Fprintf(a.stdout, "engines accept the clock, which shows %s, for an hour\n", time.Now().Format(time.DateTime))
			return nil
		},
	}
}
