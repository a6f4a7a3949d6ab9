package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"retort/internal/audit"
	"retort/internal/core"
	"retort/internal/devel/testenv"
)

// mustRefuse fails the test unless Open returns an error that contains all words in its message or hint.
func mustRefuse(t *testing.T, url string, o Options, words ...string) error {
	t.Helper()
	s, err := Open(background, url, o)
	if err == nil {
		_ = s.Close()
	}
	var known *core.Error
	if !errors.As(err, &known) || known.Hint == "" {
		t.Fatalf("%s: %v", url, err)
	}
	for _, w := range words {
		if !strings.Contains(known.Message+known.Hint, w) {
			t.Errorf("%q is not in %q (%s)", w, known.Message, known.Hint)
		}
	}
	return err
}

func TestSecondWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "below", "r.db")
	s := open(t, "sqlite:"+path, Options{})
	err := mustRefuse(t, path, Options{}, fmt.Sprintf("process %d", os.Getpid()), path)
	if !errors.Is(err, ErrTaken) {
		t.Error(err)
	}
	must(t, s.Append(background, audit.WriteBatch{Rows: nextRows(t, s, 1)}))
	must(t, s.Close())
	if h := head(t, open(t, path, Options{})); h.Seq != 1 {
		t.Error(h)
	}
}

func TestFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	if files, err := ListFiles(dir); len(files) > 0 || err != nil {
		t.Error(files, err)
	}
	first, second := open(t, dir+"/", Options{}), open(t, dir, Options{})
	chains := []string{head(t, first).Chain, head(t, second).Chain}
	if chains[0] == chains[1] {
		t.Error("two have a chain")
	}
	must(t, first.Close())
	if h := head(t, open(t, dir, Options{})); h.Chain != chains[0] {
		t.Errorf("the file that is free was not taken: %v", h)
	}
	for i := range 10 {
		if i > 1 {
			_ = open(t, dir, Options{})
		}
	}
	must(t, os.WriteFile(filepath.Join(dir, "record-x.db"), nil, 0o600))
	files, err := ListFiles(dir)
	if err != nil || len(files) != 10 || filepath.Base(files[1]) != "record-2.db" || filepath.Base(files[9]) != "record-10.db" {
		t.Error(files, err)
	}
	refusedFolder, err := Open(background, dir, Options{ReadOnly: true})
	if err == nil {
		t.Error(refusedFolder.Close())
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Error(info.Name(), info.Mode(), err)
		}
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Error(info.Mode(), err)
	}
}

// TestForeignFiles checks that Open refuses files that are not audit logs of this version, and does not change them.
func TestForeignFiles(t *testing.T) {
	dir := t.TempDir()
	foreign := filepath.Join(dir, "foreign.db")
	db, err := sql.Open("sqlite", foreign)
	must(t, err)
	_, err = db.Exec("CREATE TABLE a (b)")
	must(t, errors.Join(err, db.Close()))
	text := filepath.Join(dir, "text")
	must(t, os.WriteFile(text, bytes.Repeat([]byte("words "), 1000), 0o600))
	short := filepath.Join(dir, "short")
	must(t, os.WriteFile(short, []byte("SQLite format 3\x00"), 0o600))
	newer := filepath.Join(dir, "newer.db")
	must(t, open(t, newer, Options{}).Close())
	db, err = sql.Open("sqlite", newer)
	must(t, err)
	_, err = db.Exec("UPDATE version SET version = 99")
	must(t, errors.Join(err, db.Close()))
	for path, words := range map[string]string{foreign: "not an audit log", text: "not an audit log", short: "not an audit log", newer: "newer version"} {
		before, err := os.ReadFile(path)
		must(t, err)
		for _, o := range []Options{{}, {ReadOnly: true}} {
			mustRefuse(t, path, o, words, path)
		}
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
			t.Errorf("%s was changed, %v", path, err)
		}
	}
	mustRefuse(t, filepath.Join(dir, "nothing.db"), Options{ReadOnly: true}, "no audit log at")
	mustRefuse(t, "", Options{}, "no address")
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "nothing") {
			t.Error("reading has made " + e.Name())
		}
	}
}

func TestDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.db")
	s := open(t, path, Options{})
	appendMixed(t, s, 3000, 1)
	chain := head(t, s).Chain
	must(t, s.Close())
	data, err := os.ReadFile(path)
	must(t, err)
	for i := 3 * 4096; i < len(data); i += 2 * 4096 {
		copy(data[i:], bytes.Repeat([]byte("damaged"), 500))
	}
	must(t, os.WriteFile(path, data, 0o600))
	for _, o := range []Options{{}, {ReadOnly: true}} {
		s, err := Open(background, path, o)
		if err == nil {
			for _, err = range s.Walk(background, chain, 1) {
				if err != nil {
					break
				}
			}
			_ = s.Close()
		}
		var known *core.Error
		if !errors.As(err, &known) || !strings.Contains(known.Hint, "damaged") {
			t.Errorf("%+v: %v of %d bytes", o, err, len(data))
		}
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, data) {
		t.Error("what was damaged was changed as well", err)
	}
}

// contents returns all bytes of the files of an audit log.
func contents(t *testing.T, path string) (data []byte) {
	t.Helper()
	files, err := filepath.Glob(path + "*")
	must(t, err)
	for _, f := range files {
		part, err := os.ReadFile(f)
		must(t, err)
		data = append(data, part...)
	}
	return data
}

// TestForgottenKeysAreGone checks that no file contains any part of a deleted key, whatever was written before and
// after the deletion.
func TestForgottenKeysAreGone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.db")
	s := open(t, path, Options{})
	reader := open(t, path, Options{ReadOnly: true})
	r := rand.New(rand.NewPCG(1, 1))
	keys := map[string][]byte{}
	var ids []string
	var gone [][]byte
	rounds := 4
	if testenv.Full() {
		rounds = 12
	}
	for round := range rounds {
		for part := range 40 {
			b := audit.WriteBatch{Rows: nextRows(t, s, 3)}
			for i := range r.IntN(20) {
				wrapped := make([]byte, 40+r.IntN(500)*r.IntN(2))
				for j := range wrapped {
					wrapped[j] = byte(r.Int())
				}
				id := fmt.Sprintf("%x-%d-%d", r.Int64(), round, part*100+i)
				keys[id], ids = wrapped, append(ids, id)
				b.Keys = append(b.Keys, audit.BodyKey{ID: id, Session: fmt.Sprint(r.IntN(9)), Principal: "p", Wrapped: wrapped})
			}
			must(t, s.Append(background, b))
		}
		r.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		n := len(ids) * (1 + r.IntN(3)) / 4
		if got, err := s.Forget(background, ids[:n]); got != n || err != nil {
			t.Fatal(got, n, err)
		}
		for _, id := range ids[:n] {
			gone = append(gone, keys[id])
		}
		ids = slices.Clone(ids[n:])
		must(t, s.Drop(background, head(t, s).Chain, head(t, s).Seq-50))
		_ = all(t, reader.Find(background, audit.Filter{Limit: 5}))
		data := contents(t, path)
		for _, k := range gone {
			for _, part := range [][]byte{k[:16], k[len(k)-16:]} {
				if bytes.Contains(data, part) {
					t.Fatalf("round %d: a part of %d keys, %s, is still there", round, len(gone), hex.EncodeToString(part))
				}
			}
		}
		for _, id := range ids[:5] {
			if !bytes.Contains(data, keys[id]) && round == 0 {
				t.Error("the test does not see keys that are there")
			}
		}
	}
}

// TestKilled checks that a process that is killed while it writes leaves all acknowledged batches, and no part of any
// other batch.
func TestKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.db")
	total := 0
	for i := range 10 {
		acknowledged := testenv.KilledAtChange(t, killedVariable, path, []string{filepath.Dir(path)}, 1+5*i, 0)
		total += acknowledged
		s := open(t, path, Options{})
		h := head(t, s)
		rows := all(t, s.Walk(background, h.Chain, 1))
		if len(rows) != int(h.Seq) || h.Seq < int64(acknowledged) || h.Seq%7 != 0 {
			t.Fatalf("%d rows, head %d, %d were acknowledged", len(rows), h.Seq, acknowledged)
		}
		if n := len(all(t, s.Find(background, audit.Filter{Kinds: []string{"call"}}))); n != len(rows) {
			t.Errorf("%d of %d rows are found", n, len(rows))
		}
		must(t, s.Close())
	}
	if total == 0 {
		t.Error("nothing was ever acknowledged")
	}
}

const killedVariable = "RETORT_STORE_KILLED"

// appendUntilKilled writes batches in a loop. After each it prints the sequence number of its last row.
func appendUntilKilled(path string) {
	s, err := Open(context.Background(), path, Options{})
	for err == nil {
		var h audit.ChainHead
		if h, err = s.Head(background); err != nil {
			break
		}
		var rows []audit.LogRow
		for range 7 {
			h.Seq++
			rows = append(rows, audit.LogRow{Chain: h.Chain, Seq: h.Seq, At: h.Seq, Kind: "call", Hash: make([]byte, 32), Body: make([]byte, 3000)})
		}
		if err = s.Append(background, audit.WriteBatch{Rows: rows}); err == nil {
			fmt.Println(h.Seq)
		}
	}
	fmt.Println(err)
}
