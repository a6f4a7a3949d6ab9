package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

const day = 24 * time.Hour

// agedStore returns a store with the given files. The value for each file is its age: the number of days before now at
// which it was last changed.
func agedStore(t *testing.T, now time.Time, files map[string]int) (*WorkspaceStore, *StateStore) {
	t.Helper()
	store, states := NewStore(filepath.Join(t.TempDir(), "workspace"), 1<<20), NewStates(t.TempDir())
	for name, days := range files {
		session, path := filepath.Split(name)
		for filepath.Dir(filepath.Clean(session)) != "." {
			session, path = filepath.Dir(filepath.Clean(session)), filepath.Join(filepath.Base(session), path)
		}
		w, err := store.Open(filepath.Clean(session))
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(path, []byte("0123456789")); err != nil {
			t.Fatal(err)
		}
		at := now.Add(-time.Duration(days) * day)
		for _, path := range []string{filepath.Join(w.Folder(), path), w.Folder()} {
			if err := os.Chtimes(path, at, at); err != nil {
				t.Fatal(err)
			}
		}
		_ = w.Close()
	}
	return store, states
}

func exists(s *WorkspaceStore, name string) bool {
	_, err := os.Stat(filepath.Join(s.dir, name))
	return err == nil
}

func TestSweep(t *testing.T) {
	now := time.Now()
	files := map[string]int{"a/results/old.json": 8, "a/results/new.json": 6, "a/mine.csv": 20, "a/sub/results/x.json": 20, "a/mine.csv.ABCDEFGH.tmp": 1, "a/mine.tmp": 1, "b/files/pic.png": 40, "b/own.txt": 40, "c/own.txt": 40}
	store, states := agedStore(t, now, files)
	if err := states.StateFor("b").Set("k", []byte("1")); err != nil {
		t.Fatal(err)
	}
	at := now.Add(-40 * day)
	_ = os.Chtimes(states.stateFile("b"), at, at)
	if err := states.StateFor("c").Set("k", []byte("1")); err != nil { // c was used today
		t.Fatal(err)
	}
	keep := RetentionPolicy{Results: 7 * day, Sessions: 30 * day}
	told, err := store.SweepSessions(states, keep, now, true)
	if err != nil || told.Files != 4 || fmt.Sprint(told.Sessions) != "[b]" {
		t.Errorf("%+v %v", told, err)
	}
	for name := range files {
		if !exists(store, name) {
			t.Errorf("%s is gone, and was only to be told", name)
		}
	}
	done, err := store.SweepSessions(states, keep, now, false)
	if fmt.Sprint(done) != fmt.Sprint(told) || err != nil || done.Left != 50 {
		t.Errorf("%+v, told %+v %v", done, told, err)
	}
	for name, left := range map[string]bool{"a/results/old.json": false, "a/results/new.json": true, "a/mine.csv": true, "a/sub/results/x.json": true, "a/mine.csv.ABCDEFGH.tmp": false, "a/mine.tmp": true, "b": false, "c/own.txt": true} {
		if exists(store, name) != left {
			t.Errorf("%s: %v", name, !left)
		}
	}
	if _, err := os.Stat(states.stateFile("b")); err == nil {
		t.Error("the state of a session that is gone is there")
	}
	// A session that was swept away starts empty.
	w, err := store.Open("b")
	if err != nil || w.Write("x", nil) != nil {
		t.Error(err)
	}
}

func TestSweepBySize(t *testing.T) {
	now := time.Now()
	store, states := agedStore(t, now, map[string]int{"a/results/1": 3, "a/results/2": 1, "b/results/3": 2, "b/own": 9})
	swept, err := store.SweepSessions(states, RetentionPolicy{Bytes: 25}, now, false)
	if err != nil || swept.Files != 2 || swept.Left != 20 || exists(store, "a/results/1") || exists(store, "b/results/3") || !exists(store, "a/results/2") || !exists(store, "b/own") {
		t.Errorf("%+v %v", swept, err)
	}
}

// TestSweepLeavesWhatIsUsed checks that sessions are not swept while this process or another process uses them.
func TestSweepLeavesWhatIsUsed(t *testing.T) {
	now := time.Now()
	store, states := agedStore(t, now, map[string]int{"a/results/1": 100})
	keep := RetentionPolicy{Results: day, Sessions: day}
	for _, user := range []*WorkspaceStore{store, NewStore(store.dir, 1<<20)} {
		w, err := user.Open("a")
		if err != nil {
			t.Fatal(err)
		}
		if swept, err := store.SweepSessions(states, keep, now, false); err != nil || fmt.Sprint(swept.Busy) != "[a]" || !exists(store, "a/results/1") {
			t.Errorf("%+v %v", swept, err)
		}
		if uses := store.SessionUses(); len(uses) != 1 || !uses[0].Busy || uses[0].Bytes != 10 {
			t.Errorf("%+v", uses)
		}
		_ = w.Close()
	}
	if swept, err := store.SweepSessions(states, keep, now, false); err != nil || swept.Files != 1 {
		t.Errorf("%+v %v", swept, err)
	}
}
