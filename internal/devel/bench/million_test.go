package bench

import (
	"testing"

	"retort/internal/audit"
)

// TestLargeLogIsValid checks that the audit log that the benchmark writes passes its verification, because the
// benchmark measures how long that takes.
func TestLargeLogIsValid(t *testing.T) {
	b := &benchRun{home: t.TempDir()}
	if err := b.fillLog(t.Context(), "small", 500); err != nil {
		t.Fatal(err)
	}
	r, closeLog, err := b.readLog(t.Context(), "small")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = closeLog() }()
	v, err := r.Verify(t.Context(), audit.VerifyOptions{})
	if err != nil || !v.OK || v.Entries < 500 {
		t.Errorf("%d entries: %+v, %v", v.Entries, v.First, err)
	}
}
