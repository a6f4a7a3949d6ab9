// The globals of programs. What is heavy is evaluated when it is first used.
'use strict';
const { lazy, all } = require('servers');
const timers = require('timers');
const { defineProperty, entries } = Object;
const { apply } = Reflect;

const lazily = {
	console: ['console'],
	url: ['URL', 'URLSearchParams'],
	encoding: ['TextEncoder', 'TextDecoder', 'atob', 'btoa'],
	clone: ['structuredClone', 'DOMException'],
	events: ['Event', 'EventTarget', 'CustomEvent', 'AbortController', 'AbortSignal'],
	crypto: ['crypto'],
	buffer: ['Buffer'],
	blob: ['Blob', 'File'],
	state: ['state'],
	process: ['process'],
	performance: ['performance'],
	intl: ['Intl'],
};

function define(object, name, value) {
	defineProperty(object, name, { value, writable: true, configurable: true });
}

exports.installGlobals = function installGlobals(own) {
	for (const [name, value] of entries(own)) {
		define(globalThis, name, value);
	}
	for (const name of ['setTimeout', 'setInterval', 'setImmediate', 'clearTimeout', 'clearInterval', 'clearImmediate', 'queueMicrotask', 'sleep']) {
		define(globalThis, name, timers[name]);
	}
	for (const [module, names] of entries(lazily)) {
		for (const name of names) {
			lazy(globalThis, name, () => require(module)[name], true);
		}
	}
	define(globalThis, 'global', globalThis);
	lazy(globalThis, 'servers', all, true);
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
