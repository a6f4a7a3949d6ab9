// The globals of programs, besides those of the language, which are engine.js's.
// What is heavy is evaluated when it is first used.
'use strict';
const { lazy, all } = require('servers');
const timers = require('timers');
const { defineProperty, entries } = Object;

const lazily = {
	console: ['console'],
	url: ['URL', 'URLSearchParams'],
	encoding: ['TextEncoder', 'TextDecoder', 'atob', 'btoa'],
	clone: ['structuredClone', 'DOMException'],
	fetch: ['fetch', 'Headers', 'Request', 'Response'],
	events: ['Event', 'EventTarget', 'CustomEvent', 'AbortController', 'AbortSignal'],
	crypto: ['crypto'],
	buffer: ['Buffer'],
	blob: ['Blob', 'File'],
	state: ['state'],
	pii: ['pii'],
	process: ['process'],
	performance: ['performance'],
	pages: ['pages'],
	approve: ['approve'],
};

function define(object, name, value) {
	defineProperty(object, name, { value, writable: true, configurable: true });
}
exports.define = define;

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
	lazy(globalThis, 'fs', () => require('fs').either, true);
	lazy(globalThis, 'path', () => require('path').path, true);
	define(globalThis, 'global', globalThis);
	lazy(globalThis, 'servers', all, true);
};
