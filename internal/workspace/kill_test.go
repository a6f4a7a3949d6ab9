package workspace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"retort/internal/devel/testenv"
)

// killed names an environment variable of the process that TestKills kills. Its value is a folder. If it is set, the
// test binary writes to this folder instead of running the tests.
const killed = "WORKSPACE_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(killed); dir != "" {
		writeForever(dir)
		return
	}
	os.Exit(testenv.Main(m))
}

// page returns the content of the n-th write. It repeats a single letter, so that a mixture of two writes is noticed.
func page(n int) []byte { return bytes.Repeat([]byte{byte('a' + n%26)}, 1000+n%7*4000) }

// writeForever writes files and values in an endless loop. It prints the number of each write that has succeeded.
func writeForever(dir string) {
	store, states := NewStore(filepath.Join(dir, "workspace"), 1<<30), NewStates(filepath.Join(dir, "state"))
	w, err := store.Open("default")
	if err != nil {
		panic(err)
	}
	answers := NewAnswers(filepath.Join(dir, "cache"), time.Hour, 1<<30)
	for n := 0; ; n++ {
		answers.Put("crm", "k", page(n))
		if w.Write("file", page(n)) != nil || w.AppendFile("log", fmt.Appendf(nil, "%d\n", n)) != nil || states.StateFor("default").Set("n", json.RawMessage(strconv.Itoa(n))) != nil {
			panic("a write failed")
		}
		fmt.Println(n)
	}
}

// TestKills kills a process at different moments while it writes. It checks that each file and value comes from a
// single write, and that no write is lost that had succeeded before the kill.
func TestKills(t *testing.T) {
	kills := 40
	if testenv.Full() {
		kills = 160
	}
	wrote := 0
	for i := range kills {
		dir := t.TempDir()
		folders := []string{filepath.Join(dir, "workspace", "default"), filepath.Join(dir, "state"), filepath.Dir(NewAnswers(filepath.Join(dir, "cache"), 0, 0).filePath("crm", "k"))}
		for _, folder := range folders {
			if err := os.MkdirAll(folder, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		last := testenv.KilledAtChange(t, killed, dir, folders, 1+i, -1)
		if last < 0 {
			continue
		}
		wrote++
		w, err := NewStore(filepath.Join(dir, "workspace"), 1<<30).Open("default")
		if err != nil {
			t.Fatal(err)
		}
		file, _, err := w.ReadAt("file", 0, 1<<20)
		if err != nil || !bytes.Equal(file, page(last)) && !bytes.Equal(file, page(last+1)) {
			t.Errorf("after %d the file has %d bytes, %.20q…: %v", last, len(file), file, err)
		}
		log, _, err := w.ReadAt("log", 0, 1<<20)
		if lines := strings.Split(string(log), "\n"); err != nil || len(lines) < last+2 || lines[last] != strconv.Itoa(last) {
			t.Errorf("after %d the log ends %.40q: %v", last, log[max(0, len(log)-40):], err)
		}
		value, _, err := NewStates(filepath.Join(dir, "state")).StateFor("default").Get("n")
		if n, _ := strconv.Atoi(string(value)); err != nil || n != last && n != last+1 {
			t.Errorf("after %d the state has %s: %v", last, value, err)
		}
		answer, ok := NewAnswers(filepath.Join(dir, "cache"), time.Hour, 1<<30).Get("crm", "k")
		if !ok || !bytes.Equal(answer, page(last)) && !bytes.Equal(answer, page(last+1)) {
			t.Errorf("after %d the kept answer has %d bytes, %.20q…", last, len(answer), answer)
		}
		_ = w.Close()
	}
	if wrote < kills/4 {
		t.Errorf("only %d of %d had written anything", wrote, kills)
	}
}
