package audit

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"retort/internal/core"
)

// ReadPositions maps each chain to the sequence number of the last entry that was read from it.
type ReadPositions map[string]int64

// String formats the positions as CHAIN:SEQ, separated by commas. PlacesFrom parses this format.
func (p ReadPositions) String() string {
	var all []string
	for _, chain := range slices.Sorted(maps.Keys(p)) {
		all = append(all, chain+":"+strconv.FormatInt(p[chain], 10))
	}
	return strings.Join(all, ",")
}

// PlacesFrom parses positions in the format of ReadPositions.String. An empty text means the beginning of all chains.
// The error is of kind invalid_arguments.
func PlacesFrom(text string) (ReadPositions, error) {
	p := ReadPositions{}
	for part := range strings.SplitSeq(strings.TrimSpace(text), ",") {
		if part == "" {
			continue
		}
		chain, number, _ := strings.Cut(strings.TrimSpace(part), ":")
		seq, err := strconv.ParseInt(number, 10, 64)
		if err != nil || seq < 0 || chain == "" || p[chain] > 0 {
			return nil, core.Errorf(
				core.KindInvalidArguments, "audit.export", "%.60q is not a position in the audit log", part,
			).WithHint("pass the text that the previous export printed after cursor:, unchanged")
		}
		p[chain] = seq
	}
	return p, nil
}

// After streams the entries that follow the positions in the argument places, oldest first, if they match f and
// contain text. Entries of one chain keep their order, and chains are merged by time. The stream ends at the entries
// that are the newest when it begins. Then After stores the positions of these entries in places, so that the next
// call continues there. It adds a warning for each file, or part of a file, that cannot be read.
func (r *LogReader) After(ctx context.Context, f Filter, text string, places ReadPositions, warnings *[]string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		chains, err := r.listChains(ctx)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		defer r.addWarnings(warnings)
		m := &chainFollower{ctx: ctx, record: r, filter: f, warnings: warnings}
		defer m.stopAll()
		for _, c := range chains {
			if f.Chain == "" || f.Chain == c.Chain {
				m.addChain(ctx, c, places[c.Chain])
			}
		}
		bodies := warnings
		if r.Keys.Bodies == nil {
			bodies = nil // nobody asked for them
		}
		if !r.newOpener(ctx, bodies).streamEntries(m.mergedRows(), strings.ToLower(text), openBatch, yield) {
			return
		}
		for _, s := range m.all {
			places[s.chain] = s.last
		}
	}
}

// chainFollower merges the rows of several chains by time. The rows of each chain keep their order.
type chainFollower struct {
	ctx      context.Context
	record   *LogReader
	filter   Filter
	warnings *[]string
	all      []*followedChain
}

// followedChain holds the reading position in one chain.
type followedChain struct {
	chain string
	last  int64 // sequence number of the last entry that was read
	end   int64 // sequence number of the last entry to read
	next  func() (LogRow, error, bool)
	stop  func()
	row   LogRow
	over  bool
}

func (m *chainFollower) addChain(ctx context.Context, c *recordChain, read int64) {
	s := &followedChain{chain: c.Chain, last: read, end: c.Seq}
	if c.store == nil {
		s.end = math.MaxInt64 // all of its archives
	}
	if read > s.end {
		*m.warnings = append(
			*m.warnings,
			fmt.Sprintf(
				"chain %s ends at entry %d, but was read up to entry %d before: its end was cut off, or an older copy was restored; run retort audit verify for details",
				c.Chain, c.Seq, read,
			),
		)
	}
	s.next, s.stop = iter.Pull2(m.record.walkChain(ctx, c, m.record.firstToRead(c.Chain, read+1, &m.filter), nil))
	m.all = append(m.all, s)
}

// firstToRead returns the sequence number of the first entry of a chain to read, which is at least from. It skips
// archives whose entries are all older than the filter allows.
func (r *LogReader) firstToRead(chain string, from int64, f *Filter) int64 {
	for !f.From.IsZero() {
		a, there, err := r.archiveWith(chain, from)
		if err != nil || !there || a.gone {
			break
		}
		if _, to := a.timeSpan(); to >= f.From.UnixNano() {
			break
		}
		from = a.last + 1
	}
	return from
}

func (m *chainFollower) stopAll() {
	for _, s := range m.all {
		s.stop()
	}
}

// mergedRows yields the matching rows of all chains, oldest first.
func (m *chainFollower) mergedRows() iter.Seq2[LogRow, error] {
	return func(yield func(LogRow, error) bool) {
		for _, s := range m.all {
			if err := m.advanceChain(s); err != nil {
				yield(LogRow{}, err)
				return
			}
		}
		for {
			s := m.oldestHead()
			if s == nil || !yield(s.row, nil) {
				return
			}
			if err := m.advanceChain(s); err != nil {
				yield(LogRow{}, err)
				return
			}
		}
	}
}

func (m *chainFollower) oldestHead() (first *followedChain) {
	for _, s := range m.all {
		if !s.over && (first == nil || placeOf(&s.row).compareTo(placeOf(&first.row)) < 0) {
			first = s
		}
	}
	return first
}

// advanceChain reads a chain up to its next matching row, or to its end. It skips a damaged archive and adds a
// warning.
func (m *chainFollower) advanceChain(s *followedChain) error {
	for s.last < s.end {
		row, err, ok := s.next()
		var d *damagedArchiveError
		switch {
		case !ok:
			s.over = true
			return nil
		case errors.As(err, &d):
			*m.warnings = append(*m.warnings, fmt.Sprintf("entries %d to %d of chain %s are omitted: %v", d.first, d.last, s.chain, err))
			continue
		case err != nil && m.record.skipsStore(m.ctx, err):
			s.over = true
			return nil
		case err != nil:
			return err
		}
		s.last = row.Seq
		if m.filter.matchesRow(&row) {
			s.row = row
			return nil
		}
	}
	s.over = true
	return nil
}
