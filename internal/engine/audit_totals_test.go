package engine_test

import (
	"encoding/json"
	"strings"
	"testing"

	"retort/internal/admin"
	"retort/internal/devel/testenv"
	"retort/internal/engine"
)

// TestStatsOfTheRecord checks that an engine's statistics include the executions that other engines recorded.
func TestStatsOfTheRecord(t *testing.T) {
	c := engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Limits: unlimitedTime, Home: t.TempDir(), Keys: t.TempDir()}
	with := func(settings string) *engine.Engine {
		c := c
		c.Settings = settings
		e, err := engine.Open(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = e.Close() })
		return e
	}
	stats := func(e *engine.Engine, session string) string {
		text, err := json.Marshal(e.Stats(t.Context(), session))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	first, second := with(""), with("")
	first.Execute(t.Context(), engine.Request{Code: "return 1", Session: "a"})
	second.Execute(t.Context(), engine.Request{Code: "throw 1", Session: "b"})
	testenv.WaitUntil(t, "both executions are recorded with their ends", func() bool {
		used, err := admin.SumUsage(t.Context(), c, admin.UsageSpan{})
		return err == nil && used.ByStatus["ok"] == 1 && used.ByStatus["error"] == 1
	})
	var all string
	testenv.WaitUntil(t, "the record is added up", func() bool {
		all = stats(first, "")
		return strings.Contains(all, `"recorded"`)
	})
	if !strings.Contains(all, `"recorded":{"executions":2,"by_status":{"error":1,"ok":1}`) || !strings.Contains(all, `"total":1`) {
		t.Error(all)
	}
	_ = first.Close()
	var one string
	testenv.WaitUntil(t, "the record of a session is added up", func() bool {
		one = stats(second, "a")
		return strings.Contains(one, `"recorded"`)
	})
	if !strings.Contains(one, `"recorded":{"executions":1,"by_status":{"ok":1}`) {
		t.Error(one)
	}
	if none := stats(with("auditLogging: false"), ""); strings.Contains(none, `"recorded"`) {
		t.Error(none)
	}
	c.Settings = "stats: {price: {input: 2}}"
	used, err := admin.SumUsage(t.Context(), c, admin.UsageSpan{Session: "b"})
	if err != nil || used.Executions != 1 || used.Cost == nil || used.Cost.Avoided != float64(used.Avoided)/1e6*2 {
		t.Errorf("%+v, %v", used, err)
	}
}
