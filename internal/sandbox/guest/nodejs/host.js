// Calls to the host, and its answers.
'use strict';
const frames = require('frames');
const { kinds, post, flush } = frames;
const { now } = require('clock');
const { exit } = require('exit');
const { stringify } = JSON;
const { ceil, min, max } = Math;
const uncurry = (method) => Function.prototype.call.bind(method);
const exec = uncurry(RegExp.prototype.exec), startsWith = uncurry(String.prototype.startsWith), slice = uncurry(String.prototype.slice);

const window = 32 << 20; // bytes of arguments under way; the host reads on as long as it holds less
const small = 4 << 10; // calls below it don't count
const P = Promise, E = Error;
const pending = { __proto__: null }; // calls without a result so far, by id
let lastID = 0;
let underWay = 0;
let sent = 0;
const sizes = { __proto__: null }; // of the calls that count, by id
let firstHeld = null, lastHeld = null; // calls that wait until fewer bytes are under way
let firstKept = null, lastKept = null; // results that arrived during a synchronous call
let wakeAt = Infinity; // when the host will wake us

exports.underWay = () => underWay;

// target gives what a call to a tool begins with.
exports.target = function target(server, tool) {
	return { __proto__: null, server, tool, head: stringify({ __proto__: null, server, tool }) };
};

function transmit(call) {
	if (call.size >= small) {
		sizes[call.id] = call.size;
		sent += call.size;
	}
	post(kinds.call, call.id, call.target.head, call.args);
	call.args = '';
}

// call sends a call and gives the promise of its result, which the loop settles.
exports.call = function call(target, args) {
	return new P((resolve, reject) => {
		const made = { __proto__: null, id: ++lastID, target, args, size: args.length, next: null, resolve, reject, trace: new E() };
		pending[made.id] = made;
		underWay++;
		if (firstHeld === null && (sent === 0 || sent + made.size <= window)) {
			transmit(made);
		} else if (firstHeld === null) {
			firstHeld = lastHeld = made;
		} else {
			lastHeld = lastHeld.next = made;
		}
	});
};

function received(id) {
	if (id in sizes) {
		sent -= sizes[id];
		delete sizes[id];
	}
	while (firstHeld !== null && (sent === 0 || sent + firstHeld.size <= window)) {
		transmit(firstHeld);
		firstHeld = firstHeld.next;
	}
}

// callSync calls one of the engine's own functions and waits. Results of other
// calls that arrive meanwhile are kept for later.
exports.callSync = function callSync(tool, args) {
	const id = ++lastID;
	post(kinds.call, id, stringify({ __proto__: null, tool }), args);
	flush();
	for (;;) {
		const frame = readFrame();
		if (frame !== null && frame.id === id) {
			const failure = failureOf(frame);
			return failure !== null ? `e${failure}` : (isLong(frame) ? 'b' : 'v') + frame.body;
		}
		if (frame !== null) {
			const kept = { __proto__: null, frame, next: null };
			lastKept = firstKept === null ? firstKept = kept : lastKept.next = kept;
		}
	}
};

// readFrame gives the next result, or null if the host wakes us.
function readFrame() {
	const frame = frames.read();
	if (frame === null) {
		exit();
	}
	if (frame.kind === kinds.wake) {
		wakeAt = Infinity;
		return null;
	}
	return frame;
}

// next gives the next result as {call, failure, text, long}, or null if the time
// is due, or perhaps before. A failure is JSON, else the text is, and if it is
// long, it may have integers that are too long for a number. What is queued is
// sent before it waits.
exports.next = function next(due) {
	let frame;
	if (firstKept !== null) {
		({ frame } = firstKept);
		firstKept = firstKept.next;
	} else {
		if (!frames.arrived()) {
			prepareToWait(due);
		}
		frame = readFrame();
	}
	if (frame === null) {
		return null;
	}
	const call = pending[frame.id];
	delete pending[frame.id];
	underWay--;
	received(frame.id);
	return { __proto__: null, call, failure: failureOf(frame), text: frame.body, long: isLong(frame) };
};

function prepareToWait(due) {
	if (due < wakeAt) {
		wakeAt = due;
		post(kinds.wake, max(1, min(ceil(due - now()), 2 ** 31 - 1)), '', '');
	}
	flush();
}

const failed = '{"error":'; // how the head of a wire.Answer with an error begins
const longInteger = /\d{16}/;

// failureOf is the error in a result, as JSON, or null.
function failureOf(frame) {
	return startsWith(frame.head, failed) ? slice(frame.head, failed.length, -1) : null;
}

function isLong(frame) { return exec(longInteger, frame.body) !== null; }

// drain reads what nobody waits for any more, until the input ends.
exports.drain = function drain() {
	flush();
	while (frames.read() !== null) { /* on */ }
	exit();
};
