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

// Places records how far a reader has read: the last entry of each chain.
type Places map[string]int64

// String returns what PlacesFrom reads: CHAIN:SEQ, with commas between them.
func (p Places) String() string {
	var all []string
	for _, chain := range slices.Sorted(maps.Keys(p)) {
		all = append(all, chain+":"+strconv.FormatInt(p[chain], 10))
	}
	return strings.Join(all, ",")
}

// PlacesFrom reads what String has written; an empty text is the beginning of everything.
// The error is invalid_arguments.
func PlacesFrom(text string) (Places, error) {
	p := Places{}
	for part := range strings.SplitSeq(strings.TrimSpace(text), ",") {
		if part == "" {
			continue
		}
		chain, number, _ := strings.Cut(strings.TrimSpace(part), ":")
		seq, err := strconv.ParseInt(number, 10, 64)
		if err != nil || seq < 0 || chain == "" || p[chain] > 0 {
			return nil, core.Errorf(core.KindInvalidArguments, "audit.export", "%.60q is no place in the record", part).WithHint("give what the export before has printed after cursor: as it is")
		}
		p[chain] = seq
	}
	return p, nil
}

// After streams the entries that match f and text and come after places, oldest first: each chain in its own order,
// and the chains by time. It ends where the chains ended when it began, and updates places. Parts that could not be
// read are added to warnings.
func (r *Record) After(ctx context.Context, f Filter, text string, places Places, warnings *[]string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		chains, err := r.chains(ctx)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		defer r.warn(warnings)
		m := &follower{ctx: ctx, record: r, filter: f, warnings: warnings}
		defer m.stop()
		for _, c := range chains {
			if f.Chain == "" || f.Chain == c.Chain {
				m.add(ctx, c, places[c.Chain])
			}
		}
		bodies := warnings
		if r.Keys.Bodies == nil {
			bodies = nil // nobody asked for them
		}
		if !r.opener(ctx, bodies).stream(m.rows(), strings.ToLower(text), openBatch, yield) {
			return
		}
		for _, s := range m.all {
			places[s.chain] = s.last
		}
	}
}

// follower merges chains, each in its own order.
type follower struct {
	ctx      context.Context
	record   *Record
	filter   Filter
	warnings *[]string
	all      []*followed
}

// followed represents one chain.
type followed struct {
	chain string
	last  int64 // entry that was read
	end   int64 // entry that counts
	next  func() (Row, error, bool)
	stop  func()
	row   Row
	over  bool
}

func (m *follower) add(ctx context.Context, c *chain, read int64) {
	s := &followed{chain: c.Chain, last: read, end: c.Seq}
	if c.store == nil {
		s.end = math.MaxInt64 // all of its archives
	}
	if read > s.end {
		*m.warnings = append(*m.warnings, fmt.Sprintf("chain %s ends at entry %d and was read up to %d before: its end was cut off, or an older copy was brought back; retort audit verify says more", c.Chain, c.Seq, read))
	}
	s.next, s.stop = iter.Pull2(m.record.walk(ctx, c, m.record.skipped(c.Chain, read+1, &m.filter), nil))
	m.all = append(m.all, s)
}

// skipped returns where to begin so that archives which are too old are not read.
func (r *Record) skipped(chain string, from int64, f *Filter) int64 {
	for !f.From.IsZero() {
		a, there, err := r.covering(chain, from)
		if err != nil || !there || a.gone {
			break
		}
		if _, to := a.span(); to >= f.From.UnixNano() {
			break
		}
		from = a.last + 1
	}
	return from
}

func (m *follower) stop() {
	for _, s := range m.all {
		s.stop()
	}
}

// rows gives the rows that fit.
func (m *follower) rows() iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for _, s := range m.all {
			if err := m.advance(s); err != nil {
				yield(Row{}, err)
				return
			}
		}
		for {
			s := m.oldest()
			if s == nil || !yield(s.row, nil) {
				return
			}
			if err := m.advance(s); err != nil {
				yield(Row{}, err)
				return
			}
		}
	}
}

func (m *follower) oldest() (first *followed) {
	for _, s := range m.all {
		if !s.over && (first == nil || placeOf(&s.row).compare(placeOf(&first.row)) < 0) {
			first = s
		}
	}
	return first
}

// advance moves to the next matching row of a chain.
func (m *follower) advance(s *followed) error {
	for s.last < s.end {
		row, err, ok := s.next()
		var d *damaged
		switch {
		case !ok:
			s.over = true
			return nil
		case errors.As(err, &d):
			*m.warnings = append(*m.warnings, fmt.Sprintf("entries %d to %d of chain %s are left out: %v", d.first, d.last, s.chain, err))
			continue
		case err != nil && m.record.passes(m.ctx, err):
			s.over = true
			return nil
		case err != nil:
			return err
		}
		s.last = row.Seq
		if m.filter.fits(&row) {
			s.row = row
			return nil
		}
	}
	s.over = true
	return nil
}
