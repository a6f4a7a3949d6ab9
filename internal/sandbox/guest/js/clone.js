// structuredClone.
'use strict';
const { DOMException } = require('exception');
const errors = { Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };

exports.DOMException = DOMException;
exports.structuredClone = function structuredClone(value, { transfer = [] } = {}) {
	const clone = copy(value, new Map());
	for (const buffer of transfer) {
		buffer.transfer?.();
	}
	return clone;
};

function copy(value, seen) {
	if (typeof value === 'function' || typeof value === 'symbol') {
		throw new DOMException(`${String(value)} could not be cloned.`, 'DataCloneError');
	}
	if (typeof value !== 'object' || value === null) {
		return value;
	}
	if (seen.has(value)) {
		return seen.get(value);
	}
	const remember = (clone) => {
		seen.set(value, clone);
		return clone;
	};
	if (Array.isArray(value)) {
		const list = remember(new Array(value.length));
		return members(value, list, seen);
	}
	if (value instanceof Date) {
		return remember(new Date(value.getTime()));
	}
	if (value instanceof RegExp) {
		return remember(new RegExp(value.source, value.flags));
	}
	if (value instanceof Map) {
		const map = remember(new Map());
		for (const [k, v] of [...value]) {
			map.set(copy(k, seen), copy(v, seen));
		}
		return map;
	}
	if (value instanceof Set) {
		const set = remember(new Set());
		for (const v of [...value]) {
			set.add(copy(v, seen));
		}
		return set;
	}
	if (value instanceof ArrayBuffer) {
		return remember(value.slice(0));
	}
	if (ArrayBuffer.isView(value)) {
		return remember(copyView(value, seen));
	}
	if (value instanceof Error) {
		return copyError(value, remember, seen);
	}
	if (value instanceof String || value instanceof Number || value instanceof Boolean) {
		return remember(Object(value.valueOf()));
	}
	for (const type of [Promise, WeakMap, WeakSet, WeakRef]) {
		if (value instanceof type) {
			throw new DOMException(`#<${type.name}> could not be cloned.`, 'DataCloneError');
		}
	}
	return members(value, remember({}), seen);
}

function members(from, to, seen) {
	for (const key of Object.keys(from)) {
		Object.defineProperty(to, key, { value: copy(from[key], seen), writable: true, enumerable: true, configurable: true });
	}
	return to;
}

function copyView(value, seen) {
	const buffer = copy(value.buffer, seen);
	const kind = globalThis[value[Symbol.toStringTag] ?? 'DataView'] ?? DataView;
	return new kind(buffer, value.byteOffset, value.length ?? value.byteLength);
}

function copyError(value, remember, seen) {
	const clone = remember(new (errors[value.name] ?? Error)(value.message));
	clone.stack = value.stack;
	if ('cause' in value) {
		Object.defineProperty(clone, 'cause', { value: copy(value.cause, seen), writable: true, configurable: true });
	}
	return clone;
}
