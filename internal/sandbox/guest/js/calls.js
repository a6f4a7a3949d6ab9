// Calls to the host. Go keeps the calls that are under way: native.call gives a
// promise, which Go fulfils with the result, or rejects with what failed makes.
'use strict';
const { ToolError } = require('errors');
const { render, renderArguments } = require('values');
const { parse } = JSON;
const { isSafeInteger } = Number;
const { defineProperty } = Object;
const BigInteger = BigInt;
const isInteger = uncurry(RegExp.prototype.exec);
const split = uncurry(String.prototype.split);
const slice = uncurry(String.prototype.slice);
const includes = uncurry(String.prototype.includes);

function uncurry(method) {
	return Function.prototype.call.bind(method);
}

// callee gives a function that calls a tool, or with an empty server one of the
// engine's own functions.
exports.callee = function callee(server, tool) {
	let target;
	return (args) => native.call(target ??= native.target(server, tool), renderArguments(args, server, tool) ?? '{}');
};

// callNamed gives the function that calls a tool by a name which the program has as text. What a
// call begins with is the same for each name, and to make it anew would cost more than the rest.
exports.callNamed = function callNamed() {
	const target = native.target('', 'call');
	const beginnings = { __proto__: null };
	return (name, args, fresh) => {
		const text = args === undefined || args === null ? '{}' : renderArguments(args, '', name) ?? '{}';
		const beginning = beginnings[name] ??= '{"name":' + render(name) + ',"arguments":';
		return native.call(target, beginning + text + (fresh ? ',"no_cache":true}' : '}'));
	};
};

// pageCaller gives a function that asks for a page of the list that a call of a tool gives. It takes
// the list that the page before was told to be of, first 0.
exports.pageCaller = function pageCaller(server, tool, args) {
	const target = native.target('', 'page');
	const beginning = '{"server":' + render(server) + ',"tool":' + render(tool) + ',"arguments":' + (renderArguments(args, server, tool) ?? '{}') + ',"list":';
	return (list) => native.call(target, `${beginning}${list}}`);
};

// approver gives the function that asks a person about a list of calls.
exports.approver = function approver() {
	const target = native.target('', 'approve');
	return (purpose, calls, optional) => {
		const list = calls.map(({ name, server, tool, args }) => (name === undefined ? '{"server":' + render(server) + ',"tool":' + render(tool) : '{"name":' + render(name))
			+ ',"arguments":' + (renderArguments(args, server ?? '', tool ?? name) ?? '{}') + '}');
		return native.call(target, `{"purpose":${render(purpose)},"calls":[${list.join(',')}],"optional":${optional}}`);
	};
};

const own = { __proto__: null };
exports.callOwn = function callOwn(name, args) {
	return (own[name] ??= exports.callee('', name))(args);
};

// callOwnNow calls one of the engine's own functions and waits for it. It is
// told the answer as a letter and a text, see answer in calls.go.
exports.callOwnNow = function callOwnNow(name, args) {
	const answer = native.callSync(name, render(args) ?? '{}');
	const text = slice(answer, 1);
	switch (answer[0]) {
	case 'e':
		throw failed(text, '', name);
	case 'b':
		return revived(text);
	}
	return parse(text);
};

exports.parsed = (text) => parse(text);

// revived is the value of JSON that may have long integers.
function revived(text) {
	return parse(text, longInteger);
}
exports.revived = revived;

const integer = /^-?\d+$/;

// longInteger revives integers that a number cannot hold as BigInt.
function longInteger(_, value, context) {
	if (typeof value === 'number' && !isSafeInteger(value) && isInteger(integer, context.source) !== null) {
		return BigInteger(context.source);
	}
	return value;
}

// failed makes the error of a call, whose place is that of the functions that
// are running.
function failed(text, server, tool) {
	const e = parse(text);
	const error = new ToolError(e.message, { kind: e.kind, server: e.server ?? server, tool: e.tool ?? tool, hint: e.hint });
	return defineProperty(error, 'stack', { value: ownFrames(error.stack), writable: true, configurable: true });
}
exports.failed = failed;

// placed makes the place of an error that of another one, whose frames it takes over.
exports.placed = function placed(error, other) {
	return defineProperty(error, 'stack', { value: ownFrames(other.stack), writable: true, configurable: true });
};

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
