package workspace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"retort/internal/base/seal"
	"retort/internal/core"
)

// MaxState bounds the total size of all keys and values in a session's state, in bytes. The values count as JSON.
const MaxState = 1 << 20

const (
	maxStateKey    = 256              // maximum length of a key, in bytes
	statePatience  = 10 * time.Second // maximum time to wait for another process that writes the state
	stateStructure = 1                // version of the state file's format
)

// StateStore stores the states of sessions: small JSON values that programs keep from one execution to the next. Each
// session has one file in the store's folder. A StateStore is safe for concurrent use, also by several processes.
type StateStore struct {
	dir   string
	mu    sync.Mutex
	known map[string]*SessionState
}

// NewStates returns a store of states in dir. The folder is created when the first value is set.
func NewStates(dir string) *StateStore {
	return &StateStore{dir: dir, known: map[string]*SessionState{}}
}

// maxStates bounds the number of states kept in memory. Callers choose the names of sessions, so their number is
// otherwise unlimited.
const maxStates = 128

// StateFor returns the state of a session.
func (s *StateStore) StateFor(session string) *SessionState {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.known[session]; known != nil {
		return known
	}
	if len(s.known) >= maxStates {
		clear(s.known) // acknowledged changes are on disk
	}
	state := &SessionState{path: s.stateFile(folderName(session))}
	s.known[session] = state
	return state
}

// stateFile returns the path of the state file of the session with the given folder name.
func (s *StateStore) stateFile(folder string) string { return filepath.Join(s.dir, folder+".json") }

// removeState removes the state of the session with the given folder name.
func (s *StateStore) removeState(folder string) error {
	err := os.Remove(s.stateFile(folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// SessionState holds the values of one session. If Set or DeleteKey returns no error, the change is on disk.
type SessionState struct {
	path string // path of the state file; "" for a draft, whose values are only in memory

	mu     sync.Mutex
	values map[string]json.RawMessage // current values by key; the map is replaced and never changed
	// stamp describes the file from which values were read. It is nil if the file did not exist.
	stamp os.FileInfo
}

// stateFile represents the JSON content of a state file.
type stateFile struct {
	Version int                        `json:"version"`
	Values  map[string]json.RawMessage `json:"values"`
}

// NewDraft returns a state for a dry run, which begins with the current values of s. Changes to it do not affect s.
func (s *SessionState) NewDraft() (*SessionState, error) {
	values, err := s.readValues()
	return &SessionState{values: values}, err
}

// Get returns the value of a key. ok is false if the key does not exist.
func (s *SessionState) Get(key string) (value json.RawMessage, ok bool, err error) {
	values, err := s.readValues()
	value, ok = values[key]
	return value, ok, err
}

// ListKeys returns all keys in sorted order.
func (s *SessionState) ListKeys() ([]string, error) {
	values, err := s.readValues()
	keys := slices.AppendSeq([]string{}, maps.Keys(values))
	slices.Sort(keys)
	return keys, err
}

// Set sets a key to a value, which must be valid JSON.
func (s *SessionState) Set(key string, value json.RawMessage) error {
	if key == "" || len(key) > maxStateKey {
		return core.Errorf(
			core.KindInvalidArguments, "state.set", "a key must have between 1 and %d bytes, but this one has %d",
			maxStateKey, len(key),
		)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, value); err != nil {
		return core.Errorf(core.KindInvalidArguments, "state.set", "the value is not JSON: %v", err)
	}
	return s.changeValues(func(values map[string]json.RawMessage) error {
		values[key] = compact.Bytes()
		return checkSize(values)
	})
}

func checkSize(values map[string]json.RawMessage) error {
	total := 0
	for key, value := range values {
		total += len(key) + len(value)
	}
	if total <= MaxState {
		return nil
	}
	return core.Errorf(
		core.KindLimit, "state.set",
		"the state of a session may have at most %d bytes of keys and JSON; with this value it would have %d", MaxState,
		total,
	).
		WithHint("write large values to a file in ./workspace/, and store its name in the state")
}

// DeleteKey removes a key and reports whether it existed.
func (s *SessionState) DeleteKey(key string) (was bool, err error) {
	if _, ok, err := s.Get(key); !ok || err != nil {
		return false, err
	}
	err = s.changeValues(func(values map[string]json.RawMessage) error {
		_, was = values[key]
		delete(values, key)
		return nil
	})
	return was, err
}

func (s *SessionState) readValues() (map[string]json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values, s.reloadIfChanged()
}

// changeValues calls do with a copy of the values, and then stores the changed copy. Until it returns, no other
// process can change the values. If do or writing fails, the values stay unchanged.
func (s *SessionState) changeValues(do func(values map[string]json.RawMessage) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.path != "" {
		unlock, err := seal.Lock(s.path+".lock", statePatience)
		if err != nil {
			return core.Errorf(core.KindInternal, "state.set", "the state cannot be written: %w", err)
		}
		defer unlock()
	}
	if err := s.reloadIfChanged(); err != nil {
		return err
	}
	values := maps.Clone(s.values)
	if values == nil {
		values = map[string]json.RawMessage{}
	}
	if err := do(values); err != nil {
		return err
	}
	if err := s.storeValues(values); err != nil {
		return core.Errorf(core.KindInternal, "state.set", "the state could not be written and is unchanged: %w", err)
	}
	s.values = values
	return nil
}

func (s *SessionState) storeValues(values map[string]json.RawMessage) error {
	if s.path == "" {
		return nil
	}
	data, err := json.Marshal(stateFile{stateStructure, values})
	if err != nil {
		return err
	}
	if err := seal.ReplaceFile(s.path, data); err != nil {
		return err
	}
	s.stamp, err = os.Stat(s.path)
	return err
}

// reloadIfChanged reads the state file again if another process has written it.
func (s *SessionState) reloadIfChanged() error {
	if s.path == "" {
		return nil
	}
	now, err := os.Stat(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.values, s.stamp = nil, nil
		return nil
	case err == nil && s.stamp != nil && os.SameFile(now, s.stamp) && now.ModTime().Equal(s.stamp.ModTime()):
		return nil
	case err == nil:
		err = s.loadFile()
	}
	if err != nil {
		return core.Errorf(core.KindInternal, "state", "the state of this session cannot be read: %w", err).
			WithHint("nothing was changed; repair or remove %s", filepath.Base(s.path))
	}
	s.stamp = now
	return nil
}

func (s *SessionState) loadFile() error {
	data, err := seal.ReadFile(s.path, seal.MaxFile)
	if err != nil {
		return err
	}
	var f stateFile
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	if f.Version != stateStructure {
		return fmt.Errorf("it has version %d, but this Retort supports version %d", f.Version, stateStructure)
	}
	s.values = f.Values
	return nil
}

// StateFunctions returns the functions with which programs read and write their session's state, by name.
func (s *SessionState) StateFunctions() map[string]func(context.Context, json.RawMessage) (any, error) {
	type arguments struct {
		Key     string          `json:"key"`
		Value   json.RawMessage `json:"value"`
		Default json.RawMessage `json:"default"` // value that get returns for a key that does not exist
		// Found makes get return the value in a list, to distinguish null from a missing value.
		Found bool `json:"found"`
	}
	function := func(f func(arguments) (any, error)) func(context.Context, json.RawMessage) (any, error) {
		return func(_ context.Context, raw json.RawMessage) (any, error) {
			var a arguments
			if err := json.Unmarshal(raw, &a); err != nil {
				return nil, core.Errorf(core.KindInvalidArguments, "state", "%v", err)
			}
			return f(a)
		}
	}
	return map[string]func(context.Context, json.RawMessage) (any, error){
		"state_get": function(func(a arguments) (any, error) {
			value, ok, err := s.Get(a.Key)
			switch {
			case a.Found && ok:
				return []json.RawMessage{value}, err
			case a.Found:
				return []json.RawMessage{}, err
			case !ok:
				return a.Default, err
			}
			return value, err
		}),
		"state_set": function(func(a arguments) (any, error) {
			if len(a.Value) == 0 {
				return nil, core.Errorf(core.KindInvalidArguments, "state.set", "there is no value for %q", a.Key).WithHint("to remove a key, use delete")
			}
			return nil, s.Set(a.Key, a.Value)
		}),
		"state_delete": function(func(a arguments) (any, error) { return s.DeleteKey(a.Key) }),
		"state_keys":   function(func(arguments) (any, error) { return s.ListKeys() }),
	}
}
