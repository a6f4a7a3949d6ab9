package testenv

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// runRecorded runs f with a recorder in place of a test and returns text that says how f ended.
func runRecorded(f func(t testing.TB)) string {
	r := &recorder{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	if r.ended == "" {
		return "went on"
	}
	return r.ended
}

// recorder implements testing.TB and records how the test ended.
type recorder struct {
	testing.TB
	ended string
}

func (r *recorder) Helper()               {}
func (r *recorder) Fatalf(string, ...any) { r.end("failed") }
func (r *recorder) Skipf(string, ...any)  { r.end("skipped") }
func (r *recorder) end(how string) {
	if r.ended == "" {
		r.ended = how
	}
}

func TestMissing(t *testing.T) {
	gone := errors.New("gone")
	for _, tt := range []struct {
		require, name string
		err           error
		want          string
	}{
		{"", "node", nil, "went on"}, {"", "node", gone, "skipped"}, {"node", "node", gone, "failed"}, {"docker, node", "node", gone, "failed"},
		{"node22", "node", gone, "skipped"}, {"node", "node22", gone, "skipped"}, {"node", "node", nil, "went on"},
	} {
		t.Setenv("RETORT_REQUIRE", tt.require)
		if got := runRecorded(func(t testing.TB) { Missing(t, tt.name, tt.err) }); got != tt.want {
			t.Errorf("RETORT_REQUIRE=%q %s: %s, want %s", tt.require, tt.name, got, tt.want)
		}
	}
}

func TestNeed(t *testing.T) {
	t.Setenv("RETORT_REQUIRE", "")
	if got := runRecorded(func(t testing.TB) { Need(t, "no-such-program") }); got != "skipped" {
		t.Error(got)
	}
	if path := Need(t, "go"); !filepath.IsAbs(path) {
		t.Error(path)
	}
}

func TestWanted(t *testing.T) {
	for _, tt := range []struct {
		sandboxes, require, name string
		want                     bool
	}{
		{"", "", "node", true}, {"", "", "dockerd", false}, {"1", "", "dockerd", true}, {"", "qemu", "qemu", true}, {"", "qemu", "runsc", false},
	} {
		t.Setenv("RETORT_SANDBOXES", tt.sandboxes)
		t.Setenv("RETORT_REQUIRE", tt.require)
		if got := IsWanted(tt.name); got != tt.want {
			t.Errorf("RETORT_SANDBOXES=%q RETORT_REQUIRE=%q: Wanted(%q) is %v, want %v", tt.sandboxes, tt.require, tt.name, got, tt.want)
		}
	}
}

func TestRoot(t *testing.T) {
	if _, err := os.Stat(filepath.Join(Root(t), "internal", "devel", "testenv", "testenv.go")); err != nil {
		t.Error(err)
	}
}
