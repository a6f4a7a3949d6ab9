package retort_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"retort"
)

// An engine knows of what others have recorded, without waiting for it for long.
func TestStatsOfTheRecord(t *testing.T) {
	home, keys := t.TempDir(), t.TempDir()
	with := func(settings string) *retort.Engine {
		e, err := retort.Open(t.Context(), retort.Config{NoFiles: true, Home: home, Keys: keys, Settings: settings})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = e.Close() })
		return e
	}
	stats := func(e *retort.Engine, session string) string {
		began := time.Now()
		text, err := json.Marshal(e.Stats(t.Context(), session))
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %s", took)
		}
		return string(text)
	}
	first, second := with(""), with("")
	first.Execute(t.Context(), retort.Request{Code: "return 1", Session: "a"})
	second.Execute(t.Context(), retort.Request{Code: "throw 1", Session: "b"})
	stats(first, "") // adds up for all that ask later
	var all string
	for end := time.Now().Add(10 * time.Second); !strings.Contains(all, `"recorded"`) && time.Now().Before(end); {
		all = stats(first, "")
	}
	if !strings.Contains(all, `"recorded":{"executions":2,"by_status":{"error":1,"ok":1}`) || !strings.Contains(all, `"total":1`) {
		t.Error(all)
	}
	_ = first.Close()
	stats(second, "a")
	time.Sleep(200 * time.Millisecond)
	if one := stats(second, "a"); !strings.Contains(one, `"recorded":{"executions":1,"by_status":{"ok":1}`) {
		t.Error(one)
	}
	if none := stats(with("auditLogging: false"), ""); strings.Contains(none, `"recorded"`) {
		t.Error(none)
	}
	used, err := retort.Used(t.Context(), retort.Config{NoFiles: true, Home: home, Keys: keys, Settings: "stats: {price: {input: 2}}"}, retort.Span{Session: "b"})
	if err != nil || used.Executions != 1 || used.Cost == nil || used.Cost.Avoided != float64(used.Avoided)/1e6*2 {
		t.Errorf("%+v, %v", used, err)
	}
}
