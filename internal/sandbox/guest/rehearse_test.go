package guest

import (
	"testing"

	"modernc.org/quickjs"
)

// TestRehearsal checks that warmEmulator leaves nothing behind that a program could notice.
func TestRehearsal(t *testing.T) {
	js, err := newEngine()
	if err != nil {
		t.Fatal(err)
	}
	g := &guestProgram{js: js, timers: newTimers(), pending: map[uint32]*pendingCall{}}
	if err := g.loadPrelude(); err != nil {
		t.Fatal(err)
	}
	look := func() any {
		v, ok, err := js.evaluateScript("JSON.stringify([Reflect.ownKeys(globalThis).map(String), typeof globalThis.Row, Object.getOwnPropertyNames(Object.prototype), (RegExp.lastMatch ?? null)])", "look")
		if err != nil || !ok {
			t.Fatal(err)
		}
		defer v.Free()
		seen, err := v.Any()
		if err != nil {
			t.Fatal(err)
		}
		return seen
	}
	before := look()
	for range 3 {
		if err := g.warmEmulator(); err != nil {
			t.Fatal(err)
		}
	}
	if after := look(); after != before {
		t.Errorf("%v\nwas\n%v", after, before)
	}
	if reason, found := js.firstUnhandled(quickjs.UndefinedValue); found || len(g.pending) > 0 || g.made > 0 {
		t.Errorf("%v, %d calls", reason, g.made)
	}
}
