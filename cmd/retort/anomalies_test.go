package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"retort/internal/audit"
	"retort/internal/audit/sqlstore"
	"retort/internal/base/seal"
	"retort/internal/core"
	"retort/internal/privacy/vault"
)

// lives implements the script command "lives". It fills the audit log of the script with 20 days of usual activity, in
// which a principal creates a CRM record every six hours.
func lives(ts *testscript.TestScript, _ bool, _ []string) {
	home, keys := ts.MkAbs(".retort"), ts.MkAbs(".user/.local/share/retort")
	log, err := history(home, keys)
	ts.Check(err)
	for i := range 80 {
		e := core.AuditEvent{Kind: core.EventRequest, At: time.Now().Add(time.Duration(i-82) * 6 * time.Hour), Execution: fmt.Sprint("past", i), Session: "default"}
		ts.Check(told(log, e))
		e.Kind, e.Server, e.Tool, e.Effect = core.EventCall, "crm", "create_record", "write"
		ts.Check(told(log, e))
		e.Kind, e.Status = core.EventEnd, "ok"
		ts.Check(told(log, e))
	}
	ts.Check(log.Close())
}

func history(home, keys string) (*audit.Log, error) {
	ctx := context.Background()
	private := audit.LogKeys{
		Bodies: vault.KeySource{File: filepath.Join(keys, "vault.key")}.Read,
		Codes:  func() ([]byte, error) { return seal.LoadOrCreateKey(filepath.Join(keys, "audit.key")) },
	}
	owner, err := private.OwnerID()
	if err != nil {
		return nil, err
	}
	rows, err := sqlstore.Open(ctx, filepath.Join(home, "audit")+string(filepath.Separator), sqlstore.Options{Owner: owner})
	if err != nil {
		return nil, err
	}
	return audit.Open(ctx, rows, audit.Options{
		Keys: private, Checkpoints: filepath.Join(keys, "checkpoints"), Home: home,
	})
}

func told(log *audit.Log, e core.AuditEvent) error {
	if refused := log.Record(e, false); refused != nil {
		return refused
	}
	return nil
}
