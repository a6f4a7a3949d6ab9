package audit

import (
	"context"
	"iter"
	"time"
)

// LogRow is one entry as a store keeps it. A store does not interpret its fields. It returns every field unchanged,
// except that empty byte slices become nil. Strings may contain any bytes.
type LogRow struct {
	Chain     string // hexadecimal name; each engine that writes has its own chain
	Seq       int64  // sequence number in the chain: 1, 2, … without gaps
	At        int64  // nanoseconds since 1970
	Kind      string
	Execution string
	Session   string
	Principal string
	Server    string
	Tool      string
	Status    string
	Risk      int64 // risk score from 0 to 100, or -1 if unknown
	Micros    int64 // duration in microseconds
	Bytes     int64
	Returned  int64  // tokens that were returned to the model
	Avoided   int64  // tokens that were kept out of the model's context
	Facts     []byte // additional JSON data, not encrypted
	Body      []byte // encrypted, or nil
	Hash      []byte // 32 bytes: hash of all fields above and of the previous row's hash
	Code      []byte // message authentication code (MAC) of Hash
}

// BodyKey is the encrypted key for the bodies of an execution, a session or a chain. Deleting it erases these bodies.
type BodyKey struct {
	ID        string // ID of the execution or session, or of the chain for entries that belong to neither
	Session   string
	Principal string
	Wrapped   []byte
}

// WriteBatch holds rows and keys that a store writes either completely or not at all.
type WriteBatch struct {
	Rows   []LogRow // consecutive rows of one chain, which follow its head
	Keys   []BodyKey
	Opened []string // executions that have begun; LogStore.Open lists them until they are closed
	Closed []string
}

// ChainHead describes the end of a chain, which is its newest row. If Seq is 0, the chain is new.
type ChainHead struct {
	Chain string
	Seq   int64
	Hash  []byte // nil if Seq is 0
	Base  int64  // sequence number of the last row that was moved to archives
	Owner string // ID of the owner, as given to the store when the chain was created
}

// Filter selects rows. A field that is zero does not restrict the selection.
type Filter struct {
	Chain      string
	From, To   time.Time // From is included, To is excluded
	Kinds      []string
	Executions []string
	Session    string
	Principal  string
	Server     string
	Tool       string
	Statuses   []string
	MinRisk    int64
	// Before selects only rows that are older than this position.
	Before *RowPosition
	Limit  int  // 0: no limit
	Bare   bool // omit Facts and Body
}

// RowPosition is the position of a row in the order of all rows of all chains. Rows are ordered by At, then Chain,
// then Seq.
type RowPosition struct {
	At    int64
	Chain string
	Seq   int64
}

// UsageGroup holds the sums of all rows with the same day, kind, server, tool and status.
type UsageGroup struct {
	Day, Kind, Server, Tool, Status string // Day is in the form 2006-01-02, in UTC
	Count, Micros, Bytes            int64
	Returned, Avoided               int64
	MaxRisk                         int64
}

// BriefFinder is a LogStore that can return rows without reading all their columns.
type BriefFinder interface {
	// Brief works like Find, but ignores Before and fills in only At, Seq, Principal, Status, Micros, Returned and
	// Avoided of each row.
	Brief(ctx context.Context, f Filter) ([]LogRow, error)
}

// LogStore keeps rows durably: rows that Append has written without an error survive a power loss. Each writer has
// its own chain. A second writer of the same store gets another chain, or an error that names the owner. A LogStore
// is safe for concurrent use, but calls of Append must not overlap.
type LogStore interface {
	// Head returns the end of this store's own chain, read from disk.
	Head(ctx context.Context) (ChainHead, error)
	// Append writes a batch. It writes nothing if the batch's first row does not follow the head, or if one of its
	// keys already exists. After any other error, the caller must ask Head whether the batch was written, because the
	// connection may have been lost after the write. After an error that wraps ErrUnsynced or ErrGone, neither the
	// written rows nor Head can be trusted, and every later write returns the same error.
	Append(ctx context.Context, b WriteBatch) error
	// Open returns the open executions of this store's own chain, which are those that have begun and not ended.
	Open(ctx context.Context) ([]string, error)
	// Chains returns the heads of all chains.
	Chains(ctx context.Context) ([]ChainHead, error)
	// Find yields matching rows, newest first.
	Find(ctx context.Context, f Filter) iter.Seq2[LogRow, error]
	// Walk yields the rows of a chain in order, beginning at a sequence number.
	Walk(ctx context.Context, chain string, from int64) iter.Seq2[LogRow, error]
	// Groups adds up the matching rows by day, kind, server, tool and status.
	Groups(ctx context.Context, f Filter) ([]UsageGroup, error)
	// Keys returns the keys with these IDs. IDs without a key are omitted.
	Keys(ctx context.Context, ids []string) (map[string]BodyKey, error)
	// KeysOf returns the IDs of all keys that belong to a principal's session.
	KeysOf(ctx context.Context, principal, session string) ([]string, error)
	// Forget deletes keys so that the store's files contain no trace of them. It returns the number of deleted keys.
	Forget(ctx context.Context, ids []string) (int, error)
	// Drop deletes the rows of a chain up to a sequence number, and sets ChainHead.Base to that number.
	Drop(ctx context.Context, chain string, upTo int64) error
	// Size returns the size of the store in bytes.
	Size(ctx context.Context) (int64, error)
	Close() error
}
