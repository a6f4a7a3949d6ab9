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
		Long: `The command checks the hash and the authentication code of each entry, also in archives. It compares the
audit log with all signed checkpoints. It checks that each execution is in the audit log once and
completely. If something is wrong, the command names the first wrong entry and the reason, and exits
with 1.

A person who controls this machine could change the audit log and the checkpoints together. Checkpoints
that you store on another machine (audit.checkpoint) reveal such changes, too. If you do not have the
key of the user, pass the public key with --key. Each checkpoint contains the public key. You can verify
the audit log while Retort runs.`,
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
	c.Flags().StringArrayVar(&files, "checkpoints", nil,
		"file with checkpoints of the audit log that you stored on another machine (repeatable)")
	c.Flags().StringVar(&key, "key", "",
		"public key in base64 with which the command verifies the signatures of checkpoints")
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
		Use: "accept-clock", Short: "Confirm that the clock of this machine is right, although the audit log has later entries", Args: cobra.NoArgs,
		Long: `If the clock is more than two minutes behind the newest entry of the audit log, Retort refuses calls that
may have effects. Use this command if the clock is right now, and was wrong when Retort wrote that entry.
For an hour, all Retort processes of this user then accept the clock. Retort records the confirmation in
the audit log.`,
		RunE: func(*cobra.Command, []string) error {
			if err := admin.AcceptClock(engine.Config{Files: a.configs, Home: a.home}); err != nil {
				return err
			}
			fmt.Fprintf(a.stdout, "engines accept the clock, which shows %s, for an hour\n", time.Now().Format(time.DateTime))
			return nil
		},
	}
}
