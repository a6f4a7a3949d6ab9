package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"retort/internal/core"
)

func set(t *testing.T, s *SessionState, key, value string) {
	t.Helper()
	if err := s.Set(key, json.RawMessage(value)); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, s *SessionState, key string) string {
	t.Helper()
	value, ok, err := s.Get(key)
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		return "(nothing)"
	}
	return string(value)
}

// TestState checks that values can be read after the session is opened again. All digits and the order of keys must be
// preserved.
func TestState(t *testing.T) {
	dir := t.TempDir()
	s := NewStates(dir).StateFor("default")
	set(t, s, "a", `{"z": 12345678901234567890, "b": null}`)
	set(t, s, "gone", `1`)
	set(t, s, "null", `null`)
	if was, err := s.DeleteKey("gone"); !was || err != nil {
		t.Error(was, err)
	}
	if was, err := s.DeleteKey("gone"); was || err != nil {
		t.Error(was, err)
	}
	again := NewStates(dir)
	if got := get(t, again.StateFor("default"), "a") + get(t, again.StateFor("default"), "null") + get(t, again.StateFor("default"), "gone") + get(t, again.StateFor("other"), "a"); got != `{"z":12345678901234567890,"b":null}null(nothing)(nothing)` {
		t.Errorf("%s", got)
	}
	if keys, err := again.StateFor("default").ListKeys(); fmt.Sprint(keys, err) != "[a null] <nil>" {
		t.Error(keys, err)
	}
	if keys, err := again.StateFor("other").ListKeys(); fmt.Sprint(keys, err) != "[] <nil>" || keys == nil {
		t.Error(keys, err)
	}
}

// TestStateIsShared checks that engines with the same data directory do not overwrite each other's values.
func TestStateIsShared(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	for i := range 4 {
		s := NewStates(dir).StateFor("default")
		for j := range 10 {
			all.Go(func() {
				if err := s.Set(fmt.Sprint(i, ".", j), json.RawMessage(fmt.Sprint(j))); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	if keys, err := NewStates(dir).StateFor("default").ListKeys(); len(keys) != 40 || err != nil {
		t.Error(len(keys), err)
	}
}

func TestStateBounds(t *testing.T) {
	s := NewStates(t.TempDir()).StateFor("default")
	set(t, s, "half", `"`+strings.Repeat("x", MaxState/2)+`"`)
	var e *core.Error
	if err := s.Set("more", json.RawMessage(`"`+strings.Repeat("x", MaxState/2)+`"`)); !errors.As(err, &e) || e.Kind != core.KindLimit {
		t.Errorf("%v", err)
	}
	if get(t, s, "more") != "(nothing)" || len(get(t, s, "half")) != MaxState/2+2 {
		t.Error("a refused value has changed something")
	}
	for key, value := range map[string]string{"": `1`, strings.Repeat("k", 300): `1`, "bad": `{`} {
		if err := s.Set(key, json.RawMessage(value)); !errors.As(err, &e) || e.Kind != core.KindInvalidArguments {
			t.Errorf("%.10q: %v", key, err)
		}
	}
}

// TestStateIsNotGuessed checks that a state file is neither read nor overwritten if it is damaged or has a later
// version.
func TestStateIsNotGuessed(t *testing.T) {
	for _, text := range []string{`{"version":1,"val`, `{"version":2,"values":{}}`, ``} {
		dir := t.TempDir()
		path := filepath.Join(dir, "default.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := NewStates(dir).StateFor("default")
		if _, _, err := s.Get("a"); err == nil {
			t.Errorf("%q is read", text)
		}
		if err := s.Set("a", json.RawMessage("1")); err == nil {
			t.Errorf("%q is written over", text)
		}
		if kept, _ := os.ReadFile(path); string(kept) != text {
			t.Errorf("%q became %q", text, kept)
		}
	}
}

func TestStateDraft(t *testing.T) {
	s := NewStates(t.TempDir()).StateFor("default")
	set(t, s, "a", `1`)
	d, err := s.NewDraft()
	if err != nil {
		t.Fatal(err)
	}
	set(t, d, "a", `2`)
	set(t, d, "b", `2`)
	if get(t, d, "a") != "2" || get(t, s, "a") != "1" || get(t, s, "b") != "(nothing)" {
		t.Error("a draft is no draft")
	}
}

func TestStateFunctions(t *testing.T) {
	f := NewStates(t.TempDir()).StateFor("default").StateFunctions()
	for _, c := range [][3]string{
		{"state_get", `{"key":"a"}`, "null"}, {"state_get", `{"key":"a","default":[1]}`, "[1]"}, {"state_get", `{"key":"a","found":true}`, "[]"},
		{"state_set", `{"key":"a","value":null}`, "null"}, {"state_get", `{"key":"a","found":true}`, "[null]"}, {"state_get", `{"key":"a","default":1}`, "null"},
		{"state_keys", `{}`, `["a"]`}, {"state_delete", `{"key":"a"}`, "true"}, {"state_delete", `{"key":"a"}`, "false"}, {"state_keys", `{}`, "[]"},
		{"state_set", `{"key":"a"}`, `there is no value for "a"`},
	} {
		answer, err := f[c[0]](context.Background(), json.RawMessage(c[1]))
		text, _ := json.Marshal(answer)
		if err != nil {
			text = []byte(core.AsError(err).Message)
		}
		if string(text) != c[2] {
			t.Errorf("%s %s: %s", c[0], c[1], text)
		}
	}
}
