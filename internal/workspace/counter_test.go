package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"retort/internal/base/seal"
	"retort/internal/core"
)

// engines returns n Workspaces of one session. Each belongs to a different engine, and the engines share a data
// directory.
func engines(t *testing.T, quota int64, n int) (all []*Workspace) {
	t.Helper()
	if !seal.Locks {
		t.Skip("files have no locks here: each engine counts for itself")
	}
	dir := t.TempDir()
	for range n {
		w, err := NewStore(dir, quota).Open("default")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = w.Close() })
		all = append(all, w)
	}
	return all
}

// expectCount fails the test unless every engine's counted usage equals the usage on disk.
func expectCount(t *testing.T, w *Workspace, after string) {
	t.Helper()
	done, err := w.beginChange(".")
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	expectUsage(t, w, after)
}

// TestEnginesShareQuota checks that two engines which fill one workspace at the same time together use no more than
// the quota. It tries each way of writing.
func TestEnginesShareQuota(t *testing.T) {
	const room = 40
	stream := func(w *Workspace, _ string) error {
		in, err := w.Create(t.Context(), ".txt")
		if err != nil {
			return err
		}
		defer in.Abort()
		if _, err := in.Write([]byte("x")); err != nil {
			return err
		}
		_, _, err = in.Commit()
		return err
	}
	for name, make := range map[string]func(w *Workspace, name string) error{
		"Write":    func(w *Workspace, name string) error { return w.Write(name, []byte("x")) },
		"Append":   func(w *Workspace, name string) error { return w.AppendFile(name, []byte("x")) },
		"MkdirAll": func(w *Workspace, name string) error { return w.MkdirAll(name) },
		"Create":   stream,
	} {
		t.Run(name, func(t *testing.T) {
			all := engines(t, room*(entryCost+1), 2)
			var writers sync.WaitGroup
			for i, w := range all {
				writers.Go(func() {
					for n := range room {
						if err := make(w, fmt.Sprintf("f%d-%d", i, n)); err != nil && !strings.Contains(err.Error(), "EDQUOT") {
							t.Error(err)
						}
					}
				})
			}
			writers.Wait()
			if on := all[0].treeUsage("."); on.quotaBytes() > room*(entryCost+1) || on.entries < room-1 {
				t.Errorf("%+v on disk, room for %d", on, room)
			}
			expectCount(t, all[0], "both have written")
			if err := all[1].RemovePath("files", true); err != nil && !errors.Is(err, os.ErrNotExist) && !strings.Contains(err.Error(), "ENOENT") {
				t.Error(err)
			}
			expectCount(t, all[0], "the other has removed")
		})
	}
}

// TestCounterOfDeadEngine checks that the workspace is measured if an engine died during a change, or if the
// counter's file is damaged.
func TestCounterOfDeadEngine(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, w *Workspace, path string){
		"died within a change": func(t *testing.T, w *Workspace, _ string) {
			if _, err := w.beginChange("."); err != nil { // and it never ends
				t.Fatal(err)
			}
			_ = os.WriteFile(filepath.Join(w.dir, "half"), []byte("written"), 0o600)
			w.counter.closeCounter() // as the kernel does
		},
		"cut": func(t *testing.T, w *Workspace, path string) {
			_ = os.Truncate(path, 11)
			_ = os.WriteFile(filepath.Join(w.dir, "half"), nil, 0o600)
		},
		"empty": func(t *testing.T, w *Workspace, path string) {
			_ = os.Truncate(path, 0)
			_ = os.WriteFile(filepath.Join(w.dir, "half"), nil, 0o600)
		},
		"garbage": func(t *testing.T, w *Workspace, path string) {
			_ = os.WriteFile(path, []byte(strings.Repeat("\xff", 24)), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := engines(t, 1<<20, 2)
			for _, w := range all {
				if err := w.Write("a/b", []byte("content")); err != nil {
					t.Fatal(err)
				}
			}
			harm(t, all[0], all[0].store.counterPath("default"))
			expectCount(t, all[1], name)
		})
	}
}

// TestCounterAfterRestart checks that an engine measures a workspace that a person has changed while no engine was
// using it. It must not measure the workspace if another engine is using it.
func TestCounterAfterRestart(t *testing.T) {
	one := engines(t, 1<<20, 1)[0]
	if err := one.Write("a", []byte("content")); err != nil {
		t.Fatal(err)
	}
	dir := one.store.dir
	_ = os.WriteFile(filepath.Join(one.dir, "by-hand"), []byte("more"), 0o600)
	other, err := NewStore(dir, 1<<20).Open("default")
	if err != nil {
		t.Fatal(err)
	}
	if done, err := other.beginChange("."); err != nil || other.used != (spaceUsage{7, 1}) {
		t.Errorf("%+v %v", other.used, err)
	} else {
		done()
	}
	_, _ = one.Close(), other.Close()
	again, err := NewStore(dir, 1<<20).Open("default")
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	expectCount(t, again, "a restart")
}

// TestCounterIsBusy checks that a change fails if it cannot lock the counter, and that the error says why.
func TestCounterIsBusy(t *testing.T) {
	all := engines(t, 1<<20, 2)
	done, err := all[0].beginChange(".")
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	f, err := os.Open(all[0].store.counterPath("default"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	refused := seal.LockFile(f, time.Millisecond)
	if refused == nil {
		t.Fatal("two have the lock")
	}
	if err := core.AsError(all[1].busyError("a/b", refused)); err.Hint == "" || !strings.Contains(err.Message, "EBUSY") {
		t.Errorf("%+v", err)
	}
}

// TestSweptSessionIsMeasured checks that erased files no longer count as used space.
func TestSweptSessionIsMeasured(t *testing.T) {
	one := engines(t, 1<<20, 1)[0]
	if err := one.Write("results/a", []byte("content")); err != nil {
		t.Fatal(err)
	}
	_ = one.Close()
	other := NewStore(one.store.dir, 1<<20)
	if _, err := other.EraseSession(NewStates(t.TempDir()), "default"); err != nil {
		t.Fatal(err)
	}
	w, err := one.store.Open("default")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	expectCount(t, w, "it was erased")
}

// BenchmarkChange measures the cost of locking and updating the counter, without the change itself.
func BenchmarkChange(b *testing.B) {
	w, err := NewStore(b.TempDir(), 1<<20).Open("default")
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	for b.Loop() {
		done, err := w.beginChange(".")
		if err != nil {
			b.Fatal(err)
		}
		done()
	}
}
