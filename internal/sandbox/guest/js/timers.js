// setTimeout and its kin. Go keeps the times and calls fire.
'use strict';
const { apply } = Reflect;
const longest = 2 ** 31 - 1;
const pending = { __proto__: null };
let made = 0;

class Timeout {
	#id = 0;
	#delay;
	#repeat;
	#callback;
	#args;

	constructor(callback, delay, args, repeat) {
		if (typeof callback !== 'function') {
			throw new TypeError('the callback of a timer must be a function');
		}
		delay = +delay;
		this.#delay = delay >= 1 && delay <= longest ? delay : 1;
		this.#callback = callback;
		this.#args = args;
		this.#repeat = repeat;
	}

	static start(timeout, delay = timeout.#delay) {
		timeout.#id ||= ++made;
		pending[timeout.#id] = timeout;
		native.timer(timeout.#id, delay);
		return timeout;
	}

	static stop(timeout) {
		if (typeof timeout === 'object' && timeout !== null ? !(#id in timeout) : !((timeout = pending[timeout]) !== undefined)) {
			return;
		}
		timeout.#repeat = false;
		delete pending[timeout.#id];
		native.clearTimer(timeout.#id);
	}

	static fire(id) {
		const timeout = pending[id];
		if (timeout === undefined) {
			return;
		}
		if (timeout.#repeat) {
			native.timer(id, timeout.#delay);
		} else {
			delete pending[id];
		}
		apply(timeout.#callback, undefined, timeout.#args);
	}

	ref() { return this; }
	unref() { return this; }
	hasRef() { return true; }
	refresh() { return start(this); }
	close() { stop(this); return this; }
	[Symbol.toPrimitive]() { return this.#id; }
	[Symbol.dispose]() { stop(this); }
}
const { start, stop, fire } = Timeout;
delete Timeout.start;
delete Timeout.stop;
delete Timeout.fire;

exports.fire = fire;
exports.setTimeout = function setTimeout(callback, delay, ...args) {
	return start(new Timeout(callback, delay, args, false));
};
exports.setInterval = function setInterval(callback, delay, ...args) {
	return start(new Timeout(callback, delay, args, true));
};
exports.setImmediate = function setImmediate(callback, ...args) {
	return start(new Timeout(callback, 0, args, false), 0);
};
exports.clearTimeout = exports.clearInterval = exports.clearImmediate = function clearTimeout(timeout) { stop(timeout); };

const P = Promise;
exports.sleep = function sleep(ms) {
	return new P((resolve) => { start(new Timeout(() => resolve(), ms, [], false)); });
};

const resolved = Promise.resolve();
const then = Promise.prototype.then;
exports.queueMicrotask = function queueMicrotask(callback) {
	if (typeof callback !== 'function') {
		throw new TypeError('the callback of queueMicrotask must be a function');
	}
	apply(then, resolved, [() => { callback(); }]);
};
