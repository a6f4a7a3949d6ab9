// node:stream and node:stream/promises.
'use strict';
const { EventEmitter } = require('emitter').module;
const { Buffer } = require('buffer');
const { ReadStream } = require('streams');

const mostWaiting = 16; // chunks, before a writer is asked to wait

const coded = (code, message, type = Error) => Object.assign(new type(message), { code });
const premature = () => coded('ERR_STREAM_PREMATURE_CLOSE', 'Premature close');
const later = (run) => Promise.resolve().then(run);
const isIterable = (value) => typeof value?.[Symbol.asyncIterator] === 'function' || typeof value?.[Symbol.iterator] === 'function';
const isWritable = (value) => typeof value?.write === 'function';

// Readable is a stream of what is pushed to it, or of an iterable.
class Readable extends EventEmitter {
	#chunks = [];
	#source;
	#ended = false;
	#objects;
	#flowing = false;
	#wake = () => {};
	#taken = () => {};

	constructor({ read, objectMode = false, readableObjectMode = objectMode } = {}) {
		super();
		this.#objects = readableObjectMode;
		this.destroyed = this.readableEnded = false;
		this.errored = null;
		this.readable = true;
		if (read) {
			this._read = read;
		}
	}

	static from(iterable, options) {
		if (!isIterable(iterable)) {
			throw coded('ERR_INVALID_ARG_TYPE', 'Readable.from needs an iterable', TypeError);
		}
		const stream = new Readable({ objectMode: true, ...options });
		stream.#source = typeof iterable === 'string' ? [iterable] : iterable;
		return stream;
	}

	push(chunk, encoding) {
		if (chunk === null) {
			this.#ended = true;
		} else {
			this.#chunks.push(!this.#objects && typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk);
		}
		this.#wake();
		return this.#chunks.length < mostWaiting;
	}

	// hasRoom is a promise that few chunks wait to be read.
	async hasRoom() {
		while (this.#chunks.length >= mostWaiting && !this.destroyed) {
			await new Promise((go) => { this.#taken = go; });
		}
	}

	async *#all() {
		if (this.#source) {
			yield* this.#source;
			return;
		}
		for (;;) {
			if (this.#chunks.length > 0) {
				const chunk = this.#chunks.shift();
				this.#taken();
				yield chunk;
			} else if (this.#ended || this.destroyed) {
				return;
			} else {
				const woken = new Promise((go) => { this.#wake = go; });
				this._read?.(16 << 10);
				await woken;
			}
		}
	}

	async *[Symbol.asyncIterator]() {
		for await (const chunk of this.#all()) {
			if (this.destroyed) {
				break;
			}
			yield chunk;
		}
		if (this.errored) {
			throw this.errored;
		}
		this.readable = false;
		this.readableEnded = !this.destroyed;
	}

	on(name, listener) {
		super.on(name, listener);
		if (name === 'data') {
			this.#flow((chunk) => this.emit('data', chunk));
		}
		return this;
	}

	// resume reads everything and drops what nobody listens to.
	resume() {
		this.#flow(() => {});
		return this;
	}

	#flow(give) {
		if (!this.#flowing) {
			this.#flowing = true;
			later(async () => {
				for await (const chunk of this) {
					give(chunk);
				}
				this.emit('end');
				this.emit('close');
			}).catch((e) => this.destroyed || this.emit('error', e));
		}
	}

	pipe(to, { end = true } = {}) {
		if (!this.#flowing) {
			this.#flowing = true;
			later(() => pour(this, to, end)).then(() => { this.emit('end'); this.emit('close'); }, (e) => {
				if (!this.destroyed && !to.destroyed) {
					this.emit('error', e);
				}
			});
		}
		return to;
	}

	destroy(error) {
		if (!this.destroyed) {
			this.destroyed = true;
			this.errored = error ?? null;
			this.#wake();
			this.#taken();
			later(() => {
				if (error) {
					this.emit('error', error);
				}
				this.emit('close');
			});
		}
		return this;
	}
}

// Writable hands chunks one after the other to a function.
class Writable extends EventEmitter {
	#waiting = 0;
	#work = Promise.resolve();
	#full = false;
	#objects;

	constructor({ write, final, objectMode = false, writableObjectMode = objectMode } = {}) {
		super();
		this.#objects = writableObjectMode;
		this.writable = true;
		this.destroyed = this.writableEnded = this.writableFinished = false;
		this.errored = null;
		if (write) {
			this._write = write;
		}
		if (final) {
			this._final = final;
		}
	}

	#run(step, done) {
		this.#work = this.#work.then(() => this.destroyed ? undefined : new Promise((go, failed) => step((e) => (e ? failed(e) : go()))))
			.then(() => { if (!this.destroyed) { done(); } }, (e) => { this.destroy(e); });
	}

	write(data, encoding, callback = encoding) {
		const done = typeof callback === 'function' ? callback : () => {};
		if (this.writableEnded || this.destroyed) {
			const error = this.writableEnded ? coded('ERR_STREAM_WRITE_AFTER_END', 'write after end') : coded('ERR_STREAM_DESTROYED', 'Cannot call write after a stream was destroyed');
			later(() => { done(error); this.destroy(error); });
			return false;
		}
		const coding = typeof encoding === 'string' ? encoding : 'utf8';
		const chunk = !this.#objects && typeof data === 'string' ? Buffer.from(data, coding) : data;
		this.#waiting++;
		this.#run((over) => this._write(chunk, coding, over), () => {
			this.#waiting--;
			done(null);
			if (this.#full && this.#waiting === 0) {
				this.#full = false;
				this.emit('drain');
			}
		});
		this.#full ||= this.#waiting >= mostWaiting;
		return !this.#full;
	}

	end(data, encoding, callback) {
		const done = [data, encoding, callback].find((argument) => typeof argument === 'function');
		if (done) {
			this.once('finish', done);
		}
		if (data !== undefined && data !== null && typeof data !== 'function') {
			this.write(data, encoding);
		}
		if (!this.writableEnded) {
			this.writableEnded = true;
			this.writable = false;
			this.#run((over) => (this._final ? this._final(over) : over()), () => {
				this.writableFinished = this.destroyed = true;
				this.emit('finish');
				this.emit('close');
			});
		}
		return this;
	}

	destroy(error) {
		if (!this.destroyed) {
			this.destroyed = true;
			this.writable = false;
			this.errored = error ?? null;
			later(() => {
				if (error) {
					this.emit('error', error);
				}
				this.emit('close');
			});
		}
		return this;
	}
}

// Transform pushes what it makes of what is written to it.
class Transform extends Readable {
	#input;

	constructor(options = {}) {
		super(options);
		this._transform = options.transform ?? this._transform;
		this._flush = options.flush ?? this._flush;
		const answered = (over) => (e, chunk) => {
			if (!e && chunk !== undefined && chunk !== null) {
				this.push(chunk);
			}
			over(e);
		};
		this.#input = new Writable({
			objectMode: options.objectMode, writableObjectMode: options.writableObjectMode,
			write: (chunk, encoding, over) => { this.hasRoom().then(() => this._transform(chunk, encoding, answered(over))).catch(over); },
			final: (over) => {
				const last = (e) => { if (!e) { this.push(null); } over(e); };
				later(() => (this._flush ? this._flush(answered(last)) : last())).catch(over);
			},
		});
		this.#input.on('error', (e) => this.destroy(e));
		this.#input.on('drain', () => this.emit('drain'));
		this.#input.on('finish', () => this.emit('finish'));
	}

	get writable() { return this.#input.writable; }
	get writableEnded() { return this.#input.writableEnded; }
	get writableFinished() { return this.#input.writableFinished; }
	write(...given) { return this.#input.write(...given); }
	end(...given) {
		this.#input.end(...given);
		return this;
	}
	destroy(error) {
		if (!this.#input.writableFinished) {
			this.#input.destroy();
		}
		return super.destroy(error);
	}
}

class PassThrough extends Transform {
	_transform(chunk, encoding, done) { done(null, chunk); }
}

// whole goes through a stream and fails if it was destroyed before its end.
async function* whole(stream) {
	yield* stream;
	if (stream.destroyed) {
		throw stream.errored ?? premature();
	}
	if (stream instanceof ReadStream) {
		stream.emit('end');
		stream.emit('close');
	}
}

// written is a promise that a stream has written everything.
function written(to) {
	return new Promise((resolve, reject) => {
		to.on('finish', resolve);
		to.on('error', reject);
		to.on('close', () => reject(premature()));
	});
}

// pour writes all chunks to a stream, as fast as that takes them.
async function pour(from, to, end) {
	if (to.destroyed || to.writableEnded) {
		throw to.errored ?? coded('ERR_STREAM_UNABLE_TO_PIPE', 'Cannot pipe to a closed or destroyed stream');
	}
	const waits = typeof to.on === 'function';
	const done = waits ? written(to) : new Promise(() => {});
	const feed = async () => {
		for await (const chunk of from) {
			if (to.write(chunk) === false && waits && !to.destroyed) {
				await new Promise((go) => to.once('drain', go).once('close', go));
			}
			if (to.destroyed) {
				return done;
			}
		}
		if (end && waits) {
			to.end();
			return done;
		}
	};
	const fed = feed();
	done.catch(() => {});
	fed.catch(() => {});
	await Promise.race([fed, done.then(() => fed)]);
}

// begun returns the first step as an iterable.
function begun(first, options) {
	const source = typeof first === 'function' ? first(options) : first;
	if (!isIterable(source)) {
		throw coded('ERR_INVALID_ARG_TYPE', 'pipeline begins with a stream to read, an iterable, or a function that returns one', TypeError);
	}
	return typeof source.on === 'function' ? whole(source) : source;
}

async function connect(steps, { signal, end = true } = {}) {
	const pending = [];
	let from = begun(steps[0], { signal });
	let value;
	for (const [i, step] of steps.entries()) {
		const last = i === steps.length - 1;
		if (i === 0) {
			continue;
		}
		if (typeof step === 'function') {
			const made = step(from, { signal });
			if (!last && !isIterable(made)) {
				throw coded('ERR_INVALID_RETURN_VALUE', `step ${i + 1} of pipeline must return an async iterable: write async function* (source) { … }`, TypeError);
			}
			from = made;
			value = last && !isIterable(made) ? made : undefined;
			if (last && isIterable(made)) {
				pending.push((async () => { for await (const chunk of made) { void chunk; } })());
			}
		} else if (isWritable(step) && (last || isIterable(step))) {
			pending.push(pour(from, step, last ? end : true));
			from = last ? undefined : whole(step);
		} else {
			throw coded('ERR_INVALID_ARG_TYPE', `step ${i + 1} of pipeline must be a function or a stream that ${last ? 'is written' : 'is written and read'}`, TypeError);
		}
	}
	const results = await Promise.all([value, ...pending]);
	return results[0];
}

function aborted(signal) {
	return Object.assign(new Error('The operation was aborted', { cause: signal.reason }), { name: 'AbortError', code: 'ABORT_ERR' });
}

async function run(steps, options = {}) {
	const { signal } = options;
	const stop = new Promise((_, reject) => {
		if (signal?.aborted) {
			reject(aborted(signal));
		}
		signal?.addEventListener('abort', () => reject(aborted(signal)), { once: true });
	});
	stop.catch(() => {});
	try {
		return await (signal?.aborted ? stop : Promise.race([connect(steps, options), stop]));
	} catch (e) {
		for (const stream of steps.filter((step) => typeof step?.destroy === 'function' && !step.destroyed)) {
			stream.on('error', () => {});
			stream.destroy(e);
		}
		throw e;
	}
}

// arranged splits the arguments of pipeline into steps and options.
function arranged(given) {
	const steps = Array.isArray(given[0]) && given.slice(1).every((step) => !isWritable(step) && typeof step !== 'function') ? [...given[0], ...given.slice(1)] : [...given];
	const last = steps.at(-1);
	const options = steps.length > 1 && typeof last === 'object' && last !== null && !isWritable(last) && !isIterable(last) ? steps.pop() : {};
	if (steps.length < 2) {
		throw coded('ERR_MISSING_ARGS', 'pipeline needs two streams or more', TypeError);
	}
	return { steps, options };
}

function promisedPipeline(...given) {
	return later(() => {
		const { steps, options } = arranged(given);
		return run(steps, options);
	});
}

function pipeline(...given) {
	const callback = given.pop();
	if (typeof callback !== 'function') {
		throw coded('ERR_INVALID_ARG_TYPE', 'pipeline of node:stream needs a callback as its last argument; that of node:stream/promises gives a promise', TypeError);
	}
	const { steps, options } = arranged(given);
	run(steps, options).then((value) => callback(undefined, value), callback);
	return steps.at(-1);
}

// promisedFinished is fulfilled when a stream has been read or written to its end.
function promisedFinished(stream) {
	return new Promise((resolve, reject) => {
		if (typeof stream?.on !== 'function') {
			throw coded('ERR_INVALID_ARG_TYPE', 'finished needs a stream', TypeError);
		}
		if (stream.errored) {
			reject(stream.errored);
		} else if (stream.writableFinished || stream.readableEnded) {
			resolve();
		} else if (stream.destroyed) {
			reject(premature());
		}
		stream.on(isWritable(stream) ? 'finish' : 'end', () => resolve());
		stream.on('error', reject);
		stream.on('close', () => reject(premature()));
	});
}

function finished(stream, options, callback = options) {
	promisedFinished(stream).then(() => callback(), callback);
	return () => {};
}

exports.promises = { pipeline: promisedPipeline, finished: promisedFinished };
exports.module = { pipeline, finished, Readable, Writable, Transform, PassThrough, promises: exports.promises };
