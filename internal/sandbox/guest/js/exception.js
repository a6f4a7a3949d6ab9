// DOMException, the error type of the web's interfaces.
'use strict';
const codes = {
	IndexSizeError: 1, InvalidCharacterError: 5, NotFoundError: 8, NotSupportedError: 9, InvalidStateError: 11, SyntaxError: 12,
	AbortError: 20, QuotaExceededError: 22, TimeoutError: 23, DataCloneError: 25,
};

exports.DOMException = class DOMException extends Error {
	#name;

	constructor(message = '', name = 'Error') {
		super(message, typeof name === 'object' ? { cause: name.cause } : undefined);
		this.#name = typeof name === 'object' ? name.name ?? 'Error' : `${name}`;
	}

	get name() { return this.#name; }
	get code() { return codes[this.#name] ?? 0; }
};
