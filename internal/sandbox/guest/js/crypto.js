// Randomness from the system, and digests.
'use strict';
const { codec, view, copy } = require('encoding');
const { Buffer } = require('buffer');
const { DOMException } = require('exception');

function randomBytes(size) {
	const bytes = Buffer.alloc(size);
	for (let i = 0; i < size; i += 65536) {
		bytes.set(new Uint8Array(native.random(Math.min(65536, size - i))), i);
	}
	return bytes;
}

function getRandomValues(array) {
	const bytes = view(array);
	if (bytes.length > 65536) {
		throw new DOMException(`${bytes.length} bytes were asked for, 65536 at once are allowed`, 'QuotaExceededError');
	}
	bytes.set(randomBytes(bytes.length));
	return array;
}

function randomUUID() {
	const bytes = randomBytes(16);
	bytes[6] = bytes[6] & 0x0f | 0x40;
	bytes[8] = bytes[8] & 0x3f | 0x80;
	return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

// randomInt gives an integer from min up to but not including max, each as
// likely as any other.
function randomInt(min, max) {
	if (max === undefined) {
		[min, max] = [0, min];
	}
	const range = max - min;
	if (!Number.isSafeInteger(min) || !Number.isSafeInteger(max) || range < 1 || range > 2 ** 48) {
		throw new RangeError(`there is no random integer from ${min} up to ${max}`);
	}
	const limit = 2 ** 48 - 2 ** 48 % range;
	for (;;) {
		const n = randomBytes(6).readUIntBE(0, 6);
		if (n < limit) {
			return min + n % range;
		}
	}
}

function bytesFor(data, encoding) {
	return typeof data === 'string' ? codec(encoding).encode(data) : view(data);
}

function digest(algorithm, bytes) {
	const name = `${algorithm}`.toLowerCase().replace('-', '');
	const hex = native.digest(name, copy(bytes));
	if (hex === '') {
		throw new Error(`the digest ${algorithm} is not supported; there are md5, sha1, sha256, sha384, sha512`);
	}
	return Buffer.from(hex, 'hex');
}

class Hash {
	#algorithm;
	#parts = [];
	#finish;

	constructor(algorithm, finish = (bytes) => digest(algorithm, bytes)) {
		this.#algorithm = algorithm;
		this.#finish = finish;
	}

	update(data, encoding) {
		this.#parts.push(Buffer.from(bytesFor(data, encoding)));
		return this;
	}

	digest(encoding) {
		const result = this.#finish(Buffer.concat(this.#parts));
		return encoding === undefined || encoding === 'buffer' ? result : result.toString(encoding);
	}

	copy() {
		const other = new Hash(this.#algorithm, this.#finish);
		other.#parts = [...this.#parts];
		return other;
	}
}

function createHash(algorithm) {
	digest(algorithm, new Uint8Array(0)); // fails early
	return new Hash(algorithm);
}

function createHmac(algorithm, key) {
	const block = /384|512/.test(algorithm) ? 128 : 64;
	let secret = Buffer.from(bytesFor(key));
	if (secret.length > block) {
		secret = digest(algorithm, secret);
	}
	const pad = (byte) => Buffer.alloc(block, byte).map((b, i) => b ^ (secret[i] ?? 0));
	const [inner, outer] = [pad(0x36), pad(0x5c)];
	return new Hash(algorithm, (bytes) => digest(algorithm, Buffer.concat([outer, digest(algorithm, Buffer.concat([inner, bytes]))])));
}

function timingSafeEqual(a, b) {
	const [x, y] = [view(a), view(b)];
	if (x.length !== y.length) {
		throw new RangeError('Input buffers must have the same byte length');
	}
	let difference = 0;
	for (let i = 0; i < x.length; i++) {
		difference |= x[i] ^ y[i];
	}
	return difference === 0;
}

const subtle = {
	async digest(algorithm, data) {
		return copy(digest(algorithm?.name ?? algorithm, view(data)));
	},
};

exports.crypto = { randomUUID, getRandomValues, subtle };
exports.module = { randomUUID, randomBytes, randomInt, getRandomValues, createHash, createHmac, timingSafeEqual, subtle, webcrypto: exports.crypto };
