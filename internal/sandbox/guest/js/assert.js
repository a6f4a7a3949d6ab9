// node:assert.
'use strict';
const { inspect } = require('inspect');
const { isDeepEqual } = require('equal');

class AssertionError extends Error {
	constructor({ message, actual, expected, operator }) {
		super(message);
		this.code = 'ERR_ASSERTION';
		this.actual = actual;
		this.expected = expected;
		this.operator = operator;
	}
	get name() { return 'AssertionError'; }
}

function fail(message, actual, expected, operator) {
	if (message instanceof Error) {
		throw message;
	}
	throw new AssertionError({ message: message ?? 'Failed', actual, expected, operator });
}

const shown = (value) => inspect(value, { depth: 2 });

function comparison(operator, holds, words) {
	return { [operator](actual, expected, message) {
		if (!holds(actual, expected)) {
			fail(message ?? `${words}: ${shown(actual)} and ${shown(expected)}`, actual, expected, operator);
		}
	} }[operator];
}

function matches(error, expected) {
	if (typeof expected === 'function') {
		return expected.prototype !== undefined && error instanceof expected || !(expected.prototype instanceof Error || expected === Error) && expected.call({}, error) === true;
	}
	if (expected instanceof RegExp) {
		return expected.test(String(error));
	}
	return Object.entries(expected).every(([key, value]) => (value instanceof RegExp ? value.test(error[key]) : isDeepEqual(error[key], value, true)));
}

function checkError(error, expected, message) {
	if (expected !== undefined && typeof expected !== 'string' && !matches(error, expected)) {
		fail(message ?? `the error is not as expected: ${shown(error)}`, error, expected, 'throws');
	}
}

function assert(value, message) {
	if (!value) {
		fail(message ?? `the value is not true: ${shown(value)}`, value, true, '==');
	}
}

Object.assign(assert, {
	AssertionError,
	ok: (value, message) => assert(value, message),
	fail: (message) => fail(message),
	equal: comparison('equal', (a, b) => a == b || a !== a && b !== b, 'not equal'),
	notEqual: comparison('notEqual', (a, b) => a != b, 'equal'),
	strictEqual: comparison('strictEqual', Object.is, 'not strictly equal'),
	notStrictEqual: comparison('notStrictEqual', (a, b) => !Object.is(a, b), 'strictly equal'),
	deepEqual: comparison('deepEqual', (a, b) => isDeepEqual(a, b, false), 'not deeply equal'),
	notDeepEqual: comparison('notDeepEqual', (a, b) => !isDeepEqual(a, b, false), 'deeply equal'),
	deepStrictEqual: comparison('deepStrictEqual', (a, b) => isDeepEqual(a, b, true), 'not deeply and strictly equal'),
	notDeepStrictEqual: comparison('notDeepStrictEqual', (a, b) => !isDeepEqual(a, b, true), 'deeply and strictly equal'),
	match: comparison('match', (text, pattern) => pattern.test(text), 'no match'),
	doesNotMatch: comparison('doesNotMatch', (text, pattern) => !pattern.test(text), 'a match'),
	ifError(value) {
		if (value != null) {
			throw value;
		}
	},
	throws(run, expected, message) {
		try {
			run();
		} catch (e) {
			return checkError(e, expected, message);
		}
		return fail(message ?? 'nothing was thrown', undefined, expected, 'throws');
	},
	doesNotThrow: (run) => { run(); },
	async rejects(promise, expected, message) {
		try {
			await (typeof promise === 'function' ? promise() : promise);
		} catch (e) {
			return checkError(e, expected, message);
		}
		return fail(message ?? 'the promise was not rejected', undefined, expected, 'rejects');
	},
	doesNotReject: async (promise) => { await (typeof promise === 'function' ? promise() : promise); },
});
assert.strict = assert;
exports.assert = assert;
