// node:timers and node:timers/promises.
'use strict';
const timers = require('timers');

function aborted(signal) {
	const error = new Error('The operation was aborted', { cause: signal.reason });
	return Object.assign(error, { name: 'AbortError', code: 'ABORT_ERR' });
}

function abortable(signal, start) {
	return new Promise((resolve, reject) => {
		if (signal?.aborted) {
			reject(aborted(signal));
			return;
		}
		const timer = start(resolve);
		signal?.addEventListener('abort', () => {
			timers.clearTimeout(timer);
			reject(aborted(signal));
		}, { once: true });
	});
}

function setTimeout(ms, value, { signal } = {}) {
	return abortable(signal, (resolve) => timers.setTimeout(resolve, ms, value));
}

async function* setInterval(ms, value, { signal } = {}) {
	for (;;) {
		yield await setTimeout(ms, value, { signal });
	}
}

exports.promises = {
	setTimeout,
	setInterval,
	setImmediate: (value, { signal } = {}) => abortable(signal, (resolve) => timers.setImmediate(resolve, value)),
	scheduler: { wait: (ms, options) => setTimeout(ms, undefined, options), yield: () => setTimeout(0) },
};
const { fire, sleep, queueMicrotask, ...callbacks } = timers;
exports.callbacks = { ...callbacks, promises: exports.promises };
