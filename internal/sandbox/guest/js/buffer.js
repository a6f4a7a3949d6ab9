// The basics of Node's Buffer.
'use strict';
const { codec, isEncoding, view } = require('encoding');
const { readableBuffers } = require('readable');

class Buffer extends Uint8Array {
	static from(source, encoding, length) {
		if (typeof source === 'string') {
			return wrap(codec(encoding).encode(source));
		}
		if (source instanceof ArrayBuffer || source instanceof SharedArrayBuffer) {
			return new Buffer(source, encoding, length);
		}
		if (ArrayBuffer.isView(source) || Array.isArray(source)) {
			return wrap(Uint8Array.from(source));
		}
		if (source?.type === 'Buffer' && Array.isArray(source.data)) {
			return wrap(Uint8Array.from(source.data));
		}
		const value = source?.valueOf?.();
		if (value != null && value !== source) {
			return Buffer.from(value, encoding, length);
		}
		throw new TypeError('Buffer.from takes a string, a list of bytes, a Buffer or an ArrayBuffer');
	}

	static alloc(size, fill, encoding) {
		const buffer = new Buffer(size);
		return fill === undefined ? buffer : buffer.fill(fill, 0, size, encoding);
	}
	static allocUnsafe(size) { return new Buffer(size); }
	static isBuffer(value) { return value instanceof Buffer; }
	static isEncoding(name) { return isEncoding(name); }
	static byteLength(value, encoding) { return typeof value === 'string' ? codec(encoding).encode(value).length : value.byteLength; }

	static concat(list, total = list.reduce((sum, b) => sum + b.length, 0)) {
		const joined = new Buffer(total);
		let at = 0;
		for (const part of list) {
			joined.set(part.subarray(0, Math.max(total - at, 0)), at);
			at = Math.min(at + part.length, total);
		}
		return joined;
	}

	static compare(a, b) {
		const n = Math.min(a.length, b.length);
		for (let i = 0; i < n; i++) {
			if (a[i] !== b[i]) {
				return a[i] < b[i] ? -1 : 1;
			}
		}
		return Math.sign(a.length - b.length);
	}

	toString(encoding, start = 0, end = this.length) {
		return codec(encoding).decode(new Uint8Array(this.buffer, this.byteOffset, this.length).subarray(start, end));
	}
	toJSON() { return { type: 'Buffer', data: Array.from(this) }; }
	equals(other) { return Buffer.compare(this, other) === 0; }
	compare(other) { return Buffer.compare(this, other); }
	slice(start, end) { return this.subarray(start, end); }

	write(text, offset = 0, length = this.length - offset, encoding = 'utf8') {
		if (typeof offset === 'string') {
			[offset, length, encoding] = [0, this.length, offset];
		} else if (typeof length === 'string') {
			[length, encoding] = [this.length - offset, length];
		}
		const bytes = codec(encoding).encode(text).subarray(0, Math.min(length, this.length - offset));
		this.set(bytes, offset);
		return bytes.length;
	}

	copy(target, at = 0, start = 0, end = this.length) {
		const part = this.subarray(start, Math.min(end, start + target.length - at));
		target.set(part, at);
		return part.length;
	}

	fill(value, start = 0, end = this.length, encoding = 'utf8') {
		if (typeof value === 'number') {
			return super.fill(value, start, end);
		}
		const bytes = typeof value === 'string' ? codec(typeof start === 'string' ? start : encoding).encode(value) : view(value);
		for (let i = +start || 0; i < end; i++) {
			this[i] = bytes.length === 0 ? 0 : bytes[(i - (+start || 0)) % bytes.length];
		}
		return this;
	}

	indexOf(value, from = 0, encoding = 'utf8') {
		if (typeof value === 'number') {
			return super.indexOf(value, from);
		}
		const wanted = typeof value === 'string' ? codec(encoding).encode(value) : view(value);
		for (let i = from; i + wanted.length <= this.length; i++) {
			if (wanted.every((b, j) => this[i + j] === b)) {
				return i;
			}
		}
		return -1;
	}
	includes(value, from, encoding) { return this.indexOf(value, from, encoding) !== -1; }

	readUIntBE(offset, length) {
		let n = 0;
		for (let i = 0; i < length; i++) {
			n = n * 256 + this[offset + i];
		}
		return n;
	}
	readUIntLE(offset, length) {
		let n = 0;
		for (let i = length; i-- > 0;) {
			n = n * 256 + this[offset + i];
		}
		return n;
	}
}

function wrap(bytes) {
	return new Buffer(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

// The readers and writers of numbers, as DataView has them.
const kinds = [['UInt8', 'Uint8', 1], ['Int8', 'Int8', 1], ['UInt16', 'Uint16', 2], ['Int16', 'Int16', 2], ['UInt32', 'Uint32', 4], ['Int32', 'Int32', 4],
	['Float', 'Float32', 4], ['Double', 'Float64', 8], ['BigUInt64', 'BigUint64', 8], ['BigInt64', 'BigInt64', 8]];

function dataView(buffer, offset, size) {
	if (!(offset >= 0 && offset + size <= buffer.length)) {
		throw new RangeError(`the offset ${offset} is outside of the buffer, which has ${buffer.length} bytes`);
	}
	return new DataView(buffer.buffer, buffer.byteOffset, buffer.length);
}

function define(name, method) {
	Object.defineProperty(Buffer.prototype, name, { value: method, writable: true, configurable: true });
	Object.defineProperty(Buffer.prototype, name.replace('UInt', 'Uint'), { value: method, writable: true, configurable: true });
}

for (const [name, kind, size] of kinds) {
	for (const [suffix, little] of size === 1 ? [['', true]] : [['LE', true], ['BE', false]]) {
		define(`read${name}${suffix}`, function read(offset = 0) { return dataView(this, offset, size)[`get${kind}`](offset, little); });
		define(`write${name}${suffix}`, function write(value, offset = 0) {
			dataView(this, offset, size)[`set${kind}`](offset, value, little);
			return offset + size;
		});
	}
}

readableBuffers(Buffer);
exports.Buffer = Buffer;
exports.module = { Buffer, get Blob() { return globalThis.Blob; }, atob: (s) => globalThis.atob(s), btoa: (s) => globalThis.btoa(s) };
