// Frames, see package wire. Reading and writing block: a program has nothing to do
// while it waits, and there is no quicker way to wait. What is used here was taken
// before programs could change it.
'use strict';
const { read, write } = require('descriptors');
const { now } = require('clock');
const U8 = Uint8Array, View = DataView;
const uncurry = (method) => Function.prototype.call.bind(method);
const encoder = new TextEncoder(), decoder = new TextDecoder('utf-8', { ignoreBOM: true });
const encode = uncurry(encoder.encode), encodeInto = uncurry(encoder.encodeInto), decode = uncurry(decoder.decode);
const getUint32 = uncurry(View.prototype.getUint32), setUint32 = uncurry(View.prototype.setUint32), setUint8 = uncurry(View.prototype.setUint8);
const copyWithin = uncurry(U8.prototype.copyWithin), setBytes = uncurry(U8.prototype.set);

exports.kinds = { __proto__: null, ready: 1, start: 2, output: 3, call: 4, result: 5, done: 6, wake: 9 };
exports.bytesOf = (text) => encode(encoder, text);

const headerSize = 13;
const bufferSize = 64 << 10;
const flushEvery = 5; // ms that frames may wait while the program computes

// What is to be written, of which the first bytes are queued.
const out = new U8(bufferSize), outView = new View(out.buffer);
let queued = 0, flushed = 0;

function flush() {
	const length = queued;
	queued = 0;
	write(out, length);
	flushed = now();
}
exports.flush = flush;

// hurry has the next frame written at once.
exports.hurry = () => { flushed = -Infinity; };

function putHeader(view, at, kind, id, headLength, length) {
	setUint32(view, at, headerSize - 4 + length);
	setUint8(view, at + 4, kind);
	setUint32(view, at + 5, id);
	setUint32(view, at + 9, headLength);
}

// post queues a frame of two texts; the body may be bytes.
exports.post = function post(kind, id, head, body) {
	const textual = typeof body === 'string';
	const most = headerSize + 3 * (head.length + body.length);
	if (most > bufferSize - queued) {
		flush();
	}
	if (most > bufferSize || !textual) {
		postLarge(kind, id, encode(encoder, head), textual ? encode(encoder, body) : body);
		return;
	}
	const at = queued + headerSize;
	const headLength = head === '' ? 0 : encodeInto(encoder, head, new U8(out.buffer, at, bufferSize - at)).written;
	const bodyLength = body === '' ? 0 : encodeInto(encoder, body, new U8(out.buffer, at + headLength, bufferSize - at - headLength)).written;
	putHeader(outView, queued, kind, id, headLength, headLength + bodyLength);
	queued = at + headLength + bodyLength;
	if (now() - flushed >= flushEvery) {
		flush();
	}
};

function postLarge(kind, id, head, body) {
	flush();
	const header = new U8(headerSize);
	putHeader(new View(header.buffer), 0, kind, id, head.length, head.length + body.length);
	write(header, headerSize);
	write(head, head.length);
	write(body, body.length);
}

// What was read and is not used, from start to end.
const input = new U8(bufferSize), inputView = new View(input.buffer);
let start = 0, end = 0;

// fill reads until size bytes are there, which the buffer can hold; false means
// that the input has ended.
function fill(size) {
	if (start + size > bufferSize) {
		copyWithin(input, 0, start, end);
		end -= start;
		start = 0;
	}
	while (end - start < size) {
		const n = read(input, end, bufferSize - end);
		if (n === 0) {
			return false;
		}
		end += n;
	}
	return true;
}

function text(bytes, offset, length) {
	return length === 0 ? '' : decode(decoder, new U8(bytes.buffer, offset, length));
}

// read gives the next frame, or null when the input has ended.
exports.read = function read() {
	if (!fill(headerSize)) {
		return null;
	}
	const length = getUint32(inputView, start) - (headerSize - 4);
	const kind = input[start + 4], id = getUint32(inputView, start + 5), headLength = getUint32(inputView, start + 9);
	start += headerSize;
	if (length <= bufferSize) {
		if (!fill(length)) {
			return null;
		}
		const at = start;
		start += length;
		return { __proto__: null, kind, id, head: text(input, at, headLength), body: text(input, at + headLength, length - headLength) };
	}
	const bytes = readLarge(length);
	return bytes && { __proto__: null, kind, id, head: text(bytes, 0, headLength), body: text(bytes, headLength, length - headLength) };
};

function readLarge(length) {
	const bytes = new U8(length);
	let have = end - start;
	setBytes(bytes, new U8(input.buffer, start, have));
	start = end = 0;
	while (have < length) {
		const n = read(bytes, have, length - have);
		if (n === 0) {
			return null;
		}
		have += n;
	}
	return bytes;
}

// arrived tells whether a whole frame has been read already.
exports.arrived = function arrived() {
	return end - start >= headerSize && end - start >= 4 + getUint32(inputView, start);
};
