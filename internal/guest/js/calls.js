// Calls to the host. A call is a promise that settle fulfils or rejects.
'use strict';
const { ToolError } = require('errors');
const { render } = require('values');
const { parse } = JSON;
const { isSafeInteger } = Number;
const P = Promise, E = Error, BigInteger = BigInt;
const isInteger = uncurry(RegExp.prototype.exec);
const split = uncurry(String.prototype.split);
const slice = uncurry(String.prototype.slice);
const includes = uncurry(String.prototype.includes);

function uncurry(method) {
	return Function.prototype.call.bind(method);
}

const pending = { __proto__: null };
let made = 0;

// callTool calls a tool, or with an empty server one of the engine's own
// functions.
function callTool(server, tool, args) {
	const encoded = render(args) ?? '{}';
	const stack = new E().stack;
	return new P((resolve, reject) => {
		const id = ++made;
		pending[id] = { resolve, reject, stack, server, tool };
		native.call(id, server, tool, encoded);
	});
}
exports.callTool = callTool;
exports.callOwn = (name, args) => callTool('', name, args);

// callOwnNow calls one of the engine's own functions and waits for it.
exports.callOwnNow = function callOwnNow(name, args) {
	const stack = new E().stack;
	const answer = native.callSync(++made, name, render(args) ?? '{}');
	if (answer[0] === 'e') {
		throw errorOf(answer, { stack, server: '', tool: name });
	}
	return valueOf(answer);
};

// settle is told the answer to a call: a letter and a text, see answer in loop.go.
exports.settle = function settle(id, answer) {
	const call = pending[id];
	if (call === undefined) {
		return;
	}
	delete pending[id];
	if (answer[0] === 'e') {
		call.reject(errorOf(answer, call));
		return;
	}
	let value;
	try {
		value = valueOf(answer);
	} catch (e) {
		call.reject(e);
		return;
	}
	call.resolve(value);
};

function valueOf(answer) {
	const text = slice(answer, 1);
	return answer[0] === 'b' ? parse(text, longInteger) : parse(text);
}

const integer = /^-?\d+$/;

// longInteger revives integers that a number cannot hold as BigInt.
function longInteger(_, value, context) {
	if (typeof value === 'number' && !isSafeInteger(value) && isInteger(integer, context.source) !== null) {
		return BigInteger(context.source);
	}
	return value;
}

function errorOf(answer, call) {
	const e = parse(slice(answer, 1));
	const error = new ToolError(e.message, { kind: e.kind, server: e.server ?? call.server, tool: e.tool ?? call.tool, hint: e.hint });
	Object.defineProperty(error, 'stack', { value: ownFrames(call.stack), writable: true, configurable: true });
	return error;
}

// ownFrames leaves out the frames of this prelude.
function ownFrames(stack) {
	let out = '';
	const lines = split(stack, '\n');
	for (let i = 0; i < lines.length; i++) {
		if (lines[i] !== '' && !includes(lines[i], '<eval>')) {
			out += `${lines[i]}\n`;
		}
	}
	return out;
}
