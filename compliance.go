package retort

import (
	"context"
	"io"

	"retort/internal/audit"
	"retort/internal/audit/export"
	"retort/internal/store"
)

// Export says what of the record is written, and how.
type Export struct {
	Format string       // "jsonl", "ocsf", "cef" or "csv"
	Filter RecordFilter // but Before, Limit and Bare
	Text   string       // that an entry has, in whatever case; in bodies only if they are written
	Bodies bool         // code, arguments and messages, too
	After  string       // the cursor of the export before; empty: from the beginning
	// Progress is told now and then how much was written; may be nil.
	Progress func(entries int64)
}

// Exported is what was written.
type Exported struct {
	Entries  int64    `json:"entries"`
	Cursor   string   `json:"cursor"` // for the next export, which goes on right after this one
	Warnings []string `json:"warnings,omitempty"`
}

// ExportRecord writes the record, oldest first, up to where it is at this moment. Engines may
// write it meanwhile. After an error the cursor is empty: what was written is not all of it.
func ExportRecord(ctx context.Context, c Config, w io.Writer, what Export) (Exported, error) {
	var out Exported
	places, err := audit.PlacesFrom(what.After)
	if err != nil {
		return out, err
	}
	to, err := export.New(w, export.Format(what.Format), export.Options{Version: Version, Bodies: what.Bodies})
	if err != nil {
		return out, err
	}
	r, err := c.record(ctx, store.Options{ReadOnly: true})
	if err != nil {
		return out, err
	}
	defer r.close()
	if !what.Bodies {
		r.Keys.Bodies = nil
	}
	for e, err := range r.After(ctx, what.Filter, what.Text, places, &out.Warnings) {
		if err == nil {
			err = to.Write(e)
		}
		if err != nil {
			return out, known(err)
		}
		if out.Entries++; what.Progress != nil && out.Entries%1000 == 0 {
			what.Progress(out.Entries)
		}
	}
	if len(r.Stores) == 0 {
		out.Warnings = append(out.Warnings, "there is no record yet")
	}
	if err := to.Close(); err != nil {
		return out, known(err)
	}
	out.Cursor = places.String()
	return out, nil
}
