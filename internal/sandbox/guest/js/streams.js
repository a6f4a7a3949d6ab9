// What reads a file in parts: streams, file handles and node:readline. Only parts of a
// file are in memory.
'use strict';
const { EventEmitter } = require('emitter').module;
const { TextDecoder } = require('encoding');

class ReadStream extends EventEmitter {
	#parts;
	#decoder;
	#flowing = false;

	// parts is an async iterator of Buffers.
	constructor(path, parts, encoding) {
		super();
		this.path = path;
		this.bytesRead = 0;
		this.destroyed = false;
		this.#parts = parts;
		if (encoding) {
			this.setEncoding(encoding);
		}
	}

	setEncoding(encoding) {
		this.#decoder = new TextDecoder(encoding);
		return this;
	}

	on(name, listener) {
		super.on(name, listener);
		if (name === 'data' && !this.#flowing) {
			this.#flowing = true;
			Promise.resolve().then(() => this.#flow());
		}
		return this;
	}

	async #flow() {
		try {
			for await (const chunk of this) {
				this.emit('data', chunk);
			}
		} catch (e) {
			this.emit('error', e);
			return;
		}
		this.emit('end');
		this.emit('close');
	}

	async *[Symbol.asyncIterator]() {
		for await (const part of this.#parts) {
			if (this.destroyed) {
				return;
			}
			this.bytesRead += part.length;
			const chunk = this.#decoder ? this.#decoder.decode(part, { stream: true }) : part;
			if (chunk.length > 0) {
				yield chunk;
			}
		}
		const rest = this.#decoder?.decode();
		if (rest) {
			yield rest;
		}
	}

	destroy() {
		this.destroyed = true;
		return this;
	}
	close() { this.destroy(); }
}

// Lines goes through the lines of chunks. It answers without a promise where it can: a
// file has millions of lines.
class Lines {
	#chunks;
	#decoder = new TextDecoder();
	#lines = [];
	#at = 0;
	#rest = '';
	#ended = false;

	constructor(input) {
		this.#chunks = input[Symbol.asyncIterator]?.() ?? input[Symbol.iterator]();
	}

	next() {
		if (this.#at < this.#lines.length) {
			return { value: this.#lines[this.#at++], done: false };
		}
		return this.#ended ? { value: undefined, done: true } : this.#more();
	}

	async #more() {
		while (this.#at >= this.#lines.length && !this.#ended) {
			const { value: chunk, done } = await this.#chunks.next();
			this.#ended = done;
			const text = this.#rest + (done ? this.#decoder.decode() : typeof chunk === 'string' ? chunk : this.#decoder.decode(chunk, { stream: true }));
			const lines = text.split('\n');
			this.#rest = lines.pop();
			if (done && this.#rest !== '') {
				lines.push(this.#rest);
			}
			this.#lines = text.includes('\r') ? lines.map((line) => (line.endsWith('\r') ? line.slice(0, -1) : line)) : lines;
			this.#at = 0;
		}
		return this.next();
	}

	async return() {
		this.#ended = true;
		this.#lines = [];
		await this.#chunks.return?.();
		return { value: undefined, done: true };
	}

	[Symbol.asyncIterator]() { return this; }
}

class Interface extends EventEmitter {
	#lines;
	#flowing = false;
	#closed = false;

	constructor(input) {
		super();
		if (typeof input?.[Symbol.asyncIterator] !== 'function' && typeof input?.[Symbol.iterator] !== 'function') {
			throw new TypeError('readline.createInterface needs an input to read: {input: fs.createReadStream(path)}');
		}
		this.#lines = new Lines(input);
	}

	on(name, listener) {
		super.on(name, listener);
		if (name === 'line' && !this.#flowing) {
			this.#flowing = true;
			Promise.resolve().then(() => this.#flow());
		}
		return this;
	}

	async #flow() {
		try {
			for await (const line of this.#lines) {
				if (this.#closed) {
					return;
				}
				this.emit('line', line);
			}
		} catch (e) {
			this.emit('error', e);
			return;
		}
		this.close();
	}

	close() {
		if (!this.#closed) {
			this.#closed = true;
			this.emit('close');
		}
	}

	[Symbol.asyncIterator]() { return this.#lines; }
}

class FileHandle {
	#path;
	#fs;

	constructor(path, fs) {
		this.#path = path;
		this.#fs = fs;
	}
	createReadStream(options) { return this.#fs.createReadStream(this.#path, options); }
	readLines(options) { return new Interface(this.createReadStream(options)); }
	readFile(options) { return this.#fs.promises.readFile(this.#path, options); }
	writeFile(data, options) { return this.#fs.promises.writeFile(this.#path, data, options); }
	appendFile(data, options) { return this.#fs.promises.appendFile(this.#path, data, options); }
	stat() { return this.#fs.promises.stat(this.#path); }
	async close() {}
	async [Symbol.asyncDispose ?? Symbol.for('nodejs.asyncDispose')]() {}
}

exports.ReadStream = ReadStream;
exports.FileHandle = FileHandle;
exports.readline = {
	createInterface: (options) => new Interface(options?.input ?? options),
	Interface,
};
