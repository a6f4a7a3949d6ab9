package admin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"retort/internal/audit/sqlstore"
	"retort/internal/base/seal"
	"retort/internal/catalog"
	"retort/internal/core"
	"retort/internal/doctor"
	"retort/internal/engine"
	"retort/internal/home"
	"retort/internal/pipeline/approval"
)

// ExamineMachine checks the data directory, keys, audit log and clock of this machine without an engine. If fix is
// true, it also repairs what is safe to repair. An error means that the configuration cannot be read.
func ExamineMachine(ctx context.Context, c engine.Config, fix bool) ([]doctor.CheckResult, error) {
	s, err := openStores(c)
	if err != nil {
		return nil, err
	}
	s.RegisterSecrets()
	checks := s.examine(ctx, fix)
	for i := range checks {
		checks[i].Words, checks[i].Mend = s.MaskText(checks[i].Words), s.MaskText(checks[i].Mend)
	}
	return checks, nil
}

func (s *stores) examine(ctx context.Context, fix bool) []doctor.CheckResult {
	data := s.DataDir()
	if data == "" {
		return append(doctor.CheckFiles(), doctor.CheckResult{Name: "home", Level: doctor.OK, Words: "nothing is stored"})
	}
	checks := append(doctor.CheckFiles(), doctor.CheckFolder("home", string(data), fix)...)
	if own := string(s.UserDir()); own != "" {
		checks = append(append(checks, doctor.CheckFolder("keys", own, fix)...), doctor.CheckKeys("keys", own, fix)...)
	}
	checks = append(checks, s.checkKeyPlace(), checkSizes(data))
	if engines := runningEngines(data); engines != "" {
		checks = append(checks, doctor.CheckResult{Name: "engines", Level: doctor.OK, Words: engines})
	}
	checks = append(checks, checkCatalog(data, fix)...)
	if fix {
		checks = append(checks, removeStaleSockets(data)...)
	}
	return append(checks, s.checkAudit(ctx)...)
}

// checkKeyPlace reports where the user's master key is stored. This key encrypts the keys of personal values and of
// audit log bodies.
func (s *stores) checkKeyPlace() doctor.CheckResult {
	where, keyring := s.MasterKeys().DescribePlace()
	if keyring == nil {
		return doctor.CheckResult{Name: "key", Level: doctor.OK, Words: "in " + where}
	}
	return doctor.CheckResult{
		Name: "key", Level: doctor.OK,
		Words: fmt.Sprintf("in the file %s, because the keyring cannot be used: %v", where, keyring),
	}
}

func checkSizes(data home.Dir) doctor.CheckResult {
	var parts []string
	for _, dir := range []string{data.Audit(), data.Workspace(), data.Vault(), data.Catalog()} {
		if n := doctor.FolderSize(dir); n > 0 {
			parts = append(parts, filepath.Base(dir)+" "+doctor.FormatBytes(n))
		}
	}
	if parts == nil {
		parts = []string{"nothing yet"}
	}
	return doctor.CheckResult{Name: "kept", Level: doctor.OK, Words: strings.Join(parts, ", ")}
}

// runningEngines returns a sentence with the process ids of the engines that are writing to the audit log in the
// directory data. It returns "" if there are none.
func runningEngines(data home.Dir) string {
	files, _ := sqlstore.ListFiles(data.Audit())
	var pids []string
	for _, f := range files {
		lock := f + ".lock"
		if _, err := os.Stat(lock); err != nil {
			continue
		}
		unlock, err := seal.LockShared(lock, 0)
		if err == nil {
			unlock()
			continue
		}
		if pid, err := seal.ReadFile(lock, 32); err == nil {
			pids = append(pids, strings.TrimSpace(string(pid)))
		}
	}
	if pids == nil {
		return ""
	}
	return "processes that use this data directory: " + strings.Join(pids, ", ")
}

// checkCatalog reports cached tool definitions that cannot be read. If fix is true, it deletes them. That is safe,
// because the record of which definitions are trusted is stored elsewhere.
func checkCatalog(data home.Dir, fix bool) (checks []doctor.CheckResult) {
	for _, file := range catalog.BrokenFiles(data.Catalog()) {
		c := doctor.CheckResult{
			Name: "catalog", Level: doctor.Warning,
			Words: file + " cannot be read, so its tools are unknown until their server runs",
			Mend:  "retort doctor --fix",
		}
		if fix && os.Remove(file) == nil {
			c.Level, c.Words, c.Mend = doctor.Mended, file+" could not be read and was removed; it is written again when the tools of its server are listed", ""
		}
		checks = append(checks, c)
	}
	return checks
}

// removeStaleSockets removes approval sockets of engines that have died.
func removeStaleSockets(data home.Dir) (checks []doctor.CheckResult) {
	if n := approval.RemoveStaleSockets(data.Approvals()); n > 0 {
		checks = append(checks, doctor.CheckResult{
			Name: "sockets", Level: doctor.Mended, Words: fmt.Sprintf("removed %d sockets of engines that have ended", n),
		})
	}
	return checks
}

// auditTimeout bounds the check of the audit log.
const auditTimeout = 10 * time.Second

// checkAudit checks that no chain of the audit log ends before its last checkpoint, and that the clock is not behind
// the log's newest entry.
func (s *stores) checkAudit(ctx context.Context) []doctor.CheckResult {
	now := time.Now()
	database := s.LoadedConfig().Settings.Audit.Store != ""
	if _, err := os.Stat(s.DataDir().Audit()); !s.LoadedConfig().Settings.AuditLogging.IsOn() || errors.Is(err, fs.ErrNotExist) && !database {
		return []doctor.CheckResult{doctor.CheckClock(now, 0)}
	}
	ctx, cancel := context.WithTimeout(ctx, auditTimeout)
	defer cancel()
	r, err := s.ReadAudit(ctx, sqlstore.Options{ReadOnly: true})
	if err != nil {
		return []doctor.CheckResult{
			{Name: "audit log", Level: doctor.Broken, Words: core.AsError(err).Message, Mend: core.AsError(err).Hint},
			doctor.CheckClock(now, 0),
		}
	}
	defer r.Close()
	g, err := r.QuickCheck(ctx)
	record := doctor.CheckResult{
		Name: "audit log", Level: doctor.OK,
		Words: fmt.Sprintf("entries: %d, chains: %d; no chain ends before its checkpoint", g.Entries, g.Chains),
	}
	switch {
	case err != nil:
		record.Level, record.Words, record.Mend = doctor.Broken, "it cannot be read: "+core.AsError(err).Message, "retort audit verify"
	case len(g.Findings) > 0:
		record.Level, record.Words, record.Mend = doctor.Broken, g.Findings[0].Says, "retort audit verify"
	}
	return []doctor.CheckResult{record, doctor.CheckClock(now, g.ClockLag(now))}
}
