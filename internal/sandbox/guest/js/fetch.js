// fetch, with Headers, Request and Response. A request is a call to the host, which makes it if
// the settings allow that; there is no socket here. A body is whole before it is read.
'use strict';
const { callOwn } = require('calls');
const { view, copy } = require('encoding');
const { Buffer } = require('buffer');
const { Blob } = require('blob');
const { URLSearchParams } = require('url');
const { AbortController } = require('events');

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

class Headers {
	#map = new Map();

	constructor(init) {
		if (init == null) {
			return;
		}
		if (typeof init !== 'object' && typeof init !== 'function') {
			throw new TypeError('headers are an object, a list of pairs, or Headers');
		}
		const pairs = typeof init[Symbol.iterator] === 'function' ? init : Object.entries(init);
		for (const [name, value] of pairs) {
			this.append(name, value);
		}
	}

	static #name(name) {
		if (!token.test(`${name}`)) {
			throw new TypeError(`${JSON.stringify(`${name}`)} is no name of a header`);
		}
		return `${name}`.toLowerCase();
	}
	static #value(value) {
		const text = `${value}`.replace(/^[\t\n\r ]+|[\t\n\r ]+$/g, '');
		if (/[\0\n\r]/.test(text)) {
			throw new TypeError('a header has no line breaks');
		}
		return text;
	}

	append(name, value) {
		const key = Headers.#name(name);
		this.#map.set(key, [...(this.#map.get(key) ?? []), Headers.#value(value)]);
	}
	set(name, value) { this.#map.set(Headers.#name(name), [Headers.#value(value)]); }
	get(name) { return this.#map.get(Headers.#name(name))?.join(', ') ?? null; }
	has(name) { return this.#map.has(Headers.#name(name)); }
	delete(name) { this.#map.delete(Headers.#name(name)); }
	getSetCookie() { return [...(this.#map.get('set-cookie') ?? [])]; }
	forEach(callback, self) {
		for (const [name, value] of this) {
			callback.call(self, value, name, this);
		}
	}
	*entries() {
		for (const name of [...this.#map.keys()].sort()) {
			if (name === 'set-cookie') {
				for (const value of this.#map.get(name)) {
					yield [name, value];
				}
			} else {
				yield [name, this.#map.get(name).join(', ')];
			}
		}
	}
	*keys() { for (const [name] of this.entries()) { yield name; } }
	*values() { for (const [, value] of this.entries()) { yield value; } }
	[Symbol.iterator]() { return this.entries(); }
	toJSON() { return Object.fromEntries(this); }
}

// ReadableStream is as much of one as there is of bytes that are there already.
class ReadableStream {
	#bytes;
	#body;
	#at = 0;
	locked = false;

	constructor(bytes, body) {
		this.#bytes = bytes;
		this.#body = body;
	}

	#next() {
		const part = 64 << 10;
		this.#body.used();
		if (this.#at >= this.#bytes.length) {
			return { value: undefined, done: true };
		}
		const value = new Uint8Array(copy(this.#bytes.subarray(this.#at, this.#at + part)));
		this.#at += part;
		return { value, done: false };
	}
	getReader() {
		if (this.locked) {
			throw new TypeError('the stream has a reader already');
		}
		this.locked = true;
		return {
			closed: Promise.resolve(),
			read: async () => this.#next(),
			cancel: async () => { this.#at = this.#bytes.length; },
			releaseLock: () => { this.locked = false; },
		};
	}
	async cancel() { this.#at = this.#bytes.length; }
	async *[Symbol.asyncIterator]() {
		for (let step = this.#next(); !step.done; step = this.#next()) {
			yield step.value;
		}
	}
	values() { return this[Symbol.asyncIterator](); }
}

const contentTypes = (body) => {
	if (typeof body === 'string') {
		return 'text/plain;charset=UTF-8';
	}
	if (body instanceof URLSearchParams) {
		return 'application/x-www-form-urlencoded;charset=UTF-8';
	}
	return body instanceof Blob ? body.type : '';
};

// bytesOf are the bytes of what may be a body.
async function bytesOf(body) {
	if (body instanceof Blob) {
		return Buffer.from(await body.arrayBuffer());
	}
	if (typeof body === 'object' && (ArrayBuffer.isView(body) || body instanceof ArrayBuffer)) {
		return Buffer.from(copy(view(body)));
	}
	if (typeof body[Symbol.asyncIterator] === 'function') {
		const parts = [];
		for await (const part of body) {
			parts.push(typeof part === 'string' ? Buffer.from(part) : Buffer.from(copy(view(part))));
		}
		return Buffer.concat(parts);
	}
	return Buffer.from(`${body}`);
}

class Body {
	#body = null;
	#used = false;
	#stream;

	constructor(body) {
		this.#body = body ?? null;
	}

	get bodyUsed() { return this.#used; }
	get body() {
		if (this.#body === null) {
			return null;
		}
		return this.#stream ??= new ReadableStream(Buffer.isBuffer(this.#body) ? this.#body : Buffer.from(`${this.#body}`), { used: () => { this.#used = true; } });
	}
	static take(from) { return from.#take(); }
	static peek(from) {
		if (from.#used) {
			throw new TypeError('the body has been read already');
		}
		return from.#body;
	}
	async #take() {
		if (this.#used || this.#stream?.locked) {
			throw new TypeError('the body has been read already');
		}
		if (this.#body === null) {
			return Buffer.alloc(0);
		}
		this.#used = true;
		return bytesOf(this.#body);
	}
	async text() { return (await this.#take()).toString().replace(/^\ufeff/, ''); }
	async json() { return JSON.parse(await this.text()); }
	async bytes() { return new Uint8Array(copy(await this.#take())); }
	async arrayBuffer() { return copy(await this.#take()); }
	async blob() { return new Blob([await this.#take()], { type: this.headers.get('content-type') ?? '' }); }
}
const { take, peek } = Body;
delete Body.take;
delete Body.peek;

class Request extends Body {
	constructor(input, init = {}) {
		const from = input instanceof Request ? input : undefined;
		const body = init.body ?? (from === undefined ? null : peek(from));
		super(body);
		this.url = from === undefined ? `${input?.href ?? input}` : from.url;
		this.method = `${init.method ?? from?.method ?? 'GET'}`;
		if (/^(?:get|head|post|put|delete|options|patch)$/i.test(this.method)) {
			this.method = this.method.toUpperCase();
		}
		if (body != null && (this.method === 'GET' || this.method === 'HEAD')) {
			throw new TypeError(`a request with ${this.method} has no body`);
		}
		this.headers = new Headers(init.headers ?? from?.headers);
		const type = init.body == null ? '' : contentTypes(init.body);
		if (type !== '' && !this.headers.has('content-type')) {
			this.headers.set('content-type', type);
		}
		this.redirect = `${init.redirect ?? from?.redirect ?? 'follow'}`;
		if (!['follow', 'error', 'manual'].includes(this.redirect)) {
			throw new TypeError(`redirect is follow, error or manual, and not ${this.redirect}`);
		}
		this.signal = init.signal ?? from?.signal ?? new AbortController().signal;
	}
	clone() { return new Request(this); }
}

class Response extends Body {
	constructor(body, { status = 200, statusText = '', headers } = {}) {
		super(body);
		this.status = Number(status);
		this.statusText = `${statusText}`;
		this.headers = new Headers(headers);
		this.url = '';
		this.redirected = false;
		this.type = 'default';
		const type = body == null ? '' : contentTypes(body);
		if (type !== '' && !this.headers.has('content-type')) {
			this.headers.set('content-type', type);
		}
	}
	get ok() { return this.status >= 200 && this.status < 300; }
	clone() { return Object.assign(new Response(peek(this), this), { url: this.url, redirected: this.redirected, type: this.type }); }
	static json(value, init = {}) {
		const headers = new Headers(init.headers);
		if (!headers.has('content-type')) {
			headers.set('content-type', 'application/json');
		}
		return new Response(JSON.stringify(value), { ...init, headers });
	}
	static error() { return Object.assign(new Response(null), { status: 0, type: 'error' }); }
}

function responseOf(answer) {
	const empty = [101, 204, 205, 304].includes(answer.status);
	const body = answer.base64 === undefined ? Buffer.from(answer.text ?? '') : Buffer.from(answer.base64, 'base64');
	const response = new Response(empty ? null : body, answer);
	return Object.assign(response, { url: answer.url, redirected: answer.redirected ?? false, type: 'basic' });
}

// textOf is what bytes are as text, or undefined.
function textOf(bytes) {
	const text = bytes.toString();
	return text.includes('\ufffd') ? undefined : text;
}

let made = 0;

async function fetch(input, init) {
	const request = new Request(input, init);
	const { signal } = request;
	signal.throwIfAborted();
	const id = `${++made}`;
	const args = { id, url: request.url, method: request.method, headers: [...request.headers], redirect: request.redirect };
	if (peek(request) !== null) {
		const bytes = await take(request);
		const text = textOf(bytes);
		text === undefined ? args.base64 = bytes.toString('base64') : args.text = text;
	}
	signal.throwIfAborted();
	const aborted = new Promise((_, reject) => {
		signal.addEventListener('abort', () => {
			callOwn('fetch_abort', { id }).catch(() => {});
			reject(signal.reason);
		}, { once: true });
	});
	const answered = callOwn('fetch', args);
	answered.catch(() => {});
	return responseOf(await Promise.race([answered, aborted]));
}

for (const type of [Headers, Request, Response, ReadableStream]) {
	Object.defineProperty(type.prototype, Symbol.toStringTag, { value: type.name, configurable: true });
}
Object.assign(exports, { fetch, Headers, Request, Response });
