// Package audit implements the audit log: chains of entries, in which each entry is bound by its hash to the entry
// before.
//
// An entry is written before the action that it describes. Every engine that writes has its own chain. The plain
// fields of an entry contain no values of programs, tools or people. Its body may contain such values, so it is
// encrypted with a key that belongs to its execution, session or chain. Destroying that key erases the body but
// leaves the chain valid.
package audit

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"time"

	"retort/internal/core"
)

// Entry is one entry of the audit log as readers see it.
type Entry struct {
	Chain     string         `json:"chain"`
	Seq       int64          `json:"seq"`
	At        time.Time      `json:"at"`
	Kind      core.EventKind `json:"kind"`
	Execution string         `json:"execution,omitempty"`
	Session   string         `json:"session,omitempty"`
	Principal string         `json:"principal,omitempty"`
	// UserID is the principal, or the operating system's user if the caller has no principal. Entries of kinds that
	// are written many times for one program, such as calls, never name the operating system's user.
	UserID   string          `json:"userId,omitempty"`
	Server   string          `json:"server,omitempty"`
	Tool     string          `json:"tool,omitempty"`
	Status   string          `json:"status,omitempty"`
	Risk     *int            `json:"risk,omitempty"`
	Millis   float64         `json:"duration_ms,omitempty"`
	Bytes    int64           `json:"bytes,omitempty"`
	Returned int64           `json:"tokens_returned,omitempty"`
	Avoided  int64           `json:"tokens_avoided,omitempty"`
	Facts    json.RawMessage `json:"facts,omitempty"`
	Body     json.RawMessage `json:"body,omitempty"`
	Erased   bool            `json:"erased,omitempty"` // the entry had a body, and the key of that body was destroyed
	Hash     string          `json:"hash"`
}

// plainEntry converts a row of the store to an entry without its body.
func plainEntry(r LogRow) Entry {
	e := Entry{
		Chain: r.Chain, Seq: r.Seq, At: time.Unix(0, r.At).UTC(), Kind: core.EventKind(r.Kind), Execution: r.Execution,
		Session: r.Session, Principal: r.Principal, Server: r.Server, Tool: r.Tool, Status: r.Status,
		Millis: float64(r.Micros) / 1000, Bytes: r.Bytes, Returned: r.Returned, Avoided: r.Avoided, Facts: r.Facts, Hash: encodeHex(r.Hash),
	}
	e.UserID = userOf(r)
	if r.Risk >= 0 {
		risk := int(r.Risk)
		e.Risk = &risk
	}
	return e
}

// userOf returns the principal of an entry. If there is no principal, it returns the operating system's user that
// the entry names, or "".
func userOf(r LogRow) string {
	var f struct {
		User string `json:"user"`
	}
	if r.Principal == "" && bytes.Contains(r.Facts, []byte(`"user"`)) {
		_ = json.Unmarshal(r.Facts, &f) // what is no text is left out
	}
	return cmp.Or(r.Principal, f.User)
}

// namesUser reports whether entries of this kind name the operating system's user if they have no principal.
// Entries of kinds that are written many times for one program, such as calls, do not.
func namesUser(kind core.EventKind) bool {
	switch kind {
	case core.EventVerdict, core.EventCall, core.EventAnswer, core.EventRefusal, core.EventNetwork, core.EventCommand,
		core.EventAsked, core.EventGap:
		return false
	}
	return true
}

// rowOf converts an event to a row of the store. It leaves the chain, the sequence number, the body and the hash
// unset.
func rowOf(e core.AuditEvent) (LogRow, error) {
	r := LogRow{
		At: e.At.UnixNano(), Kind: string(e.Kind), Execution: e.Execution, Session: e.Session, Principal: e.Principal,
		Server: e.Server, Tool: e.Tool, Status: e.Status, Risk: -1, Micros: e.Duration.Microseconds(), Bytes: e.Bytes,
	}
	if e.Risk != nil {
		r.Risk = int64(*e.Risk)
	}
	if e.Tokens != nil {
		r.Returned, r.Avoided = int64(e.Tokens.Returned), int64(e.Tokens.Avoided)
	}
	facts := e.Facts
	for name, value := range map[string]string{"client": e.Client, "effect": e.Effect} {
		if value != "" {
			facts = withFact(facts, name, value)
		}
	}
	if len(facts) == 0 {
		return r, nil
	}
	var err error
	r.Facts, err = json.Marshal(facts)
	return r, err
}

func withFact(facts map[string]any, name string, value any) map[string]any {
	all := make(map[string]any, len(facts)+1)
	for k, v := range facts {
		all[k] = v
	}
	all[name] = value
	return all
}

// computeHash returns the hash of a row, which covers all fields of the row except Hash and Code. It also covers the
// hash of the previous row, which is nil for the first row.
func (r *LogRow) computeHash(before []byte) []byte {
	h := sha256.New()
	buf := make([]byte, 0, 512)
	buf = append(buf, "retort audit 1\n"...)
	buf = appendText(buf, before)
	buf = appendText(buf, r.Chain)
	for _, n := range [...]int64{r.Seq, r.At, r.Risk, r.Micros, r.Bytes, r.Returned, r.Avoided} {
		buf = binary.BigEndian.AppendUint64(buf, uint64(n))
	}
	for _, s := range [...]string{r.Kind, r.Execution, r.Session, r.Principal, r.Server, r.Tool, r.Status} {
		buf = appendText(buf, s)
	}
	buf = appendText(buf, r.Facts)
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(r.Body)))
	h.Write(buf)
	h.Write(r.Body)
	return h.Sum(nil)
}

func appendText[T string | []byte](buf []byte, s T) []byte {
	return append(binary.BigEndian.AppendUint32(buf, uint32(len(s))), s...)
}

// codeSize is the length of the MAC of an entry, in bytes.
const codeSize = 16

// hashMAC returns the message authentication code (MAC) of an entry's hash. It cannot be forged without the key.
func hashMAC(key, hash []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(hash)
	return h.Sum(nil)[:codeSize]
}
