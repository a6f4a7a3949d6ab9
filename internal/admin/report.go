package admin

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"retort/internal/audit"
	"retort/internal/audit/export"
	"retort/internal/audit/report"
	"retort/internal/audit/sqlstore"
	"retort/internal/config"
	"retort/internal/core"
	"retort/internal/engine"
)

// AuditExport selects the entries of the audit log to export, and the output format.
type AuditExport struct {
	Format string      // "jsonl", "ocsf", "cef" or "csv"
	Filter AuditFilter // its fields Before, Limit and Bare are ignored
	// Text selects entries that contain it, in upper or lower case. Bodies are searched only if Bodies is set.
	Text   string
	Bodies bool   // whether to include code, arguments and messages
	After  string // cursor of the previous export; "": begin with the oldest entry
	// Progress is called after every 1000 entries with the number of entries written so far. It may be nil.
	Progress func(entries int64)
}

// ExportResult is the result of an export.
type ExportResult struct {
	Entries  int64    `json:"entries"`
	Cursor   string   `json:"cursor"` // for the next export, which continues after this one
	Warnings []string `json:"warnings,omitempty"`
}

// ExportAudit writes the entries of the audit log to w, oldest first, up to the newest at this moment. Engines may
// write to the log at the same time. The result has a cursor, after which the next export continues. After an error
// the cursor is empty, because the export is incomplete.
func ExportAudit(ctx context.Context, c engine.Config, w io.Writer, what AuditExport) (ExportResult, error) {
	var out ExportResult
	places, err := audit.PlacesFrom(what.After)
	if err != nil {
		return out, err
	}
	to, err := export.New(w, export.Format(what.Format), export.Options{Version: engine.Version, Bodies: what.Bodies})
	if err != nil {
		return out, err
	}
	r, err := openAudit(ctx, c)
	if err != nil {
		return out, err
	}
	defer r.Close()
	if !what.Bodies {
		r.Keys.Bodies = nil
	}
	for e, err := range r.After(ctx, what.Filter, what.Text, places, &out.Warnings) {
		if err == nil {
			err = to.Write(e)
		}
		if err != nil {
			return out, asError(err)
		}
		if out.Entries++; what.Progress != nil && out.Entries%1000 == 0 {
			what.Progress(out.Entries)
		}
	}
	if len(r.Stores) == 0 && len(r.UnreadErrors()) == 0 {
		out.Warnings = append(out.Warnings, "there is no audit log yet")
	}
	if err := to.Close(); err != nil {
		return out, asError(err)
	}
	out.Cursor = places.String()
	return out, nil
}

// Types of reports about the audit log.
type (
	// AuditReport holds a compliance report about a period. Its JSON form stays compatible.
	AuditReport    = report.PeriodReport   // what the record says of a period; its JSON is a promise
	ReportStandard = report.ReportStandard // "summary", "gdpr", "soc2" or "hipaa"
	ReportFormat   = report.ReportFormat   // "markdown", "html" or "json"
)

// ReportPeriod is the time span of a report. It includes From and excludes To.
type ReportPeriod struct {
	From, To time.Time
	// Progress is called with the current step and the number of entries read so far. It may be nil.
	Progress func(what string, entries int64)
}

// ReportAudit builds a compliance report from the audit log for a period. It verifies the log, and reads none of its
// encrypted bodies. Engines may write to the log at the same time.
func ReportAudit(ctx context.Context, c engine.Config, standard ReportStandard, p ReportPeriod) (*AuditReport, error) {
	s, err := openStores(c)
	if err != nil {
		return nil, err
	}
	r, err := s.ReadAudit(ctx, sqlstore.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	r.Keys.Bodies = nil
	out, err := report.BuildReport(
		ctx, &r.LogReader, describeSituation(s.LoadedConfig().Settings),
		report.Options{From: p.From, To: p.To, Standard: standard, Progress: p.Progress},
	)
	return out, asError(err)
}

// describeSituation returns the settings that a report about the audit log states.
func describeSituation(s config.Settings) report.ReportInput {
	out := report.ReportInput{Version: engine.Version, Now: time.Now(), Recorded: s.AuditLogging.IsOn(), Keep: s.Audit.Keep, Archives: s.Audit.Archives}
	set := func(name string, value any) {
		out.Settings = append(out.Settings, report.SettingValue{Name: name, Value: fmt.Sprint(value)})
	}
	set("auditLogging", formatSwitch(s.AuditLogging))
	set("audit.store", describeStore(s.Audit.Store))
	set("audit.required", s.Audit.Required)
	set("audit.checkpoint", formatPresence(len(s.Audit.Checkpoint) > 0))
	set("audit.keep", formatRetention(s.Audit.Keep))
	set("audit.size", fmt.Sprint(s.Audit.Size, " bytes"))
	set("audit.archives", formatRetention(s.Audit.Archives))
	set("permissionLevel", s.PermissionLevel)
	set("securityLevel", s.SecurityLevel)
	set("toolChanges", s.ToolChanges)
	set("sandboxMode", s.SandboxMode)
	set("sandboxFallback", s.SandboxFallback)
	set("approval.autoApproveLow", formatSwitch(s.Approval.AutoApproveLow))
	set("approval.autoApproveMedium", formatSwitch(s.Approval.AutoApproveMedium))
	set("approval.autoApproveHigh", formatSwitch(s.Approval.AutoApproveHigh))
	for _, grade := range slices.Sorted(maps.Keys(s.Approval.Irreversible)) {
		set("approval.irreversible."+grade, s.Approval.Irreversible[grade])
	}
	set("approval.webhook", formatPresence(s.Approval.Webhook.URL != ""))
	set("piiTokenization", formatSwitch(s.PIITokenization))
	for _, name := range slices.Sorted(maps.Keys(s.PII.Modes)) {
		set("pii.modes."+name, s.PII.Modes[name])
	}
	set("pii.restoreToModel", formatSwitch(s.PII.RestoreToModel))
	set("pii.showInForms", formatSwitch(s.PII.ShowInForms))
	set("pii.expiry", formatRetention(cmp.Or(s.PII.Expiry, core.DefaultPIIExpiry))) // the vault's own, if nothing is set
	set("pii.key", describeKeyPlace(s.PII.Key))
	set("workspace.results", formatRetention(s.Workspace.Results))
	set("workspace.sessions", formatRetention(s.Workspace.Sessions))
	set("workspace.realValues", formatSwitch(s.Workspace.RealValues))
	set("anomalies.default", s.Anomalies.Default)
	for _, kind := range slices.Sorted(maps.Keys(s.Anomalies.Actions)) {
		set("anomalies."+kind, s.Anomalies.Actions[kind])
	}
	set("anomalies.webhook", formatPresence(s.Anomalies.Webhook.URL != ""))
	set("telemetry", formatPresence(s.Telemetry.Traces != "" || s.Telemetry.Metrics != "" || s.Telemetry.Prometheus.Address != ""))
	set("network.default", s.Network.Default)
	for _, name := range slices.Sorted(maps.Keys(s.Servers)) {
		set("servers."+name, serverRules(s.Servers[name]))
	}
	out.Principals = []report.PrincipalAccess{{May: string(s.PermissionLevel)}}
	for _, name := range slices.Sorted(maps.Keys(s.Principals)) {
		out.Principals = append(out.Principals, report.PrincipalAccess{Name: name, May: principalRules(s.Principals[name])})
	}
	return out
}

func formatSwitch(s config.Switch) string {
	if s.IsOn() {
		return "on"
	}
	return "off"
}

// formatRetention formats a retention period, in days where possible. A duration of 0 or less means forever.
func formatRetention(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d <= 0:
		return "for ever"
	case d%day == 0:
		return fmt.Sprintf("%d days", d/day)
	}
	return d.String()
}

func formatPresence(yes bool) string {
	if yes {
		return "set"
	}
	return "none"
}

// describeStore names the kind of storage of the audit log. It leaves out the address, which may contain secrets.
func describeStore(url string) string {
	switch {
	case url == "":
		return "files in the data directory"
	case strings.HasPrefix(url, "postgres"):
		return "PostgreSQL"
	}
	return "a file"
}

func describeKeyPlace(k config.PIIKey) string {
	switch {
	case k.Variable != "":
		return "an environment variable"
	case k.Age != "":
		return "a file encrypted with age"
	}
	return "the system's keyring, or a file that only the user can read"
}

func serverRules(s config.ServerSettings) string {
	parts := toolRules(s.ToolRules)
	if s.Disabled {
		parts = append(parts, "disabled")
	}
	if s.Trusted {
		parts = append(parts, "trusted")
	}
	for _, pattern := range slices.Sorted(maps.Keys(s.Effects)) {
		parts = append(parts, "effect "+pattern+" "+s.Effects[pattern])
	}
	if s.Changes != "" {
		parts = append(parts, "toolChanges "+string(s.Changes))
	}
	return cmp.Or(strings.Join(parts, "; "), "no rules")
}

func toolRules(r config.ToolRules) (parts []string) {
	if r.Allow != nil {
		parts = append(parts, "allow "+cmp.Or(strings.Join(r.Allow, ", "), "nothing"))
	}
	if len(r.Deny) > 0 {
		parts = append(parts, "deny "+strings.Join(r.Deny, ", "))
	}
	if n := len(r.Conditions); n > 0 {
		parts = append(parts, fmt.Sprintf("%d conditions", n))
	}
	return parts
}

func principalRules(p config.Principal) string {
	var parts []string
	if p.PermissionLevel != "" {
		parts = append(parts, string(p.PermissionLevel))
	}
	for _, server := range slices.Sorted(maps.Keys(p.Servers)) {
		if rules := toolRules(p.Servers[server]); len(rules) > 0 {
			parts = append(parts, server+": "+strings.Join(rules, ", "))
		}
	}
	return cmp.Or(strings.Join(parts, "; "), "as everybody")
}
