// Event, EventTarget, AbortController and AbortSignal.
'use strict';
const { DOMException } = require('exception');
const timers = require('timers');

class Event {
	#type;
	#cancelable;
	#prevented = false;
	#stopped = false;
	target = null;
	currentTarget = null;
	timeStamp = native.now();

	constructor(type, { bubbles = false, cancelable = false } = {}) {
		this.#type = `${type}`;
		this.bubbles = Boolean(bubbles);
		this.#cancelable = Boolean(cancelable);
	}

	get type() { return this.#type; }
	get cancelable() { return this.#cancelable; }
	get defaultPrevented() { return this.#prevented; }
	preventDefault() { this.#prevented ||= this.#cancelable; }
	stopPropagation() {}
	stopImmediatePropagation() { this.#stopped = true; }
	static stopped(event) { return event.#stopped; }
}
const isStopped = Event.stopped;
delete Event.stopped;

class CustomEvent extends Event {
	constructor(type, options = {}) {
		super(type, options);
		this.detail = options.detail ?? null;
	}
}

class EventTarget {
	#listeners = new Map();

	addEventListener(type, listener, options) {
		if (listener == null) {
			return;
		}
		const { once = false, signal } = typeof options === 'object' && options !== null ? options : {};
		if (signal?.aborted) {
			return;
		}
		const list = this.#listeners.get(type) ?? [];
		if (!list.some((l) => l.listener === listener)) {
			this.#listeners.set(type, [...list, { listener, once }]);
			signal?.addEventListener('abort', () => this.removeEventListener(type, listener), { once: true });
		}
	}

	removeEventListener(type, listener) {
		const list = this.#listeners.get(type) ?? [];
		this.#listeners.set(type, list.filter((l) => l.listener !== listener));
	}

	dispatchEvent(event) {
		event.target = event.currentTarget = this;
		const handler = this[`on${event.type}`];
		if (typeof handler === 'function') {
			handler.call(this, event);
		}
		for (const { listener, once } of this.#listeners.get(event.type) ?? []) {
			if (isStopped(event)) {
				break;
			}
			if (once) {
				this.removeEventListener(event.type, listener);
			}
			if (typeof listener === 'function') {
				listener.call(this, event);
			} else {
				listener.handleEvent(event);
			}
		}
		event.currentTarget = null;
		return !event.defaultPrevented;
	}
}

class AbortSignal extends EventTarget {
	#aborted = false;
	#reason = undefined;
	onabort = null;

	get aborted() { return this.#aborted; }
	get reason() { return this.#reason; }
	throwIfAborted() {
		if (this.#aborted) {
			throw this.#reason;
		}
	}

	static signal(signal, reason = new DOMException('This operation was aborted', 'AbortError')) {
		if (!signal.#aborted) {
			signal.#aborted = true;
			signal.#reason = reason;
			signal.dispatchEvent(new Event('abort'));
		}
	}

	static abort(reason) {
		const signal = new AbortSignal();
		abort(signal, reason);
		return signal;
	}

	static timeout(ms) {
		const signal = new AbortSignal();
		timers.setTimeout(() => abort(signal, new DOMException('The operation was aborted due to timeout', 'TimeoutError')), ms);
		return signal;
	}

	static any(signals) {
		const any = new AbortSignal();
		for (const signal of signals) {
			if (signal.aborted) {
				abort(any, signal.reason);
				break;
			}
			signal.addEventListener('abort', () => abort(any, signal.reason), { once: true });
		}
		return any;
	}
}
const abort = AbortSignal.signal;
delete AbortSignal.signal;

class AbortController {
	#signal = new AbortSignal();
	get signal() { return this.#signal; }
	abort(reason) { abort(this.#signal, reason); }
}

for (const type of [Event, CustomEvent, EventTarget, AbortSignal, AbortController]) {
	Object.defineProperty(type.prototype, Symbol.toStringTag, { value: type.name, configurable: true });
	exports[type.name] = type;
}
