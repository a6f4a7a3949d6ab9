// node:events.
'use strict';
class EventEmitter {
	#listeners = new Map();

	static defaultMaxListeners = 10;

	on(name, listener) { return this.#add(name, { listener }); }
	addListener(name, listener) { return this.on(name, listener); }
	once(name, listener) { return this.#add(name, { listener, once: true }); }
	prependListener(name, listener) { return this.#add(name, { listener }, true); }
	prependOnceListener(name, listener) { return this.#add(name, { listener, once: true }, true); }

	#add(name, entry, first) {
		if (typeof entry.listener !== 'function') {
			throw new TypeError('The "listener" argument must be of type function');
		}
		const list = this.#listeners.get(name) ?? [];
		if (this.#listeners.has('newListener')) {
			this.emit('newListener', name, entry.listener);
		}
		this.#listeners.set(name, first ? [entry, ...list] : [...list, entry]);
		return this;
	}

	off(name, listener) {
		const list = this.#listeners.get(name) ?? [];
		const at = list.findLastIndex((entry) => entry.listener === listener);
		if (at >= 0) {
			this.#listeners.set(name, list.toSpliced(at, 1));
		}
		return this;
	}
	removeListener(name, listener) { return this.off(name, listener); }

	removeAllListeners(name) {
		if (name === undefined) {
			this.#listeners.clear();
		} else {
			this.#listeners.delete(name);
		}
		return this;
	}

	emit(name, ...args) {
		const list = this.#listeners.get(name) ?? [];
		if (list.length === 0 && name === 'error') {
			throw args[0] instanceof Error ? args[0] : new Error(`Unhandled error. (${args[0]})`);
		}
		for (const entry of list) {
			if (entry.once) {
				this.off(name, entry.listener);
			}
			entry.listener.apply(this, args);
		}
		return list.length > 0;
	}

	listeners(name) { return (this.#listeners.get(name) ?? []).map((entry) => entry.listener); }
	rawListeners(name) { return this.listeners(name); }
	listenerCount(name) { return (this.#listeners.get(name) ?? []).length; }
	eventNames() { return [...this.#listeners.keys()].filter((name) => this.listenerCount(name) > 0); }
	setMaxListeners() { return this; }
	getMaxListeners() { return EventEmitter.defaultMaxListeners; }
}

// once gives the arguments of an emitter's next event.
function once(emitter, name, { signal } = {}) {
	return new Promise((resolve, reject) => {
		signal?.throwIfAborted();
		const settle = (ok) => (...args) => {
			emitter.off(name, done);
			emitter.off('error', failed);
			ok ? resolve(args) : reject(args[0]);
		};
		const done = settle(true), failed = settle(false);
		emitter.on(name, done);
		if (name !== 'error') {
			emitter.on('error', failed);
		}
		signal?.addEventListener('abort', () => failed(signal.reason), { once: true });
	});
}

EventEmitter.EventEmitter = EventEmitter;
EventEmitter.once = once;
exports.module = Object.assign({ __proto__: null }, { EventEmitter, once, default: EventEmitter });
