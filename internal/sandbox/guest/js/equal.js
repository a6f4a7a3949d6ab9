// Deep equality, as node:assert and node:util understand it.
'use strict';
exports.isDeepEqual = function isDeepEqual(a, b, strict) {
	return equal(a, b, strict, []);
};

function equal(a, b, strict, pairs) {
	if (strict ? Object.is(a, b) : a == b || a !== a && b !== b) {
		return true;
	}
	if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) {
		return false;
	}
	if (strict && Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) {
		return false;
	}
	if (pairs.some(([x, y]) => x === a && y === b)) {
		return true;
	}
	pairs.push([a, b]);
	const same = sameContent(a, b, strict, pairs);
	pairs.pop();
	return same;
}

function sameContent(a, b, strict, pairs) {
	if (Array.isArray(a) !== Array.isArray(b)) {
		return false;
	}
	if (a instanceof Date && b instanceof Date) {
		return a.getTime() === b.getTime();
	}
	if (a instanceof RegExp && b instanceof RegExp) {
		return String(a) === String(b);
	}
	if (a instanceof Error && (a.name !== b.name || a.message !== b.message)) {
		return false;
	}
	if (a instanceof Map && b instanceof Map) {
		return a.size === b.size && [...a].every(([k, v]) => (b.has(k) ? equal(v, b.get(k), strict, pairs) : [...b].some(([k2, v2]) => equal(k, k2, strict, pairs) && equal(v, v2, strict, pairs))));
	}
	if (a instanceof Set && b instanceof Set) {
		return a.size === b.size && [...a].every((v) => b.has(v) || [...b].some((v2) => equal(v, v2, strict, pairs)));
	}
	const keys = Object.keys(a);
	return keys.length === Object.keys(b).length && keys.every((k) => Object.hasOwn(b, k) && equal(a[k], b[k], strict, pairs));
}
