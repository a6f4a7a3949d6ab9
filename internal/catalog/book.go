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
	"retort/internal/home"
)

const (
	pinsFormat  = 2 // version of the file format; in version 1 pins did not cover _meta, icons and execution
	pinsSuffix  = ".pins"
	lockFile    = "pins.lock"
	lockTimeout = 5 * time.Second
)

// trustStore stores the trusted tool definitions in one sealed file for each server, next to the file with all
// definitions. A program that can write there can neither forge a file nor restore an old version, because the key
// and a count of the writes are stored elsewhere. Several engines may share the files: each takes a lock and reads
// what the others wrote before it writes.
type trustStore struct {
	dir, key string // folder of the files, and path of the key; "": memory only

	mu sync.Mutex // needed in addition to the file lock, which the whole process shares
}

// pinsHeader is the first line of a file with trusted definitions. One JSON object follows: {"tools": [name, pin,
// trusted, clean, other, noticed, definition, …]}. The field Seal of the header authenticates this object, the rest
// of the header and the file's path.
type pinsHeader struct {
	Format int    `json:"format"`
	Server string `json:"server"`
	Writes uint64 `json:"writes"`
	Seal   string `json:"seal"`
}

func (b *trustStore) isPersistent() bool { return b.dir != "" && b.key != "" }

func (b *trustStore) filePath(server string) string {
	return filepath.Join(b.dir, strings.TrimSuffix(fileName(server), toolsSuffix)+pinsSuffix)
}

// witnessPath returns the path of a second file for a server, which counts how often the file with the server's
// trusted definitions was written. It is in another folder, so that it reveals when an old version of that file is
// restored.
func (b *trustStore) witnessPath(server string) string {
	sum := sha256.Sum256([]byte(b.filePath(server)))
	return filepath.Join(home.User(filepath.Dir(b.key)).PinCounts(), hex.EncodeToString(sum[:16]))
}

// readWriteCount returns how often the file with a server's trusted definitions was written, according to the file at
// witnessPath.
func (b *trustStore) readWriteCount(server string) (uint64, error) {
	text, err := seal.ReadFile(b.witnessPath(server), 64)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
}

// readTrust returns the trusted definitions of a server. If they cannot be read, nothing is trusted.
func (b *trustStore) readTrust(server string) *serverTrust {
	if !b.isPersistent() {
		return &serverTrust{}
	}
	path := b.filePath(server)
	t := &serverTrust{file: seal.StampOf(path)}
	seen, err := b.readWriteCount(server)
	if err == nil {
		err = b.loadFile(path, server, seen, t)
	}
	if err != nil {
		t.records, t.unknown, t.writes = nil, fmt.Sprintf("%s: %v", path, err), seen
	}
	return t
}

func (b *trustStore) loadFile(path, server string, seen uint64, t *serverTrust) error {
	data, err := seal.ReadFile(path, maxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist) && seen == 0:
		return nil // nothing was trusted yet
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("the file no longer exists")
	case err != nil:
		return err
	}
	first, rest, _ := bytes.Cut(data, []byte("\n"))
	var h pinsHeader
	if json.Unmarshal(first, &h) != nil || h.Format != pinsFormat && h.Format != 1 {
		return errors.New("it was not written by this version of Retort, or it is damaged")
	}
	key, err := seal.ReadKey(b.key)
	if err != nil {
		return fmt.Errorf("its key cannot be read: %w", err)
	}
	code, err := base64.StdEncoding.Strict().DecodeString(h.Seal)
	if err != nil || h.Server != server || !seal.VerifyMAC(key, code, sealedParts(path, h, rest)...) {
		return errors.New("its authentication code is wrong: something other than Retort wrote it, or it was moved")
	}
	if h.Writes < seen {
		return errors.New("it was replaced by an older file")
	}
	t.writes = h.Writes
	t.records, err = readRecords(rest)
	if h.Format == 1 {
		repinRecords(t.records)
	}
	return err
}

// sealedParts returns the data that is authenticated by the seal of a file with trusted definitions. The argument
// rest is the content of the file after its header.
func sealedParts(path string, h pinsHeader, rest []byte) [][]byte {
	return [][]byte{[]byte("pins"), []byte(path), []byte(h.Server), strconv.AppendUint(nil, h.Writes, 10), rest}
}

// repinRecords replaces the pins (definition hashes) of format 1 of the file with trusted definitions by current
// pins. Pins of format 1 covered fewer members of a definition. A record whose definition was not stored keeps its
// old pin. If that old pin no longer matches the tool, a person is asked about the tool.
func repinRecords(records map[string]trustRecord) {
	for name, r := range records {
		if d := parseJSON(r.raw, maxDepth); r.raw != nil && pinOver(d, pinnedMemberNamesV1()) == r.pin {
			r.pin = computePin(d)
			records[name] = r
		}
	}
}

const recordFields = 7

func readRecords(text []byte) (map[string]trustRecord, error) {
	bad := errors.New("its format is not the one that this version of Retort writes")
	whole := parseJSON(text, 2)
	tools, _ := whole.findMember("tools")
	if tools.firstByte() != '[' || len(tools.items)%recordFields != 0 {
		return nil, bad
	}
	records := make(map[string]trustRecord, len(tools.items)/recordFields)
	for i := 0; i < len(tools.items); i += recordFields {
		f := tools.items[i : i+recordFields]
		var r trustRecord
		name, named := unquoteJSON(f[0].raw)
		var ok [2]bool
		r.pin, ok[0] = unquoteJSON(f[1].raw)
		r.listedPin, ok[1] = unquoteJSON(f[4].raw)
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

func appendRecords(records map[string]trustRecord) []byte {
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
		text = append(appendString(text, r.listedPin), ',')
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

// updateTrust calls f with the current trusted definitions of a server and stores them if f returns true. It returns
// the definitions as changed by f, even with an error. An error means that they were not stored.
func (b *trustStore) updateTrust(server string, known *serverTrust, f func(*serverTrust) bool) (*serverTrust, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.isPersistent() {
		t := known.cloneTrust()
		f(t)
		return t, nil
	}
	unlock, locked := seal.Lock(filepath.Join(b.dir, lockFile), lockTimeout)
	if locked == nil {
		defer unlock()
		known = b.currentTrust(server, known)
	}
	t := known.cloneTrust()
	if !f(t) {
		return known, nil
	}
	if locked != nil {
		return t, fmt.Errorf("they cannot be locked: %w", locked)
	}
	return t, b.writeTrust(server, t)
}

// currentTrust returns the current trusted definitions of a server. The argument known holds the definitions that
// were read before. currentTrust returns them if the file was not written since then, and otherwise reads the file
// again.
func (b *trustStore) currentTrust(server string, known *serverTrust) *serverTrust {
	if known == nil || b.isPersistent() && !known.file.IsSame(seal.StampOf(b.filePath(server))) {
		return b.readTrust(server)
	}
	return known
}

func (b *trustStore) writeTrust(server string, t *serverTrust) error {
	key, err := seal.LoadOrCreateKey(b.key)
	if err != nil {
		return err
	}
	path, rest := b.filePath(server), appendRecords(t.records)
	t.writes++
	h := pinsHeader{Format: pinsFormat, Server: server, Writes: t.writes}
	h.Seal = base64.StdEncoding.EncodeToString(seal.ComputeMAC(key, sealedParts(path, h, rest)...))
	first, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := seal.ReplaceFile(path, append(append(first, '\n'), rest...)); err != nil {
		return err
	}
	t.file = seal.StampOf(path)
	return seal.ReplaceFile(b.witnessPath(server), strconv.AppendUint(nil, t.writes, 10))
}
