package audit

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"retort/internal/base/seal"
)

// ArchiveSeal is the signed last line of an archive file, with which the file's content is verified. When the
// archive is deleted, its seal is kept in a separate file, so that later entries of the chain can still be
// verified.
type ArchiveSeal struct {
	Chain     string     `json:"chain"`
	First     int64      `json:"first"`
	Last      int64      `json:"last"`
	Before    string     `json:"before,omitempty"` // hash of the entry before the archive's first one
	FirstHash string     `json:"first_hash"`
	Hash      string     `json:"hash"` // hash of the archive's last entry
	From      time.Time  `json:"from"` // time of the oldest entry
	To        time.Time  `json:"to"`
	Deleted   *time.Time `json:"deleted,omitempty"`
	Key       string     `json:"key"` // public Ed25519 key, in base64
	Sig       string     `json:"sig"` // signature of this JSON object without the field sig
}

func (s ArchiveSeal) signedText() []byte {
	s.Sig = ""
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // it is made of strings and numbers
	}
	return append([]byte("archive "), text...)
}

func (s ArchiveSeal) withSignature(key ed25519.PrivateKey) ArchiveSeal {
	s.Key = base64.StdEncoding.EncodeToString(key.Public().(ed25519.PublicKey))
	s.Sig = base64.StdEncoding.EncodeToString(ed25519.Sign(key, s.signedText()))
	return s
}

func (s ArchiveSeal) isSignedBy(key ed25519.PublicKey) bool {
	return verifySignature(key, s.Key, s.Sig, s.signedText())
}

// archiveFile represents a file of entries that were moved out of the store, or the seal that remains of a deleted
// archive.
type archiveFile struct {
	path        string
	chain       string
	first, last int64
	gone        bool
}

const (
	archiveEnd = ".jsonl.gz"
	goneEnd    = ".gone"
	maxRow     = 64 << 20 // maximum length of a line in an archive, in bytes
)

func archiveName(chain string, first, last int64) string {
	return fmt.Sprintf("%s-%d-%d", chain, first, last)
}

// listArchives returns the archives in a folder, sorted by chain and first entry. While an archive is being deleted,
// both its file and its separate seal exist. It is then listed once, as an archive that still exists.
func listArchives(dir string) ([]archiveFile, error) {
	entries, err := os.ReadDir(dir)
	if dir == "" || errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []archiveFile
	for _, e := range entries {
		if a, ok := archiveOf(dir, e.Name()); ok {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b archiveFile) int {
		if a.chain != b.chain {
			return strings.Compare(a.chain, b.chain)
		}
		if a.first != b.first {
			return int(max(-1, min(1, a.first-b.first)))
		}
		return strings.Compare(b.path, a.path) // .jsonl.gz before .gone
	})
	return slices.CompactFunc(all, func(a, b archiveFile) bool { return a.chain == b.chain && a.first == b.first && a.last == b.last }), err
}

func archiveOf(dir, name string) (a archiveFile, ok bool) {
	stem, is := strings.CutSuffix(name, archiveEnd)
	if !is {
		if stem, a.gone = strings.CutSuffix(name, goneEnd); !a.gone {
			return a, false
		}
	}
	parts := strings.Split(stem, "-")
	if len(parts) != 3 || parts[0] == "" {
		return a, false
	}
	first, err := strconv.ParseInt(parts[1], 10, 64)
	last, err2 := strconv.ParseInt(parts[2], 10, 64)
	a.path, a.chain, a.first, a.last = filepath.Join(dir, name), parts[0], first, last
	return a, err == nil && err2 == nil && 1 <= first && first <= last && archiveName(a.chain, first, last) == stem
}

// rawText is a string that may contain invalid UTF-8. Its JSON encoding is a string or, if the UTF-8 is invalid,
// an array of the bytes.
type rawText []byte

func (l rawText) MarshalJSON() ([]byte, error) {
	if utf8.Valid(l) {
		return json.Marshal(string(l))
	}
	return json.Marshal([][]byte{l})
}

func (l *rawText) UnmarshalJSON(text []byte) error {
	if len(text) > 1 && text[0] == '"' && bytes.IndexByte(text, '\\') < 0 {
		*l = slices.Clone(text[1 : len(text)-1])
		return nil
	}
	var s string
	if err := json.Unmarshal(text, &s); err == nil {
		*l = rawText(s)
		return nil
	}
	var raw [][]byte
	if err := json.Unmarshal(text, &raw); err != nil || len(raw) != 1 {
		return errors.New("it is neither text nor bytes")
	}
	*l = raw[0]
	return nil
}

// archiveLine holds one line of an archive: an entry or, in the last line, the seal.
type archiveLine struct {
	Seq       int64        `json:"seq,omitempty"`
	At        int64        `json:"at,omitempty"`
	Kind      rawText      `json:"kind,omitempty"`
	Execution rawText      `json:"execution,omitempty"`
	Session   rawText      `json:"session,omitempty"`
	Principal rawText      `json:"principal,omitempty"`
	Server    rawText      `json:"server,omitempty"`
	Tool      rawText      `json:"tool,omitempty"`
	Status    rawText      `json:"status,omitempty"`
	Risk      int64        `json:"risk,omitempty"`
	Micros    int64        `json:"micros,omitempty"`
	Bytes     int64        `json:"bytes,omitempty"`
	Returned  int64        `json:"returned,omitempty"`
	Avoided   int64        `json:"avoided,omitempty"`
	Facts     rawText      `json:"facts,omitempty"`
	Body      []byte       `json:"body,omitempty"`
	Hash      []byte       `json:"hash,omitempty"`
	Code      []byte       `json:"code,omitempty"`
	Seal      *ArchiveSeal `json:"seal,omitempty"`
}

func archivedOf(r *LogRow) archiveLine {
	return archiveLine{
		Seq: r.Seq, At: r.At, Kind: rawText(r.Kind), Execution: rawText(r.Execution), Session: rawText(r.Session),
		Principal: rawText(r.Principal),
		Server:    rawText(r.Server), Tool: rawText(r.Tool), Status: rawText(r.Status), Risk: r.Risk, Micros: r.Micros, Bytes: r.Bytes,
		Returned: r.Returned, Avoided: r.Avoided, Facts: rawText(r.Facts), Body: r.Body, Hash: r.Hash, Code: r.Code,
	}
}

func (a *archiveLine) toRow(chain string) LogRow {
	return LogRow{
		Chain: chain, Seq: a.Seq, At: a.At, Kind: string(a.Kind), Execution: string(a.Execution),
		Session: string(a.Session), Principal: string(a.Principal),
		Server: string(a.Server), Tool: string(a.Tool), Status: string(a.Status), Risk: a.Risk, Micros: a.Micros, Bytes: a.Bytes,
		Returned: a.Returned, Avoided: a.Avoided, Facts: a.Facts, Body: a.Body, Hash: a.Hash, Code: a.Code,
	}
}

// readRows yields the rows of an archive in order, and checks that their sequence numbers are those in the file's
// name. If the archive is incomplete or its seal does not match the rows, the last value is an error. Unless sealed
// is nil, readRows stores the seal in it. The caller must check the seal's signature.
func (a archiveFile) readRows(sealed *ArchiveSeal) iter.Seq2[LogRow, error] {
	return func(yield func(LogRow, error) bool) {
		f, err := seal.Open(a.path)
		if err != nil {
			yield(LogRow{}, err)
			return
		}
		defer f.Close()
		fail := func(err error) {
			yield(LogRow{}, fmt.Errorf("%s: %w", filepath.Base(a.path), err))
		}
		packed, err := gzip.NewReader(f)
		if err != nil {
			fail(err)
			return
		}
		lines := bufio.NewReaderSize(packed, 64<<10)
		found := ArchiveSeal{Chain: a.chain, First: a.first, Last: a.last}
		for seq := a.first; seq <= a.last; seq++ {
			row, err := a.readRow(lines, seq)
			if err != nil {
				fail(err)
				return
			}
			found.countRow(&row)
			if !yield(row, nil) {
				return
			}
		}
		if err := found.checkFinalSeal(lines, sealed); err != nil {
			fail(err)
		}
	}
}

func (a archiveFile) readRow(lines *bufio.Reader, seq int64) (LogRow, error) {
	text, err := readLine(lines)
	if err != nil {
		return LogRow{}, err
	}
	var l archiveLine
	if err := json.Unmarshal(text, &l); err != nil {
		return LogRow{}, err
	}
	if l.Seq != seq || l.Seal != nil {
		return LogRow{}, fmt.Errorf("entry %d is out of order", seq)
	}
	return l.toRow(a.chain), nil
}

// countRow updates an unfinished seal for one more row: it extends the seal's time range to include the row, and
// stores the row's hash as that of the last row.
func (s *ArchiveSeal) countRow(r *LogRow) {
	at := time.Unix(0, r.At).UTC()
	if s.FirstHash == "" {
		s.FirstHash, s.From, s.To = encodeHex(r.Hash), at, at
	}
	if at.Before(s.From) {
		s.From = at
	}
	if at.After(s.To) {
		s.To = at
	}
	s.Hash = encodeHex(r.Hash)
}

// checkFinalSeal reads the seal at the end of an archive and returns an error unless it equals the receiver, which
// was computed from the rows.
func (s *ArchiveSeal) checkFinalSeal(lines *bufio.Reader, sealed *ArchiveSeal) error {
	text, err := readLine(lines)
	if err != nil {
		return err
	}
	var l archiveLine
	if err := json.Unmarshal(text, &l); err != nil || l.Seal == nil {
		return errors.New("it ends without a seal")
	}
	if _, err := lines.ReadByte(); err != io.EOF {
		return errors.New("it continues after its seal")
	}
	want := *l.Seal
	if want.Chain != s.Chain || want.First != s.First || want.Last != s.Last || want.FirstHash != s.FirstHash || want.Hash != s.Hash ||
		want.Deleted != nil {
		return errors.New("its seal belongs to another archive")
	}
	if sealed != nil {
		*sealed = want
	}
	return nil
}

// readLine returns the next line. It returns an error if the line has no line end.
func readLine(in *bufio.Reader) ([]byte, error) {
	var whole []byte
	for {
		part, err := in.ReadSlice('\n')
		whole = append(whole, part...)
		switch {
		case err == io.EOF:
			return nil, io.ErrUnexpectedEOF
		case err != nil && err != bufio.ErrBufferFull:
			return nil, err
		case len(whole) > maxRow:
			return nil, errors.New("a line is too long")
		case err == nil:
			return whole, nil
		}
	}
}

// timeSpan returns the time range of an archive's entries, in nanoseconds since 1970. It reads them from the
// header of the file, which is not signed. If the header does not have them, the range is unlimited.
func (a archiveFile) timeSpan() (from, to int64) {
	from, to = -1<<63, 1<<63-1
	f, err := seal.Open(a.path)
	if err != nil {
		return from, to
	}
	defer f.Close()
	packed, err := gzip.NewReader(f)
	if err != nil {
		return from, to
	}
	var start, end int64
	if n, _ := fmt.Sscanf(packed.Comment, "%d %d", &start, &end); n == 2 {
		return start, end
	}
	return from, to
}

// readSeal returns the seal of an archive, or the seal that remains of a deleted one.
func (a archiveFile) readSeal() (s ArchiveSeal, err error) {
	if a.gone {
		return a.readLeftoverSeal()
	}
	for _, err = range a.readRows(&s) {
	}
	return s, err
}

// readLeftoverSeal reads the seal that remains of a deleted archive.
func (a archiveFile) readLeftoverSeal() (s ArchiveSeal, err error) {
	text, err := readSome(a.path, maxLine)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err == nil && (s.Chain != a.chain || s.First != a.first || s.Last != a.last || s.Deleted == nil) {
		err = errors.New("it belongs to another archive")
	}
	return s, err
}

// writeArchive writes entries of the store into an archive file, either completely or not at all.
func (s ArchiveSeal) writeArchive(dir string, rows iter.Seq2[LogRow, error], sign ed25519.PrivateKey) (archiveFile, error) {
	a := archiveFile{path: filepath.Join(dir, archiveName(s.Chain, s.First, s.Last)+archiveEnd), chain: s.Chain, first: s.First, last: s.Last}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return a, err
	}
	err := seal.ReplaceWith(
		a.path, seal.ReplaceOptions{Temporary: tempArchivePrefix + "*"},
		func(w io.Writer) error { return s.packRows(w, rows, sign) },
	)
	if err != nil {
		return a, err
	}
	// The rows are deleted next, so that the name has to last.
	return a, syncFolder(dir)
}

const tempArchivePrefix = ".tmp-archive-"

func (s ArchiveSeal) packRows(f io.Writer, rows iter.Seq2[LogRow, error], sign ed25519.PrivateKey) error {
	packed := gzip.NewWriter(f)
	packed.Comment = fmt.Sprintf("%d %d", s.From.UnixNano(), s.To.UnixNano())
	out := bufio.NewWriterSize(packed, 64<<10)
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	next := s.First
	for r, err := range rows {
		if err != nil {
			return err
		}
		if r.Seq > s.Last {
			break
		}
		if r.Seq != next {
			return fmt.Errorf("entry %d of chain %s is missing", next, s.Chain)
		}
		s.countRow(&r)
		if err := lines.Encode(archivedOf(&r)); err != nil {
			return err
		}
		next++
	}
	if next != s.Last+1 {
		return fmt.Errorf("entry %d of chain %s is missing", next, s.Chain)
	}
	signed := s.withSignature(sign)
	err := lines.Encode(archiveLine{Seal: &signed})
	return errors.Join(err, out.Flush(), packed.Close())
}

// writeLeftover stores the seal of an archive in a separate file, so that the seal remains when the archive is
// deleted.
func (s ArchiveSeal) writeLeftover(dir string, now time.Time, sign ed25519.PrivateKey) error {
	now = now.UTC()
	s.Deleted = &now
	text, err := json.Marshal(s.withSignature(sign))
	if err != nil {
		return err
	}
	return seal.ReplaceFile(filepath.Join(dir, archiveName(s.Chain, s.First, s.Last)+goneEnd), append(text, '\n'))
}

func decodeHex(s string) ([]byte, error) {
	if s == "" {
		return nil, nil
	}
	return hex.DecodeString(s)
}

// pullRows converts a sequence of rows to a function that returns one row at each call, and nil after the last one.
// When the caller needs no more rows, it must call the returned function stop.
func pullRows(rows iter.Seq2[LogRow, error]) (next func() (*LogRow, error), stop func()) {
	pulled, stop := iter.Pull2(rows)
	return func() (*LogRow, error) {
		r, err, ok := pulled()
		if !ok || err != nil {
			return nil, err
		}
		return &r, nil
	}, stop
}

// syncFolder makes the creation, renaming and removal of files in a folder durable, on systems that support it.
func syncFolder(dir string) error {
	return seal.SyncDir(dir)
}
