// What the engine lacks of the language, or has otherwise than its standard.
// Other runtimes have a module of their own in the place of this one.
'use strict';
const { define } = require('globals');
const { lazy } = require('servers');
const { apply } = Reflect;

exports.completeLanguage = function completeLanguage() {
	lazy(globalThis, 'Intl', () => require('intl').Intl, true);
	define(Array, 'fromAsync', fromAsync);
	define(String.prototype, 'localeCompare', function localeCompare(that, locales, options) {
		return require('collator').compare(`${this}`, `${that}`, options);
	});
	define(String.prototype, 'repeat', repeat);
	for (const name of ['toLocaleString', 'toLocaleDateString', 'toLocaleTimeString']) {
		replacedByIntl(Date.prototype, name);
	}
	replacedByIntl(Number.prototype, 'toLocaleString');
	replacedByIntl(BigInt.prototype, 'toLocaleString');
};

// replacedByIntl defines a method that module intl replaces, and that has it do
// so when it is first called.
function replacedByIntl(prototype, name) {
	define(prototype, name, { [name](...args) {
		require('intl');
		return apply(prototype[name], this, args);
	} }[name]);
}

// repeat tells a text that no memory could hold from a count that is none; the
// engine has one error for both.
const nativeRepeat = String.prototype.repeat;
function repeat(count) {
	if (count > 2 ** 31 - 1 && count < Infinity) {
		throw new RangeError('invalid string length');
	}
	return apply(nativeRepeat, this, [count]);
}

// fromAsync is Array.fromAsync of ECMAScript 2026.
async function fromAsync(items, map, self) {
	const list = [];
	const iterable = items[Symbol.asyncIterator] != null || items[Symbol.iterator] != null;
	for await (const item of iterable ? items : Array.from(items)) {
		list.push(map === undefined ? item : await map.call(self, item, list.length));
	}
	return list;
}
