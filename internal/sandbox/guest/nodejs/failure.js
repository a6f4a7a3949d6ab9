// How the end of a program is reported, see failure.go for QuickJS.
'use strict';
const { head, column, isSkill } = require('stack');
const { describe } = require('errors');
const { parse } = JSON;
const { max } = Math;
const uncurry = (method) => Function.prototype.call.bind(method);
const exec = uncurry(RegExp.prototype.exec), slice = uncurry(String.prototype.slice), indexOf = uncurry(String.prototype.indexOf);
const toFixed = uncurry(Number.prototype.toFixed), setPrototypeOf = Object.setPrototypeOf;

// bytes is a size for people, as wire.Bytes.
const units = ['bytes', 'kB', 'MB', 'GB', 'TB'];
function bytes(n) {
	let unit = 0;
	for (; n >= 1024 && unit < 4; unit++) {
		n /= 1024;
	}
	return `${toFixed(n, n === Math.floor(n) || n >= 100 ? 0 : 1)} ${units[unit]}`;
}

function failed(error) { return { __proto__: null, status: 'error', error: { __proto__: null, ...error } }; }
function limit(status, message, hint) { return { __proto__: null, status, error: { __proto__: null, kind: 'limit', message, hint } }; }

exports.memoryStop = (most) => limit('memory_limit', `the program needed more than its ${bytes(most)} of memory`,
	'process the data in parts and keep only what the result needs');
exports.resultStop = (size, most) => limit('output_limit', `the returned value has ${bytes(size)}, more than the ${bytes(most)} allowed`,
	'return a summary, or write the data to a file in ./workspace and return its path');
exports.deadlock = () => failed({ kind: 'runtime', message: 'the program waits for something that can never happen',
	hint: 'it awaits a promise that can no longer be settled: look for a resolve that is never called' });

function clip(text, most) {
	return text.length <= most ? text : `${slice(text, 0, most)}…`;
}

// The engines' words for what means that memory is used up: V8's, and JSC's.
const outOfMemory = /^(?:Array buffer allocation failed|Invalid string length|Invalid typed array length: \d{10,}|Out of memory)$/;
const overflow = /^Maximum call stack size exceeded\.?$/;
const long = 16 << 10, brief = 1 << 10;

// thrown reports what the program threw, or rejected and did not handle.
exports.thrown = function thrown(value, file, memory) {
	const t = setPrototypeOf(parse(describe(value)), null);
	const name = t.name ?? '', message = t.message ?? '';
	if (name === 'RangeError' && exec(outOfMemory, message) !== null) {
		return located(exports.memoryStop(memory), t.stack, file);
	}
	if (name === 'RangeError' && exec(overflow, message) !== null) {
		return located(failed({ kind: 'limit', message: 'the call stack overflowed: functions called each other too deeply',
			hint: 'look for endless recursion, or use a loop' }), t.stack, file);
	}
	if (t.kind) {
		return located(failed({ kind: clip(t.kind, brief), message: clip(message, long), hint: clip(t.hint, long), server: clip(t.server, brief), tool: clip(t.tool, brief) }), t.stack, file);
	}
	const words = name === '' ? clip(message, long) : message === '' ? clip(name, brief) : `${clip(name, brief)}: ${clip(message, long)}`;
	return located(failed({ kind: 'runtime', message: words }), t.stack, file);
};

const ownFrame = /^\s*at (?:(.*) \()?(.+):(\d+):(\d+)\)?$/;

// located adds the frames of stack that are the program's own, and the position
// of the innermost. If garbage was collected after the functions of the frames had ended,
// Bun wrote the stack itself: it has a first line, its positions are not corrected, and the
// column of a call is that of its arguments instead of that of its beginning.
function located(done, stack, file) {
	const { error } = done;
	const text = clip(stack ?? '', 64 << 10);
	const raw = native.runtime === 'bun' && exec(ownFrame, slice(text, 0, max(0, indexOf(text, '\n')))) === null;
	let own = '', found = 0;
	for (let from = 0; from < text.length && found < 10;) {
		let to = indexOf(text, '\n', from);
		to = to < 0 ? text.length : to;
		const match = exec(ownFrame, slice(text, from, to));
		from = to + 1;
		if (match === null || match[2] !== file && !isSkill(match[2])) {
			continue;
		}
		found++;
		const line = +match[3], at = raw ? column(line, +match[4]) : +match[4];
		if (match[2] === file && error.line === undefined) {
			error.line = line;
			error.column = at;
		}
		const name = clip(match[1] ?? '', 100);
		const place = `${match[2]}:${line}:${at}`;
		own += `${own === '' ? '' : '\n'}at ${name === '' || name === '<anonymous>' ? place : `${name} (${place})`}`;
	}
	error.stack = own;
	return done;
}

// syntax reports code that does not compile. The engine shows the place by the
// line and a mark below it.
exports.syntax = function syntax(error, file) {
	const place = exec(/^[^\n]*:(\d+)\n[^\n]*\n( *)\^/, `${error.stack}`);
	const done = failed({ kind: 'syntax', message: `${error.name}: ${error.message}` });
	if (place === null) {
		return done;
	}
	const line = +place[1];
	return located(done, `    at ${file}:${line}:${column(line, place[2].length + 1)}\n`, file);
};
