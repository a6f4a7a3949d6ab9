// node:util.
'use strict';
const { inspect, format } = require('inspect');
const { isDeepEqual } = require('equal');
const custom = Symbol.for('nodejs.util.promisify.custom');

function promisify(original) {
	return original[custom] ?? function promisified(...args) {
		return new Promise((resolve, reject) => {
			original.call(this, ...args, (error, value) => (error ? reject(error) : resolve(value)));
		});
	};
}
promisify.custom = custom;

const TypedArray = Object.getPrototypeOf(Uint8Array);
const types = {
	isDate: (v) => v instanceof Date, isRegExp: (v) => v instanceof RegExp, isPromise: (v) => v instanceof Promise, isMap: (v) => v instanceof Map,
	isSet: (v) => v instanceof Set, isNativeError: (v) => v instanceof Error, isTypedArray: (v) => v instanceof TypedArray,
	isUint8Array: (v) => v instanceof Uint8Array, isArrayBuffer: (v) => v instanceof ArrayBuffer,
	isAsyncFunction: (v) => typeof v === 'function' && v.constructor.name === 'AsyncFunction',
};

exports.module = {
	inspect, promisify, types,
	format: (...args) => format(args),
	callbackify: (original) => (...args) => {
		const callback = args.pop();
		original(...args).then((value) => callback(null, value), callback);
	},
	isDeepStrictEqual: (a, b) => isDeepEqual(a, b, true),
	inherits: (type, base) => { Object.setPrototypeOf(type.prototype, base.prototype); },
	deprecate: (f) => f,
	stripVTControlCharacters: (text) => text.replace(/\x1b\[[0-9;]*[A-Za-z]/g, ''),
	get TextEncoder() { return globalThis.TextEncoder; },
	get TextDecoder() { return globalThis.TextDecoder; },
};
