package audit

import (
	"context"
	"crypto/cipher"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"retort/internal/core"
)

// Query selects the entries of one page.
type Query struct {
	Filter        // its fields Before, Limit and Bare are ignored
	Text   string // selects entries that contain this text in a field, the facts or the body, in upper or lower case
	Limit  int    // maximum number of entries; 0: 50
	Cursor string // Cursor of the previous page; "": begin with the newest entry
}

// Page holds one page of entries, newest first.
type Page struct {
	Entries  []Entry  `json:"entries"`
	Cursor   string   `json:"cursor,omitempty"` // for the next page; "": this is the last one
	Warnings []string `json:"warnings,omitempty"`
}

const (
	pageSize  = 50
	openBatch = 256 // rows whose keys are looked up together
	keptKeys  = 1024
)

// Find returns a page of entries. The error for an invalid cursor is of kind invalid_arguments.
func (r *LogReader) Find(ctx context.Context, q Query) (Page, error) {
	if q.Limit <= 0 {
		q.Limit = pageSize
	}
	page := Page{Entries: []Entry{}}
	before, err := placeFrom(q.Cursor)
	if err != nil {
		return page, err
	}
	q.Before = before
	var last RowPosition
	for e, err := range r.StreamEntries(ctx, q.Filter, q.Text, q.Limit, &page.Warnings) {
		if err != nil {
			return page, err
		}
		if len(page.Entries) == q.Limit {
			page.Cursor = last.encodeCursor()
			break
		}
		page.Entries = append(page.Entries, e)
		last = RowPosition{At: e.At.UnixNano(), Chain: e.Chain, Seq: e.Seq}
	}
	return page, nil
}

func (p RowPosition) encodeCursor() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %d %s", p.At, p.Seq, p.Chain))
}

func placeFrom(cursor string) (*RowPosition, error) {
	if cursor == "" {
		return nil, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	p := &RowPosition{}
	if err == nil {
		_, err = fmt.Sscanf(string(text), "%d %d %s", &p.At, &p.Seq, &p.Chain)
	}
	if err != nil {
		return nil, core.Errorf(
			core.KindInvalidArguments, "audit.query", "%.40q is not a cursor", cursor,
		).WithHint("give the cursor of the previous page unchanged, or leave it out")
	}
	return p, nil
}

// StreamEntries streams matching entries with decrypted bodies, newest first. The argument few is the number of
// entries that the caller expects to read, or 0 if that is unknown. StreamEntries appends to warnings one warning
// for each file, or part of a file, that cannot be read.
func (r *LogReader) StreamEntries(ctx context.Context, f Filter, text string, few int, warnings *[]string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		defer r.addWarnings(warnings)
		o := r.newOpener(ctx, warnings)
		text = strings.ToLower(text)
		f.Limit = 0
		size := openBatch
		if few > 0 && text == "" {
			f.Limit = few + 1
			size = min(size, few+1)
		}
		o.streamEntries(r.mergedRows(ctx, f), text, size, yield)
	}
}

// streamEntries converts rows to entries with decrypted bodies, and yields those entries that contain the given text.
// It returns false after an error or when the consumer stops.
func (o *bodyOpener) streamEntries(rows iter.Seq2[LogRow, error], text string, size int, yield func(Entry, error) bool) bool {
	give := func(rows []LogRow) bool {
		entries, err := o.openEntries(rows)
		if err != nil {
			yield(Entry{}, err)
			return false
		}
		for _, e := range entries {
			if (text == "" || e.containsText(text)) && !yield(e, nil) {
				return false
			}
		}
		return true
	}
	batch := make([]LogRow, 0, size)
	for row, err := range rows {
		if err != nil {
			yield(Entry{}, err)
			return false
		}
		if batch = append(batch, row); len(batch) == size {
			if !give(batch) {
				return false
			}
			batch = batch[:0]
		}
	}
	return give(batch)
}

// bodyOpener decrypts the bodies of entries and caches their keys.
type bodyOpener struct {
	ctx        context.Context
	record     *LogReader
	chains     []*recordChain
	wrap       cipher.AEAD            // decrypts the keys; nil: no body is decrypted
	keys       map[string]cipher.AEAD // by chain and ID; nil value: the key was destroyed
	existing   map[string]bool        // keys that exist, even if they cannot be decrypted
	owners     map[string][2]string   // session and principal of the keys that exist
	unreadable map[string]bool        // keys that are encrypted for another person, or damaged
}

func (r *LogReader) newOpener(ctx context.Context, warnings *[]string) *bodyOpener {
	o := &bodyOpener{
		ctx: ctx, record: r, keys: map[string]cipher.AEAD{}, unreadable: map[string]bool{}, existing: map[string]bool{},
		owners: map[string][2]string{},
	}
	var err error
	if o.chains, err = r.listChains(ctx); err == nil && r.Keys.Bodies != nil {
		o.wrap, err = r.Keys.wrapCipher()
	}
	if o.wrap == nil && warnings != nil {
		*warnings = append(*warnings, fmt.Sprintf("entries are returned without their bodies: the key cannot be read (%v)", err))
	}
	return o
}

// openEntries converts rows to entries with decrypted bodies.
func (o *bodyOpener) openEntries(rows []LogRow) ([]Entry, error) {
	if o.wrap != nil {
		if err := o.loadKeys(rows); err != nil {
			return nil, err
		}
	}
	all := make([]Entry, len(rows))
	for i := range rows {
		all[i] = plainEntry(rows[i])
		all[i].Body, all[i].Erased = o.openBody(&rows[i])
	}
	return all, nil
}

// openBody returns the decrypted body of a row. It reports the body as erased if its key is missing, or if the key
// does not fit because the original one was destroyed and replaced.
func (o *bodyOpener) openBody(r *LogRow) (body json.RawMessage, erased bool) {
	if len(r.Body) == 0 || o.wrap == nil {
		return nil, false
	}
	id := keyID(r)
	c := o.keys[keyIn(r.Chain, id)]
	if c == nil {
		return nil, !o.unreadable[keyIn(r.Chain, id)]
	}
	text, err := openText(c, r.Body, id)
	if err != nil {
		return nil, true
	}
	if !json.Valid(text) {
		text, _ = json.Marshal(string(text))
	}
	return text, false
}

// loadKeys loads the keys for the bodies of these rows into the cache.
func (o *bodyOpener) loadKeys(rows []LogRow) error {
	if len(o.keys) > keptKeys {
		clear(o.keys)
		clear(o.unreadable)
		clear(o.existing)
		clear(o.owners)
	}
	need := map[string][]string{}
	for i := range rows {
		r := &rows[i]
		id := keyID(r)
		if _, known := o.keys[keyIn(r.Chain, id)]; known || len(r.Body) == 0 {
			continue
		}
		o.keys[keyIn(r.Chain, id)] = nil
		need[r.Chain] = append(need[r.Chain], id)
	}
	for chain, ids := range need {
		if err := o.readKeys(chain, ids); err != nil {
			return err
		}
	}
	return nil
}

// keyIn returns the map key under which a body's encryption key is cached. It includes the chain, because an
// execution that continues in another chain has another encryption key there.
func keyIn(chain, id string) string { return chain + "\x00" + id }

// readKeys reads keys from the store that holds a chain.
func (o *bodyOpener) readKeys(chain string, ids []string) error {
	s := storeOf(o.chains, chain)
	if s == nil {
		return nil
	}
	found, err := s.Keys(o.ctx, ids)
	if err != nil && o.record.skipsStore(o.ctx, err) {
		for _, id := range ids {
			o.unreadable[keyIn(chain, id)] = true
		}
		return nil
	}
	for id, k := range found {
		o.existing[keyIn(chain, id)] = true
		o.owners[keyIn(chain, id)] = [2]string{k.Session, k.Principal}
		if o.wrap == nil {
			continue
		}
		c, err := unwrapKey(o.wrap, k)
		if o.keys[keyIn(chain, id)] = c; err != nil {
			o.unreadable[keyIn(chain, id)] = true
		}
	}
	return err
}

// containsText reports whether any field, the facts or the body of an entry contain the given text, ignoring case.
// The given text must be in lower case.
func (e *Entry) containsText(text string) bool {
	for _, s := range [...]string{string(e.Kind), e.Execution, e.Session, e.Principal, e.Server, e.Tool, e.Status, e.Chain} {
		if strings.Contains(strings.ToLower(s), text) {
			return true
		}
	}
	has := func(s string) bool { return strings.Contains(strings.ToLower(s), text) }
	return anyText(e.Facts, has) || anyText(e.Body, has)
}

// anyText reports whether the given function returns true for at least one text of a JSON document. The texts of a
// document are the document as a whole, and each name and string in it.
func anyText(document json.RawMessage, is func(string) bool) bool {
	if len(document) == 0 {
		return false
	}
	if is(string(document)) {
		return true
	}
	var v any
	return json.Unmarshal(document, &v) == nil && anyString(v, is)
}

func anyString(v any, is func(string) bool) bool {
	switch v := v.(type) {
	case string:
		return is(v)
	case []any:
		return slices.ContainsFunc(v, func(v any) bool { return anyString(v, is) })
	case map[string]any:
		for key, value := range v {
			if is(key) || anyString(value, is) {
				return true
			}
		}
	}
	return false
}
