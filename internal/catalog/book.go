package catalog

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"retort/internal/base/seal"
)

const (
	pinsFormat   = 2 // 1 had pins without _meta, icons and execution
	pinsSuffix   = ".pins"
	lockFile     = "pins.lock"
	lockPatience = 5 * time.Second
)

// book stores the trusted definitions: a sealed file for each server, next to the server's definitions. A program
// that can write there can neither forge a file nor restore an old one, because the key and the write counts are
// stored elsewhere. Several engines may share the files: each takes a lock and reads what the others wrote before it
// writes.
type book struct {
	dir, key string // empty: memory only

	mu sync.Mutex // for the lock is one of the process
}

// pinsHeader is the first line of a file. One JSON object follows: {"tools": [name, pin, trusted, clean, other,
// noticed, definition, …]}. Seal authenticates the object, the rest of the header and the file's path.
type pinsHeader struct {
	Format int    `json:"format"`
	Server string `json:"server"`
	Writes uint64 `json:"writes"`
	Seal   string `json:"seal"`
}

func (b *book) keeps() bool { return b.dir != "" && b.key != "" }

func (b *book) path(server string) string {
	return filepath.Join(b.dir, strings.TrimSuffix(fileName(server), suffix)+pinsSuffix)
}

// witness returns the path of the file that counts the writes of a server's file.
func (b *book) witness(server string) string {
	sum := sha256.Sum256([]byte(b.path(server)))
	return filepath.Join(filepath.Dir(b.key), "pinned", hex.EncodeToString(sum[:16]))
}

// seen returns how often the server's file was written, as far as known.
func (b *book) seen(server string) (uint64, error) {
	text, err := seal.ReadFile(b.witness(server), 64)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
}

// read returns the trusted definitions of a server. If they cannot be read, nothing is trusted.
func (b *book) read(server string) *trust {
	if !b.keeps() {
		return &trust{}
	}
	path := b.path(server)
	t := &trust{file: seal.StampOf(path)}
	seen, err := b.seen(server)
	if err == nil {
		err = b.load(path, server, seen, t)
	}
	if err != nil {
		t.records, t.unknown, t.writes = nil, fmt.Sprintf("%s: %v", path, err), seen
	}
	return t
}

func (b *book) load(path, server string, seen uint64, t *trust) error {
	data, err := seal.ReadFile(path, maxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist) && seen == 0:
		return nil // nothing was trusted yet
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("the file is gone")
	case err != nil:
		return err
	}
	first, rest, _ := bytes.Cut(data, []byte("\n"))
	var h pinsHeader
	if json.Unmarshal(first, &h) != nil || h.Format != pinsFormat && h.Format != 1 {
		return errors.New("it was not written by this version, or it is damaged")
	}
	key, err := seal.ReadKey(b.key)
	if err != nil {
		return fmt.Errorf("its key can't be read: %w", err)
	}
	code, err := base64.StdEncoding.Strict().DecodeString(h.Seal)
	if err != nil || h.Server != server || !seal.Holds(key, code, sealed(path, h, rest)...) {
		return errors.New("its seal is broken: something other than Retort wrote it, or it was moved")
	}
	if h.Writes < seen {
		return errors.New("an old file was put in its place")
	}
	t.writes = h.Writes
	t.records, err = readRecords(rest)
	if h.Format == 1 {
		repin(t.records)
	}
	return err
}

// sealed returns the parts that the seal covers.
func sealed(path string, h pinsHeader, rest []byte) [][]byte {
	return [][]byte{[]byte("pins"), []byte(path), []byte(h.Server), strconv.AppendUint(nil, h.Writes, 10), rest}
}

// repin replaces the pins of format 1 by current ones. A record whose definition was not stored keeps its old pin. If
// the tool's old pin then differs, a person is asked about the tool.
func repin(records map[string]record) {
	for name, r := range records {
		if d := parse(r.raw, maxDepth); r.raw != nil && pinOver(d, pinnedBefore()) == r.pin {
			r.pin = pin(d)
			records[name] = r
		}
	}
}

const recordFields = 7

func readRecords(text []byte) (map[string]record, error) {
	bad := errors.New("its format differs from what this version writes")
	whole := parse(text, 2)
	tools, _ := whole.member("tools")
	if tools.kind() != '[' || len(tools.items)%recordFields != 0 {
		return nil, bad
	}
	records := make(map[string]record, len(tools.items)/recordFields)
	for i := 0; i < len(tools.items); i += recordFields {
		f := tools.items[i : i+recordFields]
		var r record
		name, named := unquote(f[0].raw)
		var ok [2]bool
		r.pin, ok[0] = unquote(f[1].raw)
		r.other, ok[1] = unquote(f[4].raw)
		trusted, err1 := strconv.ParseInt(string(f[2].raw), 10, 64)
		clean, err2 := strconv.Atoi(string(f[3].raw))
		noticed, err3 := strconv.ParseInt(string(f[5].raw), 10, 64)
		if !named || !ok[0] || !ok[1] || errors.Join(err1, err2, err3) != nil {
			return nil, bad
		}
		r.trusted, r.clean = time.Unix(trusted, 0), clean
		if noticed != 0 {
			r.noticed = time.Unix(noticed, 0)
		}
		if f[6].isObject() {
			r.raw = f[6].raw
		}
		records[name] = r
	}
	return records, nil
}

func appendRecords(records map[string]record) []byte {
	text := []byte(`{"tools":[`)
	for i, name := range slices.Sorted(maps.Keys(records)) {
		r := records[name]
		if i > 0 {
			text = append(text, ",\n"...)
		}
		text = append(appendString(text, name), ',')
		text = append(appendString(text, r.pin), ',')
		text = append(strconv.AppendInt(text, r.trusted.Unix(), 10), ',')
		text = append(strconv.AppendInt(text, int64(r.clean), 10), ',')
		text = append(appendString(text, r.other), ',')
		noticed := int64(0)
		if !r.noticed.IsZero() {
			noticed = r.noticed.Unix()
		}
		text = append(strconv.AppendInt(text, noticed, 10), ',')
		if r.raw == nil {
			text = append(text, "null"...)
		}
		text = append(text, r.raw...)
	}
	return append(text, "]}\n"...)
}

// change calls f with the server's current trusted definitions and stores them if f returns true. It returns what f
// made of them even with an error. The error means they were not stored.
func (b *book) change(server string, known *trust, f func(*trust) bool) (*trust, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.keeps() {
		t := known.clone()
		f(t)
		return t, nil
	}
	unlock, locked := seal.Lock(filepath.Join(b.dir, lockFile), lockPatience)
	if locked == nil {
		defer unlock()
		known = b.current(server, known)
	}
	t := known.clone()
	if !f(t) {
		return known, nil
	}
	if locked != nil {
		return t, fmt.Errorf("another engine has the lock: %w", locked)
	}
	return t, b.write(server, t)
}

// current returns known, or what the file contains if it has been written since.
func (b *book) current(server string, known *trust) *trust {
	if known == nil || b.keeps() && !known.file.Same(seal.StampOf(b.path(server))) {
		return b.read(server)
	}
	return known
}

func (b *book) write(server string, t *trust) error {
	key, err := seal.Key(b.key)
	if err != nil {
		return err
	}
	path, rest := b.path(server), appendRecords(t.records)
	t.writes++
	h := pinsHeader{Format: pinsFormat, Server: server, Writes: t.writes}
	h.Seal = base64.StdEncoding.EncodeToString(seal.Code(key, sealed(path, h, rest)...))
	first, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := seal.Replace(path, append(append(first, '\n'), rest...)); err != nil {
		return err
	}
	t.file = seal.StampOf(path)
	return seal.Replace(b.witness(server), strconv.AppendUint(nil, t.writes, 10))
}
