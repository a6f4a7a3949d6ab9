// Errors of tools, and what is told to the outside of whatever is thrown.
'use strict';
const { stringify } = JSON;
const { freeze } = Object;
const trimStart = Function.prototype.call.bind(String.prototype.trimStart);

// ToolError is what a failed call throws.
class ToolError extends Error {
	#tool = true;

	constructor(message, { kind, server, tool, hint, cause } = {}) {
		super(message, cause === undefined ? undefined : { cause });
		this.kind = kind ?? 'tool_error';
		this.server = server ?? '';
		this.tool = tool ?? '';
		this.hint = hint ?? '';
	}

	static is(value) {
		return typeof value === 'object' && value !== null && #tool in value;
	}
}
Object.defineProperty(ToolError.prototype, 'name', { value: 'ToolError', writable: true, configurable: true });
const isToolError = ToolError.is;
delete ToolError.is;
exports.ToolError = ToolError;

// describe says in JSON what was thrown. Whatever that is, it does not throw.
exports.describe = function describe(thrown) {
	try {
		return stringify(thrown === null ? { null: true, message: 'null was thrown' } : typeof thrown === 'object' ? describeObject(thrown) : describePrimitive(thrown));
	} catch {
		return '{"unreadable":true,"message":"something was thrown that cannot be read"}';
	}
};

function describePrimitive(thrown) {
	const { inspect } = require('inspect');
	return { __proto__: null, message: `${inspect(thrown)} was thrown, which is not an Error` };
}

function describeObject(thrown) {
	if (!('message' in thrown) && !('stack' in thrown)) {
		return describePrimitive(thrown);
	}
	const d = { __proto__: null, name: text(thrown.name), message: trimStart(text(thrown.message) + causes(thrown)), stack: text(thrown.stack) };
	if (isToolError(thrown)) {
		d.kind = text(thrown.kind);
		d.server = text(thrown.server);
		d.tool = text(thrown.tool);
		d.hint = text(thrown.hint);
	}
	return d;
}

// causes adds the errors inside of an error, which say what really happened.
function causes(error) {
	let out = '';
	const inner = error.cause;
	if (typeof inner === 'object' && inner !== null && 'message' in inner) {
		out += ` (cause: ${text(inner.name)}: ${text(inner.message)})`;
	}
	const list = error.errors;
	if (typeof list === 'object' && list !== null) {
		for (let i = 0; i < list.length && i < 5; i++) {
			out += `\n  [${i}] ${text(list[i]?.message ?? list[i])}`;
		}
	}
	return out;
}

function text(value) {
	return value === undefined || value === null ? '' : `${value}`;
}

freeze(exports);
