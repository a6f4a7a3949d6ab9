// The parts of Node's process that mean something without a process.
'use strict';
const timers = require('timers');

function hrtime(since = [0, 0]) {
	const ns = BigInt(Math.round(native.now() * 1e6)) - (BigInt(since[0]) * 1_000_000_000n + BigInt(since[1]));
	return [Number(ns / 1_000_000_000n), Number(ns % 1_000_000_000n)];
}
hrtime.bigint = () => BigInt(Math.round(native.now() * 1e6));

const out = { isTTY: false, write(text) { native.print(`${text}`); return true; } };

exports.process = {
	env: {}, argv: [], execArgv: [], platform: 'linux', arch: 'wasm', version: '', versions: {}, pid: 1, title: 'retort',
	stdout: out, stderr: out, hrtime,
	nextTick: (callback, ...args) => timers.queueMicrotask(() => callback(...args)),
	uptime: () => native.now() / 1000,
	cwd: () => '/',
	on() { return exports.process; },
	once() { return exports.process; },
	off() { return exports.process; },
	emitWarning() {},
	exit() { throw new Error('process.exit does nothing here: return a value to end the program'); },
};
exports.module = exports.process;
