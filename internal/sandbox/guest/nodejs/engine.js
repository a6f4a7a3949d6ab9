// In the place of the module that QuickJS needs: leaves of the global object what
// the language has and nothing of the platform's.
'use strict';
const { ownKeys, deleteProperty, set } = Reflect;
const { setPrototypeOf } = Object;

const language = new Set(`Object Function Array Number parseFloat parseInt Infinity NaN undefined Boolean String Symbol Date Promise
RegExp Error AggregateError EvalError RangeError ReferenceError SyntaxError TypeError URIError SuppressedError globalThis JSON Math Intl
ArrayBuffer SharedArrayBuffer Atomics DataView Uint8Array Int8Array Uint16Array Int16Array Uint32Array Int32Array Float16Array Float32Array Float64Array
Uint8ClampedArray BigUint64Array BigInt64Array Map BigInt Set Iterator WeakMap WeakSet WeakRef Proxy Reflect FinalizationRegistry
decodeURI decodeURIComponent encodeURI encodeURIComponent escape unescape eval isFinite isNaN`.split(/\s+/));

// empty takes from an object what it can, if the object itself cannot be taken
// away: Bun's own.
function empty(object) {
	for (const key of typeof object === 'object' && object !== null ? ownKeys(object) : []) {
		if (!deleteProperty(object, key) && !set(object, key, undefined) && object !== object[key]) {
			empty(object[key]);
		}
	}
}

exports.completeLanguage = function completeLanguage() {
	for (const key of ownKeys(globalThis)) {
		if (!language.has(key) && !deleteProperty(globalThis, key)) {
			empty(globalThis[key]);
		}
	}
	setPrototypeOf(globalThis, Object.prototype);
	delete Atomics.waitAsync; // its promises would be settled behind the loop's back
	if (!('__proto__' in Object.prototype)) {
		Object.defineProperty(Object.prototype, '__proto__', {
			get() { return Object.getPrototypeOf(this); },
			set(prototype) {
				if (typeof this === 'object' && this !== null && (typeof prototype === 'object' || typeof prototype === 'function')) {
					setPrototypeOf(this, prototype);
				}
			},
			configurable: true,
		});
	}
	require('stack').install();
};
