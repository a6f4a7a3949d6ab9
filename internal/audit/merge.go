package audit

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
)

// rowSource yields the rows of a store or an archive, newest first. It opens the store or archive when the first row
// is needed.
type rowSource struct {
	newest RowPosition // an upper bound for the positions of its rows
	open   func() iter.Seq2[LogRow, error]

	next func() (LogRow, error, bool)
	stop func()
	row  LogRow
	err  error
}

// nextRow moves to the next row. It returns false at the end.
func (s *rowSource) nextRow() bool {
	if s.next == nil {
		s.next, s.stop = iter.Pull2(s.open())
	}
	var ok bool
	s.row, s.err, ok = s.next()
	s.newest = placeOf(&s.row)
	return ok
}

// mergedRows yields the rows of all stores and archives, newest first and without duplicates.
func (r *LogReader) mergedRows(ctx context.Context, f Filter) iter.Seq2[LogRow, error] {
	return func(yield func(LogRow, error) bool) {
		sources, err := r.openSources(ctx, f)
		if err != nil {
			yield(LogRow{}, err)
			return
		}
		defer func() {
			for _, s := range sources {
				if s.stop != nil {
					s.stop()
				}
			}
		}()
		var last RowPosition
		for given := 0; len(sources) > 0 && (f.Limit == 0 || given < f.Limit); {
			i := newestOf(sources)
			s := sources[i]
			if s.next != nil && s.newest != last {
				if !yield(s.row, nil) {
					return
				}
				last = s.newest
				given++
			}
			if more := s.nextRow(); s.err != nil && r.skipsStore(ctx, s.err) {
				s.stop()
				sources = slices.Delete(sources, i, i+1)
			} else if s.err != nil {
				yield(LogRow{}, s.err)
				return
			} else if !more {
				s.stop()
				sources = slices.Delete(sources, i, i+1)
			}
		}
	}
}

// newestOf returns the index of the source to read next, which is the one that may have the newest row. If several
// sources may have it, newestOf prefers one that is not opened yet, because its rows are not known.
func newestOf(sources []*rowSource) int {
	best := 0
	for i, s := range sources {
		order := s.newest.compareTo(sources[best].newest)
		if order > 0 || order == 0 && s.next == nil {
			best = i
		}
	}
	return best
}

func (r *LogReader) openSources(ctx context.Context, f Filter) ([]*rowSource, error) {
	end := RowPosition{At: 1<<63 - 1, Chain: "\xff"}
	var all []*rowSource
	for _, s := range r.soundStores(ctx) {
		all = append(all, &rowSource{newest: end, open: func() iter.Seq2[LogRow, error] { return s.Find(ctx, f) }})
	}
	kept, err := listArchives(r.Archives)
	for _, a := range kept {
		if a.gone || f.Chain != "" && f.Chain != a.chain {
			continue
		}
		from, to := a.timeSpan()
		if !f.From.IsZero() && to < f.From.UnixNano() || !f.To.IsZero() && from >= f.To.UnixNano() || f.Before != nil && from > f.Before.At {
			continue
		}
		all = append(all, &rowSource{newest: RowPosition{At: to, Chain: "\xff"}, open: func() iter.Seq2[LogRow, error] { return a.findRows(f) }})
	}
	return all, err
}

// findRows yields the matching rows of an archive, newest first.
func (a archiveFile) findRows(f Filter) iter.Seq2[LogRow, error] {
	return newestFirst(func(yield func(LogRow, error) bool) {
		for r, err := range a.readRows(nil) {
			if err != nil {
				err = fmt.Errorf("the archive %s: %w", filepath.Base(a.path), err)
			}
			if !yield(r, err) {
				return
			}
		}
	}, f)
}
