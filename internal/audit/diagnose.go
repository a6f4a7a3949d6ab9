package audit

import (
	"bytes"
	"context"
	"fmt"
)

// maxLookahead bounds how many rows after a faulty row are searched for the cause.
const maxLookahead = 100_000

// diagnoseRow returns a finding that says why a row does not follow the row before it.
func (k *chainCheck) diagnoseRow(ctx context.Context, r *LogRow) (VerifyFinding, error) {
	d, err := k.lookAround(ctx, r)
	what, says := d.describeFault()
	return VerifyFinding{r.Chain, r.Seq, what, fmt.Sprintf("entry %d of chain %s %s", r.Seq, r.Chain, says)}, err
}

// lookAround collects the rows after a faulty row that are needed to find its cause.
func (k *chainCheck) lookAround(ctx context.Context, r *LogRow) (*rowDiagnosis, error) {
	d := &rowDiagnosis{chainCheck: k, bad: r}
	for row, err := range k.record.walkChain(ctx, k.c, r.Seq+1, nil) {
		if err != nil || d.addLaterRow(&row) || row.Seq > r.Seq+maxLookahead {
			break // what is wrong with the rest is found in its turn
		}
	}
	return d, ctx.Err()
}

// rowDiagnosis finds the cause of a faulty row from the rows that follow it.
type rowDiagnosis struct {
	*chainCheck
	bad     *LogRow
	next    *LogRow // the row after it
	belongs *LogRow // a later row whose hash fits the position of the faulty row
}

// addLaterRow examines one row after the faulty one. It returns true when the cause is known and no further row is
// needed.
func (d *rowDiagnosis) addLaterRow(r *LogRow) bool {
	if d.next == nil {
		next := *r
		d.next = &next
		if d.isLinked() || d.isShifted() {
			return true
		}
	}
	moved := *r
	moved.Seq = d.bad.Seq
	if bytes.Equal(moved.computeHash(d.before), r.Hash) {
		found := *r
		d.belongs = &found
		return true
	}
	return false
}

// isGenuine reports whether the MAC of the faulty row matches its stored hash, which only an owner of the key can
// achieve.
func (d *rowDiagnosis) isGenuine() bool {
	return d.codes.mac != nil && bytes.Equal(hashMAC(d.codes.mac, d.bad.Hash), d.bad.Code)
}

// isLinked reports whether the next row follows the hash that the faulty row stores. If so, the faulty row is in its
// place, and only its content was changed.
func (d *rowDiagnosis) isLinked() bool {
	return d.next.Seq == d.bad.Seq+1 && bytes.Equal(d.next.computeHash(d.bad.Hash), d.next.Hash)
}

// isShifted reports whether rows in front of the faulty row were removed and the later rows renumbered. It concludes
// this if the hash of the next row fits a higher sequence number than the one that the row has. It tries numbers up
// to 1000 higher.
func (d *rowDiagnosis) isShifted() bool {
	for by := int64(1); by <= 1000; by++ {
		moved := *d.next
		moved.Seq += by
		if bytes.Equal(moved.computeHash(d.bad.Hash), moved.Hash) {
			return true
		}
	}
	return false
}

func (d *rowDiagnosis) describeFault() (what, says string) {
	switch {
	case d.next == nil && d.isGenuine():
		return Edited, "does not match its hash: it was edited, or entries before it were deleted"
	case d.next == nil:
		return Edited, "does not match its hash: it was edited"
	case d.isLinked():
		return Edited, "does not match its hash: it was edited"
	case d.isShifted():
		return Deleted, "is missing, perhaps with some that followed it, and the rest was renumbered"
	case d.belongs == nil:
		return Edited, "and the entries around it do not continue each other: they were edited or replaced"
	case d.isExchanged():
		return Swapped, fmt.Sprintf("is at position %d, and another entry is in its place", d.belongs.Seq)
	case d.belongs.Seq == d.bad.Seq+1:
		return Inserted, "was inserted: the entry that belongs there comes after it"
	}
	return Swapped, fmt.Sprintf("is at position %d: entries were moved", d.belongs.Seq)
}

// isExchanged reports whether the faulty row and the row that belongs in its place were exchanged. It can only check
// this if the two are neighbours; otherwise it returns true.
func (d *rowDiagnosis) isExchanged() bool {
	if d.belongs.Seq != d.bad.Seq+1 {
		return true
	}
	moved := *d.bad
	moved.Seq = d.belongs.Seq
	return bytes.Equal(moved.computeHash(d.belongs.Hash), d.bad.Hash)
}
