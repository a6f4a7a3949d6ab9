// Promises that are rejected and that nobody handles, so far; and exceptions of
// which the platform alone knows. This comes before the global object is cleared,
// which platforms use when they are asked for these.
'use strict';
const { process } = globalThis;
const { apply } = Reflect;
const { set, delete: remove, forEach } = Map.prototype;
const unhandled = new Map();

const rejected = (reason, promise) => { apply(set, unhandled, [promise, reason]); };
const handled = (promise) => { apply(remove, unhandled, [promise]); };
const thrown = (error) => { exports.onException(error); };

const core = globalThis.Deno?.[globalThis.Deno.internal]?.core;
if (core?.setUnhandledPromiseRejectionHandler) { // what process.on does there needs the global object to be an EventTarget
	core.setUnhandledPromiseRejectionHandler((promise, reason) => {
		rejected(reason, promise);
		return true;
	});
	core.setHandledPromiseRejectionHandler(handled);
	core.setReportExceptionCallback(thrown);
} else {
	process.on('unhandledRejection', rejected);
	process.on('rejectionHandled', handled);
	process.on('uncaughtException', thrown);
}

exports.onException = () => { process.exit(1); };

// first gives the first of them as {reason}, or null.
exports.first = function first() {
	let found = null;
	apply(forEach, unhandled, [(reason) => { found ??= { __proto__: null, reason }; }]);
	return found;
};
