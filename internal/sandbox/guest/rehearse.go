package guest

import (
	"bytes"
	"encoding/json"
	"errors"

	lib "modernc.org/libquickjs"
	"modernc.org/quickjs"

	"retort/internal/core"
	"retort/internal/sandbox/wire"
)

// rehearsalProgram is a JavaScript program that uses the features of typical programs and has no lasting effect.
const rehearsalProgram = `(async function () {
	'use strict';
	class Row { #n = 1; constructor(id, ...rest) { this.id = id; this.rest = rest; } get n() { return this.#n; } }
	const wait = async (value) => { await null; return value; };
	const rows = Array.from({ length: 3 }, (_, i) => new Row(i, 'a', i / 2));
	let sum = 0, text = '';
	for (const { id, rest: [first, half = 0], n } of rows) { sum += await wait(id * half + n); text += ` + "`${first}-${id}`" + `; }
	for (let i = 0; i < rows.length; i++) { try { if (i === 1) { throw new Error('x'); } sum += i; } catch (e) { text += e.message; } finally { sum -= 1; } }
	const all = await Promise.all(rows.map(async (row) => ({ ...row, text: await wait(text) })));
	const byId = Object.fromEntries(all.filter((row) => row.id > 0).map((row) => [row.id, row]));
	const [most] = Object.values(byId).sort((a, b) => b.id - a.id);
	const back = JSON.parse(JSON.stringify({ most, sum, on: true, off: null, list: [1, 'two', 3.5] }));
	return typeof back.sum === 'number' && /^a-\d/.test(text) && new Map([[most?.id ?? 0, back]]).size === 1;
})`

// finishWaking completes the start of a guest in a copy of a saved virtual machine, shortly before its program
// arrives. It seeds the random number generator and warms up an emulated processor.
func (g *guestProgram) finishWaking() error { return errors.Join(g.reseedRandom(), g.warmEmulator()) }

// warmEmulator runs typical code before the program arrives, so that an emulated processor has translated the code. A
// copy of a virtual machine keeps the machine's memory but not the translated code.
func (g *guestProgram) warmEmulator() error {
	function, ok, err := g.js.evaluateScript(rehearsalProgram, "rehearsal")
	if err != nil || !ok {
		return errors.Join(err, errRehearsal)
	}
	defer function.Free()
	promise, err := function.CallValue(quickjs.UndefinedValue)
	if err != nil {
		return err
	}
	defer promise.Free()
	if err := g.rehearseCall(); err != nil {
		return err
	}
	value, fulfilled, settled := g.js.promiseState(promise)
	defer value.Free()
	if good, err := value.Any(); !settled || !fulfilled || err != nil || good != true {
		return errRehearsal
	}
	return nil
}

var errRehearsal = errors.New("guest: the rehearsal failed")

// rehearseCall encodes a tool call without sending it, and decodes a result.
func (g *guestProgram) rehearseCall() error {
	conn := wire.NewConn(&duplexConn{&bytes.Buffer{}, &bytes.Buffer{}})
	if err := conn.SendFrame(wire.CallFrame(1, wire.CallHead{Server: "s", Tool: "t"}, []byte("{}"))); err != nil {
		return err
	}
	start, err := json.Marshal(wire.ProgramStart{})
	if err == nil {
		err = json.Unmarshal(start, &wire.ProgramStart{})
	}
	if err != nil {
		return err
	}
	wire.DoneFrame(wire.ProgramDone{Status: core.StatusOK, HasValue: true}, []byte("1"))
	promise, resolve, reject := g.js.newPromise()
	if isException(promise) {
		return g.js.takeException()
	}
	answer := g.resultValue(&pendingCall{target: &callTarget{}}, wire.Frame{Body: []byte(`{"a":[1]}`)})
	for _, v := range []lib.TJSValue{g.js.callFunction(resolve, answer), answer, reject, resolve, promise} {
		g.js.freeValue(v)
	}
	return g.runJobs()
}
