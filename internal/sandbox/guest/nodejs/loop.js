// The event loop of a program. Each turn runs in a task of the platform's own, at
// whose end the platform runs all jobs that are ready; so at the beginning of a
// turn nothing is left that could go on without an event.
'use strict';
const host = require('host');
const alarms = require('alarms');
const frames = require('frames');
const failure = require('failure');
const rejections = require('rejections');
const { now } = require('clock');
const main = require('main');
const { setImmediate } = native;
const { stringify } = JSON;
const { defineProperty } = Object;
const { min } = Math;
const slice = Function.prototype.call.bind(String.prototype.slice);
const { begin, warned } = require('natives');
const { Script } = native.load('node:vm');
const { head, tail, setFile, addFile } = require('stack');

const lingering = 1000; // ms that calls which were not awaited may go on

let program; // as in wire.Start
let file;
let settled = null; // the outcome of the promise that is watched
let phase = 0; // 0 the program runs, 1 its value becomes JSON, 2 calls linger, 3 late handlers get their chance
let rendered, deadline = Infinity, chances = 3;
let over = false;

async function watch(promise) {
	settled = null;
	try {
		settled = { __proto__: null, ok: true, value: await promise };
	} catch (e) {
		settled = { __proto__: null, ok: false, value: e };
	}
}

// fail ends the program for something thrown.
function fail(value) { end(failure.thrown(value, file, program.memory)); }

function turn() {
	try {
		step();
	} catch (e) {
		fail(e);
	}
	if (!over) {
		setImmediate(turn);
	}
}

function step() {
	if (phase < 2) {
		if (settled === null) {
			waitForProgram();
		} else if (!settled.ok) {
			fail(settled.value);
		} else if (phase++ === 0) {
			watch(main.finish(settled.value));
		} else {
			rendered = settled.value;
			deadline = now() + lingering;
		}
	} else if (phase === 2 && host.underWay() > 0 && now() < deadline) {
		dispatch(deadline);
	} else {
		phase = 3;
		if (--chances === 0) {
			conclude();
		}
	}
}

function waitForProgram() {
	if (host.underWay() === 0 && alarms.next() === Infinity) {
		end(failure.deadlock());
		return;
	}
	dispatch(Infinity);
}

// dispatch waits for one thing to happen and tells the program of it.
function dispatch(until) {
	const due = alarms.take(now());
	if (due !== 0) {
		main.fire(due);
		return;
	}
	const result = host.next(min(alarms.next(), until));
	if (result !== null) {
		settle(result);
	}
}

// settle fulfils or rejects the promise of a call.
function settle({ call, failure, text, long }) {
	let value;
	try {
		value = failure !== null ? toolError(call, failure) : long ? main.revived(text) : main.parsed(text);
	} catch (e) {
		call.reject(e);
		return;
	}
	failure !== null ? call.reject(value) : call.resolve(value);
}

// toolError is the error of a call, with the place where it was made.
function toolError({ target, trace }, failure) {
	const error = main.failed(failure, target.server, target.tool);
	return defineProperty(error, 'stack', { __proto__: null, value: trace.stack, writable: true, configurable: true });
}

function conclude() {
	const unhandled = rejections.first();
	if (unhandled !== null) {
		fail(unhandled.reason);
		return;
	}
	if (rendered === undefined) {
		end({ __proto__: null, status: 'ok' });
		return;
	}
	const bytes = frames.bytesOf(rendered);
	if (bytes.length > program.result) {
		end(failure.resultStop(bytes.length, program.result));
		return;
	}
	end({ __proto__: null, status: 'ok', has_value: true }, bytes);
}

// end sends the last word. The host closes the connection then.
function end(done, value = '') {
	if (over) {
		return;
	}
	over = true;
	frames.post(frames.kinds.done, 0, encodeDone(done, host.underWay()), value);
	host.drain();
}

// encodeDone is the JSON of a wire.Done.
function encodeDone(done, left) {
	const text = stringify(done);
	let warnings = warned();
	if (left > 0) {
		warnings += (warnings === '' ? '' : ',') + stringify(`calls still running when the program ended: ${left}; it is unknown whether they took effect`);
	}
	return warnings === '' ? text : `${slice(text, 0, -1)},"warnings":[${warnings}]}`;
}

function compile(code) {
	let made;
	try {
		made = new Script(head + code + tail, { filename: file }).runInThisContext();
	} catch (e) {
		end(failure.syntax(e, file));
		return undefined;
	}
	return made;
}

const plainName = /^[A-Za-z0-9._/-]{1,100}$/;

rejections.onException = fail;

// run runs the program of a start frame.
exports.run = function run(start) {
	program = JSON.parse(start.head);
	file = plainName.test(program.name) ? program.name : 'program.ts';
	setFile(file);
	const namespaces = program.namespaces ?? [];
	begin(namespaces);
	const modules = program.modules ?? [];
	for (const m of modules) {
		addFile(m.file);
	}
	native.skill = (i) => new Script(head + modules[i].code + tail, { filename: modules[i].file }).runInThisContext();
	const meta = main.prepare(stringify(namespaces.map((n) => ({ ...n, functions: [] }))), file, stringify(modules.map((m) => ({ ...m, code: '' }))));
	const made = compile(start.body);
	if (over) {
		return;
	}
	frames.hurry();
	try {
		watch(modules.some((m) => m.global) ? main.startLater(made, meta) : made(main.importModule, main.exported, meta));
	} catch (e) {
		fail(e); // the stack is full, or the code is not one function
	}
	setImmediate(turn);
};
