// console. Everything it prints is the program's output.
'use strict';
const { format, inspect, table } = require('inspect');

let indent = '';
const counts = new Map();
const watches = new Map();

function print(text) {
	if (indent !== '') {
		text = indent + text.replaceAll('\n', `\n${indent}`);
	}
	native.print(`${text}\n`);
}

function log(...args) { print(format(args)); }

function elapsed(label) {
	return `${label}: ${(native.now() - watches.get(label)).toFixed(3)}ms`;
}

exports.console = {
	log, info: log, warn: log, error: log, debug: log,
	dir(value, options) { print(inspect(value, options)); },
	dirxml: log,
	trace(...args) { print(`Trace: ${format(args)}\n${new Error().stack.split('\n').filter((l) => !l.includes('<eval>')).join('\n')}`); },
	assert(ok, ...args) {
		if (!ok) {
			print(args.length === 0 ? 'Assertion failed' : `Assertion failed: ${format(args)}`);
		}
	},
	table(data, columns) { print(typeof data === 'object' && data !== null ? table(data, columns) : format([data])); },
	count(label = 'default') {
		counts.set(label, (counts.get(label) ?? 0) + 1);
		print(`${label}: ${counts.get(label)}`);
	},
	countReset(label = 'default') { counts.delete(label); },
	group(...args) {
		if (args.length > 0) {
			log(...args);
		}
		indent = indent.length < 100 ? `${indent}  ` : indent;
	},
	groupCollapsed(...args) { exports.console.group(...args); },
	groupEnd() { indent = indent.slice(2); },
	time(label = 'default') { watches.set(label, native.now()); },
	timeLog(label = 'default', ...args) {
		if (watches.has(label)) {
			print([elapsed(label), ...args.map((a) => inspect(a))].join(' '));
		}
	},
	timeEnd(label = 'default') {
		exports.console.timeLog(label);
		watches.delete(label);
	},
};
