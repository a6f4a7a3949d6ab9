// The end of the process. A platform may need its global object as it was for
// that, so what was taken from it comes back.
'use strict';
const { exit } = globalThis.process;
const { getPrototypeOf, setPrototypeOf, getOwnPropertySymbols, getOwnPropertyDescriptor, defineProperty } = Object;
const { Deno } = globalThis;
const prototype = getPrototypeOf(globalThis);
const symbols = getOwnPropertySymbols(globalThis).map((key) => ({ key, descriptor: getOwnPropertyDescriptor(globalThis, key) }));

exports.exit = function exitProcess() {
	setPrototypeOf(globalThis, prototype);
	if (Deno !== undefined) {
		globalThis.Deno = Deno;
	}
	for (let i = 0; i < symbols.length; i++) {
		defineProperty(globalThis, symbols[i].key, symbols[i].descriptor);
	}
	exit(0);
};
