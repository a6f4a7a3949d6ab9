package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"retort/internal/core"
)

// StatusKeys is the status of an erasure entry that lists the keys which are about to be destroyed.
const StatusKeys = "keys"

// erasedKeys is the additional JSON data ("facts") of an erasure entry that has the status StatusKeys.
type erasedKeys struct {
	Keys []string `json:"keys"`
}

// maxKeysPerErasure bounds the number of keys that one erasure entry lists.
const maxKeysPerErasure = 500

// recordErasure writes an entry that lists the keys which are about to be destroyed. Without it, verification would
// report the missing keys as tampering. If it returns an error, the caller must not destroy any key.
func (r *LogReader) recordErasure(ids []string) error {
	if r.Erasing == nil {
		return nil
	}
	for part := range slices.Chunk(ids, maxKeysPerErasure) {
		e := core.AuditEvent{Kind: core.EventErasure, Status: StatusKeys, Facts: map[string]any{"keys": part}}
		if err := r.Erasing(e); err != nil {
			return fmt.Errorf("nothing was erased, because the erasure could not be recorded: %w", err)
		}
	}
	return nil
}

// keylessBodies collects the missing keys of bodies that cannot be decrypted, and the erasures that explain why
// keys are missing.
type keylessBodies struct {
	lost   map[string]lostKey // missing keys, by chain and ID
	erased map[string]int64   // time of erasure in nanoseconds since 1970, by ID of the key
}

// lostKey represents a missing key, together with one entry that needs it. This is the first such entry or, for
// the key of a session, the last one.
type lostKey struct {
	chain, id string
	seq, at   int64
	shared    bool // it is a session's key, for which a new key is made after an erasure
}

// erasureGrace is the time after an erasure in which an engine may still encrypt bodies with the destroyed key. It
// includes a minute for the difference between the clocks of the engine and of the erasing command.
const erasureGrace = 2*ringReadPause + time.Minute

// collectKeyless examines rows for verification. It collects those whose bodies cannot be decrypted, and the keys
// that erasure entries list.
func (k *chainCheck) collectKeyless(rows []LogRow) error {
	for i := range rows {
		k.collectErasure(&rows[i])
	}
	if k.foreign || k.c.store == nil {
		return nil
	}
	if err := k.opener.loadKeys(rows); err != nil {
		return err
	}
	for i := range rows {
		r := &rows[i]
		if len(r.Body) == 0 {
			continue
		}
		if k.opener.canOpen(r) {
			k.checkKeyOwner(r)
			continue
		}
		id := keyID(r)
		if _, known := k.keyless.lost[keyIn(r.Chain, id)]; !known || r.Execution == "" {
			k.keyless.lost[keyIn(r.Chain, id)] = lostKey{r.Chain, id, r.Seq, r.At, r.Execution == ""}
		}
	}
	return nil
}

// checkKeyOwner adds a fault if the table of keys names another session or principal for the key of an entry than
// the entry itself. Erasures find keys by session and principal, so they would miss such a key.
func (k *chainCheck) checkKeyOwner(r *LogRow) {
	made := r.Execution == "" || r.Kind == string(core.EventRequest)
	of := k.opener.owners[keyIn(r.Chain, keyID(r))]
	if made && of != [2]string{r.Session, r.Principal} {
		k.addFault(
			r.Seq, Edited,
			fmt.Sprintf(
				"the table of keys names another session or person for the key of entry %d of chain %s than the entry",
				r.Seq, r.Chain,
			),
		)
	}
}

func (k *chainCheck) collectErasure(r *LogRow) {
	var named erasedKeys
	if r.Kind != string(core.EventErasure) || r.Status != StatusKeys || json.Unmarshal(r.Facts, &named) != nil {
		return
	}
	for _, id := range named.Keys {
		k.keyless.erased[id] = max(k.keyless.erased[id], r.At)
	}
}

// canOpen reports whether the body of a row can be decrypted. If the owner's key is not available, it only reports
// whether the key of the body still exists.
func (o *bodyOpener) canOpen(r *LogRow) bool {
	id := keyIn(r.Chain, keyID(r))
	if o.wrap == nil {
		return o.existing[id]
	}
	body, _ := o.openBody(r)
	return body != nil
}

// findUnaccountedKeys adds a finding for each chain in which keys are missing that no erasure entry lists.
func (v *recordVerifier) findUnaccountedKeys() {
	byChain := map[string][]lostKey{}
	for _, l := range v.keyless.lost {
		at, named := v.keyless.erased[l.id]
		if !named || l.shared && l.at > at+int64(erasureGrace) {
			byChain[l.chain] = append(byChain[l.chain], l)
		}
	}
	for _, chain := range slices.Sorted(maps.Keys(byChain)) {
		all := byChain[chain]
		slices.SortFunc(all, func(a, b lostKey) int { return int(max(-1, min(1, a.seq-b.seq))) })
		v.addFinding(VerifyFinding{chain, all[0].seq, Keyless, fmt.Sprintf("the body of entry %d of chain %s cannot be decrypted: its key was destroyed or replaced, and no recorded erasure names that key (missing keys: %d)",
			all[0].seq, chain, len(all))})
	}
}

// StoreChecker is a LogStore that can check whether its other tables, such as the table of chains, agree with the
// entries.
type StoreChecker interface {
	// Check returns one sentence for each fault that it finds. Faults are a damaged file, incomplete indexes, unknown
	// tables, or a table of chains that contradicts the entries.
	Check(ctx context.Context) ([]string, error)
	// Standing returns the head (last entry) of a chain and its open executions, both read in one transaction.
	Standing(ctx context.Context, chain string) (ChainHead, []string, error)
}

// checkTables adds a finding for each fault that a StoreChecker reports in the tables of its store.
func (v *recordVerifier) checkTables(ctx context.Context) error {
	for _, s := range v.record.Stores {
		c, ok := s.(StoreChecker)
		if !ok {
			continue
		}
		says, err := c.Check(ctx)
		if err != nil && !v.record.skipsStore(ctx, err) {
			return err
		}
		for _, text := range says {
			v.addFinding(VerifyFinding{"", 0, Damaged, text})
		}
	}
	return nil
}

// checkChainTables adds a fault if the tables contradict the entries about a chain's owner, its end or its open
// executions.
func (k *chainCheck) checkChainTables(ctx context.Context) error {
	c, ok := k.c.store.(StoreChecker)
	if !ok || k.foreign || k.unread || k.found {
		return nil
	}
	head, open, err := c.Standing(ctx, k.c.Chain)
	if err != nil && k.record.skipsStore(ctx, err) {
		return nil
	}
	if err != nil {
		return err
	}
	if k.recordVerifier.out.Codes && k.out.Entries > 0 && head.Owner != k.codes.ownerID() {
		k.addFault(1, Edited, fmt.Sprintf("the table of chains names another owner for chain %s than its entries", k.c.Chain))
	}
	if head.Seq < k.next-1 {
		k.addFault(
			head.Seq+1, Edited,
			fmt.Sprintf("according to the table of chains, chain %s ends at entry %d, but there are %d", k.c.Chain, head.Seq, k.next-1),
		)
	}
	if head.Seq != k.next-1 || !k.stories.whole {
		return nil // more was written meanwhile, or what began before is not known
	}
	told := slices.Sorted(maps.Keys(k.stories.open))
	if slices.Sort(open); !slices.Equal(open, told) {
		k.addFault(
			k.next-1, Edited,
			fmt.Sprintf(
				"the table of open executions of chain %s does not match its entries: it lists %s, but the entries leave %s open", k.c.Chain,
				firstNames(open), firstNames(told),
			),
		)
	}
	return nil
}

// firstNames formats the first five names and says how many more there are.
func firstNames(names []string) string {
	const most = 5
	if len(names) == 0 {
		return "none"
	}
	text := strings.Join(names[:min(len(names), most)], ", ")
	if len(names) > most {
		text += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return text
}
