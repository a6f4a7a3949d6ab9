// Package admin implements the administration commands, which work without an engine. It reads, verifies, exports and
// erases the data that a configuration stores, and manages its tokens and jobs. Engines may use the same data
// directory at the same time.
package admin

import (
	"cmp"
	"context"

	"retort/internal/audit/sqlstore"
	"retort/internal/core"
	"retort/internal/engine"
)

// stores gives access to the data that is stored for a configuration, such as the audit log, the vault of personal
// values and the workspaces.
type stores struct{ *engine.Stores }

func openStores(c engine.Config) (*stores, error) {
	s, err := engine.OpenStores(c)
	if err != nil {
		return nil, err
	}
	return &stores{s}, nil
}

// openAudit opens the whole audit log of a configuration for reading. The log may consist of several files.
func openAudit(ctx context.Context, c engine.Config) (*engine.AuditReader, error) {
	s, err := openStores(c)
	if err != nil {
		return nil, err
	}
	return s.ReadAudit(ctx, sqlstore.Options{ReadOnly: true})
}

// asError returns err as a *core.Error, or nil if err is nil.
func asError(err error) error {
	if err == nil {
		return nil
	}
	return core.AsError(err)
}

func sessionOf(name string) string { return cmp.Or(name, "default") }
