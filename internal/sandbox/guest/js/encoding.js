// Text and bytes.
'use strict';
const { DOMException } = require('exception');

// view gives the bytes of a buffer or of a view of one, without copying them.
function view(source) {
	if (source instanceof ArrayBuffer || source instanceof SharedArrayBuffer) {
		return new Uint8Array(source);
	}
	if (ArrayBuffer.isView(source)) {
		return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
	}
	throw new TypeError('an ArrayBuffer or a view of one was expected');
}
exports.view = view;

function copy(bytes) {
	return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
}
exports.copy = copy;

// latin1 gives the string of which each unit is one byte.
function latin1(bytes) {
	let text = '';
	for (let i = 0; i < bytes.length; i += 8192) {
		text += String.fromCharCode.apply(null, bytes.subarray(i, i + 8192));
	}
	return text;
}

function bytesOf(text, mask = 0xff) {
	const bytes = new Uint8Array(text.length);
	for (let i = 0; i < text.length; i++) {
		bytes[i] = text.charCodeAt(i) & mask;
	}
	return bytes;
}

function utf16(text) {
	const bytes = new Uint8Array(text.length * 2);
	for (let i = 0; i < text.length; i++) {
		const unit = text.charCodeAt(i);
		bytes[2 * i] = unit & 0xff;
		bytes[2 * i + 1] = unit >> 8;
	}
	return bytes;
}

const utf8 = (text) => new Uint8Array(native.encode(text));
const fromUTF8 = (bytes) => native.decode(copy(bytes), 'utf-8', false);
const fromUTF16 = (bytes) => native.decode(copy(bytes), 'utf-16le', false);
const fromBase64 = (text) => {
	const clean = text.replace(/[^A-Za-z0-9+/_-]/g, '').replace(/-/g, '+').replace(/_/g, '/');
	return Uint8Array.fromBase64(clean.length % 4 === 1 ? clean.slice(0, -1) : clean);
};

// codecs are the encodings of Node's Buffer.
const codecs = {
	__proto__: null,
	utf8: { encode: utf8, decode: fromUTF8 },
	utf16le: { encode: utf16, decode: fromUTF16 },
	latin1: { encode: (text) => bytesOf(text), decode: latin1 },
	ascii: { encode: (text) => bytesOf(text), decode: (bytes) => latin1(bytes.map((b) => b & 0x7f)) },
	hex: {
		encode: (text) => Uint8Array.fromHex(/^(?:[0-9a-fA-F]{2})*/.exec(text)[0]),
		decode: (bytes) => bytes.toHex(),
	},
	base64: { encode: fromBase64, decode: (bytes) => bytes.toBase64() },
	base64url: { encode: fromBase64, decode: (bytes) => bytes.toBase64({ alphabet: 'base64url', omitPadding: true }) },
};
const aliases = { __proto__: null, 'utf-8': 'utf8', ucs2: 'utf16le', 'ucs-2': 'utf16le', 'utf-16le': 'utf16le', binary: 'latin1' };

exports.isEncoding = (name) => {
	const lower = `${name}`.toLowerCase();
	return (aliases[lower] ?? lower) in codecs;
};
exports.codec = function codec(name = 'utf8') {
	const lower = `${name}`.toLowerCase();
	const found = codecs[aliases[lower] ?? lower];
	if (found === undefined) {
		throw new TypeError(`Unknown encoding: ${name}`);
	}
	return found;
};

exports.TextEncoder = class TextEncoder {
	get encoding() { return 'utf-8'; }
	encode(text = '') { return utf8(`${text}`); }
	encodeInto(text, destination) {
		let read = 0, written = 0;
		for (const character of text) {
			const bytes = utf8(character);
			if (written + bytes.length > destination.length) {
				break;
			}
			destination.set(bytes, written);
			read += character.length;
			written += bytes.length;
		}
		return { read, written };
	}
};

const labels = {
	__proto__: null, 'utf-8': 'utf-8', utf8: 'utf-8', 'unicode-1-1-utf-8': 'utf-8', 'utf-16le': 'utf-16le', 'utf-16': 'utf-16le',
	latin1: 'windows-1252', 'iso-8859-1': 'windows-1252', 'windows-1252': 'windows-1252', ascii: 'windows-1252', 'us-ascii': 'windows-1252',
};
// What windows-1252 has in the place of the control characters from 0x80 on.
const windows = '€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ';

exports.TextDecoder = class TextDecoder {
	#encoding;
	#fatal;
	#ignoreBOM;
	#rest = new Uint8Array(0); // of a character that the next part of a stream continues
	#begun = false;

	constructor(label = 'utf-8', { fatal = false, ignoreBOM = false } = {}) {
		this.#encoding = labels[`${label}`.trim().toLowerCase()];
		if (this.#encoding === undefined) {
			throw new RangeError(`The "${label}" encoding is not supported`);
		}
		this.#fatal = Boolean(fatal);
		this.#ignoreBOM = Boolean(ignoreBOM);
	}

	get encoding() { return this.#encoding; }
	get fatal() { return this.#fatal; }
	get ignoreBOM() { return this.#ignoreBOM; }

	decode(input = new Uint8Array(0), { stream = false } = {}) {
		let bytes = view(input);
		if (this.#encoding === 'windows-1252') {
			return latin1(bytes).replace(/[\x80-\x9f]/g, (c) => windows[c.charCodeAt(0) - 0x80]);
		}
		if (this.#rest.length > 0) {
			const joined = new Uint8Array(this.#rest.length + bytes.length);
			joined.set(this.#rest);
			joined.set(bytes, this.#rest.length);
			bytes = joined;
		}
		const end = stream ? bytes.length - unfinished(bytes, this.#encoding) : bytes.length;
		this.#rest = bytes.slice(end);
		let text = native.decode(copy(bytes.subarray(0, end)), this.#encoding, this.#fatal);
		if (text === null || this.#fatal && this.#encoding === 'utf-16le' && end % 2 === 1) {
			throw new TypeError(`The encoded data was not valid for encoding ${this.#encoding}`);
		}
		if (!this.#begun && !this.#ignoreBOM && text.charCodeAt(0) === 0xfeff) {
			text = text.slice(1);
		}
		this.#begun = stream && (this.#begun || end > 0);
		return text;
	}
};

// unfinished is the number of bytes at the end that begin a character which
// they do not finish.
function unfinished(bytes, encoding) {
	if (encoding === 'utf-16le') {
		const odd = bytes.length % 2;
		const high = bytes[bytes.length - odd - 1];
		return odd + (high >= 0xd8 && high < 0xdc ? 2 : 0);
	}
	for (let back = 1; back <= 3 && back <= bytes.length; back++) {
		const b = bytes[bytes.length - back];
		if (b >= 0xc0) {
			const length = b >= 0xf0 ? 4 : b >= 0xe0 ? 3 : 2;
			return length > back ? back : 0;
		}
		if (b < 0x80) {
			return 0;
		}
	}
	return 0;
}

exports.btoa = function btoa(data) {
	const text = `${data}`;
	if (/[^\x00-\xff]/.test(text)) {
		throw new DOMException('btoa takes characters up to U+00FF only; encode the text to bytes first', 'InvalidCharacterError');
	}
	return bytesOf(text).toBase64();
};

exports.atob = function atob(data) {
	const text = `${data}`.replace(/[\t\n\f\r ]/g, '');
	if (/[^A-Za-z0-9+/=]|=[^=]|===/.test(text) || text.replace(/=/g, '').length % 4 === 1) {
		throw new DOMException('The string to be decoded is not correctly encoded', 'InvalidCharacterError');
	}
	return latin1(Uint8Array.fromBase64(text.replace(/=/g, '')));
};
