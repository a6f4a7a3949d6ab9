// Package report builds compliance reports about a period from the audit log.
//
// A report contains counts, together with the queries that list the entries behind them. It also contains the
// verification of the log, the settings in force, and the controls of a standard with evidence for each. It states
// what is unknown and never estimates a number.
package report

import (
	"context"
	"iter"
	"time"

	"retort/internal/audit"
	"retort/internal/core"
)

// ReportStandard selects the compliance standard whose controls a report contains.
type ReportStandard string

// Each standard except Summary adds its controls to a report. Summary only says what happened.
const (
	Summary ReportStandard = "summary" // only what happened, without controls
	GDPR    ReportStandard = "gdpr"
	SOC2    ReportStandard = "soc2"
	HIPAA   ReportStandard = "hipaa"
)

// ReportFormat selects the format in which a report is written.
type ReportFormat string

// A report can be written in these formats. Markdown and HTML are for people, JSON is for programs.
const (
	Markdown ReportFormat = "markdown"
	HTML     ReportFormat = "html"
	JSON     ReportFormat = "json"
)

// EntrySource provides the entries of an audit log and verifies the log. It is implemented by *audit.LogReader.
type EntrySource interface {
	After(ctx context.Context, f audit.Filter, text string, places audit.ReadPositions, warnings *[]string) iter.Seq2[audit.Entry, error]
	Verify(ctx context.Context, o audit.VerifyOptions) (audit.VerifyResult, error)
	CountArchives() (there, deleted int, err error)
}

// SettingValue holds the name and value of one setting in force when the report is built.
type SettingValue struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// PrincipalAccess describes the permissions of one principal in the settings.
type PrincipalAccess struct {
	Name string `json:"name"` // "": all principals that the settings do not name
	May  string `json:"may"`  // permissions, as a sentence
}

// ReportInput holds facts about the machine and the settings that the audit log does not contain.
type ReportInput struct {
	Version    string // version of Retort
	Now        time.Time
	Recorded   bool // whether the settings enable the audit log
	Settings   []SettingValue
	Principals []PrincipalAccess
	Keep       time.Duration // age at which entries are moved to archives
	Archives   time.Duration // age of its newest entry at which an archive is deleted
}

// Options selects the period and the standard of a report.
type Options struct {
	From, To time.Time // the period includes From and excludes To
	Standard ReportStandard
	// Progress is called with the current step and the number of entries read. It may be nil.
	Progress func(what string, entries int64)
}

// PeriodReport holds a compliance report about a period. Its JSON has format version 1, to which later releases
// may add fields.
type PeriodReport struct {
	Version  int            `json:"version"`
	Standard ReportStandard `json:"standard"`
	Product  string         `json:"product"`
	Made     time.Time      `json:"made"`
	From     time.Time      `json:"from"`
	To       time.Time      `json:"to"`
	// Recorded says whether the settings enable the audit log when the report is built.
	Recorded   bool               `json:"recorded"`
	Remarks    []string           `json:"remarks"` // limits of the report, to be read before the numbers
	Activity   ActivitySummary    `json:"activity"`
	Integrity  audit.VerifyResult `json:"integrity"` // verification of the whole audit log, not only of the period
	Retention  RetentionSummary   `json:"retention"`
	Settings   []SettingValue     `json:"settings"` // in force when the report is built
	Access     []PrincipalAccess  `json:"access"`   // permissions in force when the report is built
	Controls   []ControlResult    `json:"controls"`
	NotCovered []string           `json:"not_covered"`
}

// RetentionSummary says how long entries are kept, and how many were archived and deleted.
type RetentionSummary struct {
	KeepDays     float64    `json:"keep_days"`    // in the store; 0: no limit
	ArchiveDays  float64    `json:"archive_days"` // in archives; 0: no limit
	Oldest       *time.Time `json:"oldest,omitempty"`
	Archives     int        `json:"archives"`
	Deleted      int        `json:"deleted_archives"`
	EntriesMoved int64      `json:"entries_archived"` // moved to archives in the period
	EntriesGone  int64      `json:"entries_deleted"`  // deleted with their archives in the period
}

// ControlResult holds one control of a standard with its evidence.
type ControlResult struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Does     string            `json:"does"`     // what Retort does for the control
	Evidence []ControlEvidence `json:"evidence"` // that Retort did so in the period
	Operator string            `json:"operator"` // what the organization that runs Retort must do itself
}

// ControlEvidence holds one statement that the audit log or the settings prove.
type ControlEvidence struct {
	Says  string `json:"says"`
	Query string `json:"query,omitempty"` // command that lists the entries behind the statement
}

// BuildReport builds a report from an audit log. It needs no keys for encrypted bodies, because it does not read
// them.
func BuildReport(ctx context.Context, from EntrySource, s ReportInput, o Options) (*PeriodReport, error) {
	known := standards[o.Standard]
	if o.Standard != Summary && known.controls == nil {
		return nil, core.Errorf(
			core.KindInvalidArguments, "audit.report", "there is no report standard %.40q", o.Standard,
		).WithHint("the standards are gdpr, soc2, hipaa and summary")
	}
	if !o.From.Before(o.To) {
		return nil, core.Errorf(
			core.KindInvalidArguments, "audit.report", "the period ends before it begins",
		).WithHint("--from must be before --to")
	}
	r := &PeriodReport{
		Version: 1, Standard: o.Standard, Product: "Retort " + s.Version, Made: s.Now.UTC(), From: o.From.UTC(),
		To: o.To.UTC(), Recorded: s.Recorded,
		Remarks: []string{}, Settings: s.Settings, Access: s.Principals, Controls: []ControlResult{},
	}
	t := newTally()
	tell := o.Progress
	if tell == nil {
		tell = func(string, int64) {}
	}
	var warnings []string
	for e, err := range from.After(ctx, audit.Filter{From: o.From, To: o.To}, "", audit.ReadPositions{}, &warnings) {
		if err != nil {
			return nil, err
		}
		t.addEntry(&e)
		if t.Entries%1000 == 0 {
			tell("reading the entries of the period", t.Entries)
		}
	}
	r.Activity = t.toActivity()
	var err error
	r.Integrity, err = from.Verify(ctx, audit.VerifyOptions{Progress: func(n int64) { tell("verifying the audit log", n) }})
	if err != nil {
		return nil, err
	}
	if r.Integrity.Chains == nil {
		r.Integrity.Chains = []audit.ChainVerdict{}
	}
	if err := r.addRetention(from, s); err != nil {
		return nil, err
	}
	r.addRemarks(warnings)
	for _, c := range known.controls {
		r.Controls = append(r.Controls, r.evaluateControl(c))
	}
	r.NotCovered = append(append([]string{}, known.not...), notCovered...)
	return r, nil
}

func (r *PeriodReport) addRetention(from EntrySource, s ReportInput) (err error) {
	const day = 24 * time.Hour
	r.Retention = RetentionSummary{
		KeepDays: float64(s.Keep) / float64(day), ArchiveDays: float64(s.Archives) / float64(day),
		EntriesMoved: r.Activity.archived, EntriesGone: r.Activity.deleted,
	}
	for _, c := range r.Integrity.Chains {
		if c.Entries > 0 && (r.Retention.Oldest == nil || c.From.Before(*r.Retention.Oldest)) {
			r.Retention.Oldest = &c.From
		}
	}
	r.Retention.Archives, r.Retention.Deleted, err = from.CountArchives()
	return err
}

// addRemarks adds remarks that a reader needs before the numbers, for example about gaps in the audit log.
func (r *PeriodReport) addRemarks(warnings []string) {
	say := func(when bool, text string) {
		if when {
			r.Remarks = append(r.Remarks, text)
		}
	}
	a, oldest := &r.Activity, r.Retention.Oldest
	say(!r.Recorded, "Nothing is recorded at the moment, because auditLogging is off. The rest of this report is about entries that were written while it was on.")
	say(a.Entries == 0, "The audit log has no entries for this period. This proves nothing: Retort may not have run, or may not have recorded.")
	say(oldest != nil && oldest.After(r.From), "The audit log begins later than the period. Earlier events are not known.")
	say(r.Retention.Deleted > 0, "Old entries were deleted by the retention settings. Deleted entries of this period are not counted.")
	say(!r.Integrity.OK, "The audit log failed verification, see Integrity. Figures from a changed audit log prove nothing.")
	say(
		r.Integrity.Entries > 0 && !r.Integrity.Codes,
		"Authentication codes of entries were not checked, because the key cannot be read here. Anyone who can write the audit log could have forged them.",
	)
	say(a.Gaps > 0, "The audit log has gaps in this period: an event could not be written, or a chain was cut off.")
	say(r.To.After(r.Made), "The period has not ended yet.")
	for _, w := range warnings[:min(len(warnings), maxListedLines)] {
		say(true, "Not everything could be read: "+w+".")
	}
}
