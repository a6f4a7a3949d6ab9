package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"retort/internal/core"
)

// ErrEmpty means that the file of a store is empty, for example because the disk was full when it was created.
var ErrEmpty = errors.New("it has no entries and no tables")

// unreadFiles collects the errors of files that cannot be read. It is safe for concurrent use.
type unreadFiles struct {
	mu  sync.Mutex
	all []error
}

func (u *unreadFiles) addError(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !slices.ContainsFunc(u.all, func(known error) bool { return known.Error() == err.Error() }) {
		u.all = append(u.all, err)
	}
}

// LeaveOut records that a file of the audit log cannot be read. The reader continues with the other files and
// reports the missing one with each result.
func (r *LogReader) LeaveOut(err error) { r.unread.addError(err) }

// UnreadErrors returns the errors of the files, or parts of files, that could not be read so far.
func (r *LogReader) UnreadErrors() []error {
	r.unread.mu.Lock()
	defer r.unread.mu.Unlock()
	return slices.Clone(r.unread.all)
}

// messageOf returns the message of an error without its kind.
func messageOf(err error) string {
	if known, ok := err.(*core.Error); ok {
		return known.Message
	}
	return err.Error()
}

// skipsStore records the error of a store and reports whether to continue without that store. It returns false if ctx
// is done.
func (r *LogReader) skipsStore(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	r.LeaveOut(err)
	return true
}

// addWarnings adds a warning for each file, or part of a file, that could not be read. It does nothing if warnings is
// nil.
func (r *LogReader) addWarnings(warnings *[]string) {
	if warnings == nil {
		return
	}
	for _, err := range r.UnreadErrors() {
		if text := "omitted: " + messageOf(err); !slices.Contains(*warnings, text) {
			*warnings = append(*warnings, text)
		}
	}
}

// damageError returns an error if any file could not be read. Empty files do not count.
func (r *LogReader) damageError() error {
	var all []error
	for _, err := range r.UnreadErrors() {
		if !errors.Is(err, ErrEmpty) {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

// SumUsage returns the usage totals of all stores that can be read.
func (r *LogReader) SumUsage(ctx context.Context, s UsageSpan, ends bool) (Usage, error) {
	u, err := SumUsageOf(ctx, r.soundStores(ctx), s, ends)
	if err == nil || ctx.Err() != nil {
		return u, err
	}
	sound := slices.DeleteFunc(slices.Clone(r.soundStores(ctx)), func(one LogStore) bool {
		_, err := SumUsageOf(ctx, []LogStore{one}, s, ends)
		return err != nil && r.skipsStore(ctx, err)
	})
	return SumUsageOf(ctx, sound, s, ends)
}

// reportDamage adds a finding for each file that could not be read, and a note for each empty one.
func (v *recordVerifier) reportDamage() {
	for _, err := range v.record.UnreadErrors() {
		if errors.Is(err, ErrEmpty) {
			v.addNote("%s", messageOf(err))
			continue
		}
		v.addFinding(VerifyFinding{"", 0, Damaged, fmt.Sprintf("not all of the audit log can be read: %s", messageOf(err))})
	}
}
