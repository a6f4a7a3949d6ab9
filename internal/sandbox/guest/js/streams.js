// What reads or writes a file in parts: streams, file handles and node:readline. Only parts of a
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

	// pipe writes all parts to a stream that is written, as fast as that takes them, and ends it. It returns that stream.
	pipe(to, { end = true } = {}) {
		if (!this.#flowing) {
			this.#flowing = true;
			Promise.resolve().then(() => this.#pour(to, end));
		}
		return to;
	}

	async #pour(to, end) {
		try {
			for await (const chunk of this) {
				if (to.destroyed) {
					return;
				}
				if (to.write(chunk) === false && !to.destroyed) {
					await new Promise((go) => to.once('drain', go).once('close', go));
				}
			}
		} catch (e) {
			this.emit('error', e);
			return;
		}
		if (end) {
			to.end();
		}
		this.emit('end');
		this.emit('close');
	}

	destroy() {
		this.destroyed = true;
		return this;
	}
	close() { this.destroy(); }
}

// WriteStream writes a file in parts. What is written while a call to the host is under way goes with the next call, so
// that many small writes are few calls. A program that does not wait for drain holds what it writes in its own memory.
class WriteStream extends EventEmitter {
	#save;
	#encode;
	#highWaterMark;
	#waiting = [];
	#busy = true;
	#ending = false;
	#full = false;

	// open is a promise that the file is there; save appends bytes to it.
	constructor(path, open, save, encode, highWaterMark = 16 << 10) {
		super();
		this.path = path;
		this.bytesWritten = 0;
		this.writableLength = 0;
		this.writable = true;
		this.writableEnded = this.writableFinished = this.destroyed = false;
		this.#save = save;
		this.#encode = encode;
		this.#highWaterMark = highWaterMark;
		open.then(() => {
			if (!this.destroyed) {
				this.emit('open');
				this.emit('ready');
				this.#busy = false;
				return this.#drain();
			}
		}).catch((e) => this.destroy(e));
	}

	write(data, encoding, done) {
		const callback = typeof encoding === 'function' ? encoding : done;
		const bytes = this.#encode(data, typeof encoding === 'string' ? encoding : undefined);
		if (this.#ending || this.destroyed) {
			const error = Object.assign(new Error(this.#ending ? 'write after end' : 'Cannot call write after a stream was destroyed'), { code: this.#ending ? 'ERR_STREAM_WRITE_AFTER_END' : 'ERR_STREAM_DESTROYED' });
			Promise.resolve().then(() => { callback?.(error); this.destroy(error); });
			return false;
		}
		this.#add(bytes, callback);
		this.#full = this.writableLength >= this.#highWaterMark;
		return !this.#full;
	}

	#add(bytes, callback) {
		this.#waiting.push({ bytes, callback });
		this.writableLength += bytes.length;
		if (!this.#busy) {
			this.#busy = true;
			Promise.resolve().then(() => this.#drain()).catch((e) => this.destroy(e));
		}
	}

	end(data, encoding, done) {
		const callback = [data, encoding, done].find((argument) => typeof argument === 'function');
		if (callback) {
			this.once('finish', callback);
		}
		if (data !== undefined && data !== null && typeof data !== 'function') {
			this.write(data, typeof encoding === 'string' ? encoding : undefined);
		}
		if (!this.#ending) {
			this.#ending = this.writableEnded = true;
			this.writable = false;
			this.#add(this.#encode(''));
		}
		return this;
	}

	async #drain() {
		this.#busy = true;
		while (this.#waiting.length > 0 && !this.destroyed) {
			const parts = this.#waiting;
			this.#waiting = [];
			const size = parts.reduce((sum, { bytes }) => sum + bytes.length, 0);
			try {
				if (size > 0) {
					await this.#save(parts.map(({ bytes }) => bytes));
				}
			} catch (e) {
				parts.forEach(({ callback }) => callback?.(e));
				throw e;
			}
			this.bytesWritten += size;
			this.writableLength -= size;
			parts.forEach(({ callback }) => callback?.(null));
			if (this.#full && this.writableLength < this.#highWaterMark) {
				this.#full = false;
				this.emit('drain');
			}
		}
		this.#busy = false;
		if (this.#ending && !this.destroyed && !this.writableFinished) {
			this.writableFinished = true;
			this.emit('finish');
			this.#close();
		}
	}

	#close() {
		this.destroyed = true;
		this.writable = false;
		this.#waiting = [];
		this.emit('close');
	}

	destroy(error) {
		if (this.destroyed) {
			return this;
		}
		this.destroyed = true;
		Promise.resolve().then(() => {
			try {
				if (error) {
					this.errored = error;
					this.emit('error', error);
				}
			} finally {
				this.#close();
			}
		});
		return this;
	}
	close(done) {
		if (done) {
			this.once('close', done);
		}
		this.end();
	}
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
	createWriteStream(options) { return this.#fs.createWriteStream(this.#path, { flags: 'a', ...options }); }
	readLines(options) { return new Interface(this.createReadStream(options)); }
	readFile(options) { return this.#fs.promises.readFile(this.#path, options); }
	writeFile(data, options) { return this.#fs.promises.writeFile(this.#path, data, options); }
	appendFile(data, options) { return this.#fs.promises.appendFile(this.#path, data, options); }
	stat() { return this.#fs.promises.stat(this.#path); }
	async close() {}
	async [Symbol.asyncDispose ?? Symbol.for('nodejs.asyncDispose')]() {}
}

exports.ReadStream = ReadStream;
exports.WriteStream = WriteStream;
exports.FileHandle = FileHandle;
exports.readline = {
	createInterface: (options) => new Interface(options?.input ?? options),
	Interface,
};
