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
let underWay = 0;
let sent = 0;
const sizes = { __proto__: null }; // of the calls that count, by id
let firstHeld = null, lastHeld = null; // calls that wait until fewer bytes are under way
let firstKept = null, lastKept = null; // results that arrived during a synchronous call
let wakeAt = Infinity; // when the host will wake us

exports.underWay = () => underWay;

function transmit(call) {
	if (call.size >= small) {
		sizes[call.id] = call.size;
		sent += call.size;
	}
	post(kinds.call, call.id, stringify({ __proto__: null, server: call.server, tool: call.tool }), call.args);
}

exports.call = function call(id, server, tool, args) {
	const made = { __proto__: null, id, server, tool, args, size: args.length, next: null };
	underWay++;
	if (firstHeld === null && (sent === 0 || sent + made.size <= window)) {
		transmit(made);
	} else if (firstHeld === null) {
		firstHeld = lastHeld = made;
	} else {
		lastHeld = lastHeld.next = made;
	}
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
exports.callSync = function callSync(id, tool, args) {
	post(kinds.call, id, stringify({ __proto__: null, tool }), args);
	flush();
	for (;;) {
		const frame = readFrame();
		if (frame !== null && frame.id === id) {
			return answer(frame);
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

// next gives the next result as {id, answer}, or null if the time is due, or
// perhaps before. What is queued is sent before it waits.
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
	underWay--;
	received(frame.id);
	return { __proto__: null, id: frame.id, answer: answer(frame) };
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

// answer is the result of a call as calls.js takes it: a letter and a text. "v"
// is JSON, "b" JSON with integers that may be too long for a number, "e" an
// error as JSON.
function answer(frame) {
	if (startsWith(frame.head, failed)) {
		return `e${slice(frame.head, failed.length, -1)}`;
	}
	return (exec(longInteger, frame.body) === null ? 'v' : 'b') + frame.body;
}

// drain reads what nobody waits for any more, until the input ends.
exports.drain = function drain() {
	flush();
	while (frames.read() !== null) { /* on */ }
	exit();
};
