// In the place of the module that QuickJS needs.
'use strict';
const { Buffer, TextEncoder, TextDecoder, atob, btoa } = require('platform');

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
exports.copy = (bytes) => bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);

exports.isEncoding = Buffer.isEncoding;
exports.codec = function codec(name = 'utf8') {
	if (!Buffer.isEncoding(name)) {
		throw new TypeError(`Unknown encoding: ${name}`);
	}
	return {
		encode: (text) => view(Buffer.from(text, name)),
		decode: (bytes) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString(name),
	};
};
Object.assign(exports, { TextEncoder, TextDecoder, atob, btoa });
