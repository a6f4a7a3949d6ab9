// node:fs and node:fs/promises, by calls to the host. Each operation is written
// once, as a generator that yields calls; promised and immediate run it.
'use strict';
const { callOwn, callOwnNow } = require('calls');
const { codec, view } = require('encoding');
const { Buffer } = require('buffer');
const { path: paths } = require('path');

const partBytes = 3 << 20; // of one call; a multiple of three, as base64 likes it

function pathOf(path) {
	if (typeof path === 'string') {
		return path.startsWith('file://') ? decodeURIComponent(new URL(path).pathname) : path;
	}
	if (path?.protocol === 'file:') {
		return decodeURIComponent(path.pathname);
	}
	if (Buffer.isBuffer(path)) {
		return path.toString();
	}
	throw new TypeError('The "path" argument must be a string, a Buffer or a file URL');
}

function encodingOf(options) {
	return typeof options === 'string' ? options : options?.encoding ?? null;
}

class Stats {
	constructor({ dir, bytes, modified }) {
		this.size = bytes ?? 0;
		this.mtime = new Date(modified ?? 0);
		this.mtimeMs = this.mtime.getTime();
		this.ctime = this.birthtime = this.atime = this.mtime;
		this.mode = dir ? 0o40755 : 0o100644;
		Object.defineProperty(this, 'dir', { value: Boolean(dir) });
	}
	isFile() { return !this.dir; }
	isDirectory() { return this.dir; }
	isSymbolicLink() { return false; }
}

class Dirent {
	constructor(name, parentPath, dir) {
		this.name = name;
		this.parentPath = this.path = parentPath;
		Object.defineProperty(this, 'dir', { value: Boolean(dir) });
	}
	isFile() { return !this.dir; }
	isDirectory() { return this.dir; }
	isSymbolicLink() { return false; }
}

const operations = {
	*readFile(path, options) {
		const parts = [];
		for (let offset = 0, last = false; !last;) {
			const part = yield ['read_file', { path: pathOf(path), offset, length: partBytes }];
			const bytes = Buffer.from(part.data ?? '', 'base64');
			parts.push(bytes);
			offset += bytes.length;
			last = part.eof !== false || bytes.length === 0;
		}
		const whole = parts.length === 1 ? parts[0] : Buffer.concat(parts);
		const encoding = encodingOf(options);
		return encoding === null || encoding === 'buffer' ? whole : whole.toString(encoding);
	},

	*writeFile(path, data, options) {
		const bytes = typeof data === 'object' && data !== null ? view(data) : codec(encodingOf(options) ?? 'utf8').encode(`${data}`);
		let append = /^a/.test(options?.flag ?? '');
		let offset = 0;
		do {
			const part = bytes.subarray(offset, offset + partBytes);
			yield ['write_file', { path: pathOf(path), data: part.toBase64(), ...(append && { append }) }];
			append = true;
			offset += partBytes;
		} while (offset < bytes.length);
	},

	*appendFile(path, data, options) {
		yield* operations.writeFile(path, data, { encoding: encodingOf(options), flag: 'a' });
	},

	*readdir(path, options) {
		const root = pathOf(path);
		const found = yield* list(root, '', Boolean(options?.recursive));
		if (options?.withFileTypes) {
			return found.map(({ at, entry }) => new Dirent(entry.name, at === '' ? root : paths.join(root, at), entry.dir));
		}
		return found.map(({ at, entry }) => (at === '' ? entry.name : `${at}/${entry.name}`));
	},

	*stat(path) {
		return new Stats(yield ['stat_file', { path: pathOf(path) }]);
	},

	*access(path) {
		yield ['stat_file', { path: pathOf(path) }];
	},

	*mkdir(path, options) {
		yield ['make_dir', { path: pathOf(path), ...(options?.recursive && { recursive: true }) }];
	},

	*rm(path, options) {
		try {
			yield ['remove_file', { path: pathOf(path), ...(options?.recursive && { recursive: true }) }];
		} catch (e) {
			if (!(options?.force && e.code === 'ENOENT')) {
				throw e;
			}
		}
	},

	*rename(from, to) {
		yield ['rename_file', { from: pathOf(from), to: pathOf(to) }];
	},

	*copyFile(from, to) {
		yield* operations.writeFile(to, yield* operations.readFile(from));
	},

	*cp(from, to, options) {
		if (!(yield* operations.stat(from)).isDirectory()) {
			yield* operations.copyFile(from, to);
			return;
		}
		if (!options?.recursive) {
			throw failure('ERR_FS_EISDIR', `${pathOf(from)} is a folder; copy it with {recursive: true}`, pathOf(from));
		}
		yield* operations.mkdir(to, { recursive: true });
		for (const name of yield* operations.readdir(from)) {
			yield* operations.cp(paths.join(pathOf(from), name), paths.join(pathOf(to), name), options);
		}
	},
};
operations.lstat = operations.stat;
operations.unlink = (path) => operations.rm(path);
operations.rmdir = (path, options) => operations.rm(path, options);

function* list(root, at, recursive) {
	const { entries = [] } = yield ['list_files', { path: at === '' ? root : paths.join(root, at) }];
	const found = [];
	for (const entry of entries) {
		found.push({ at, entry });
		if (recursive && entry.dir) {
			found.push(...(yield* list(root, at === '' ? entry.name : `${at}/${entry.name}`, true)));
		}
	}
	return found;
}

function failure(code, message, path) {
	return Object.assign(new Error(message), { code, path });
}

// explained makes the host's error one of Node's: its message begins with a code.
function explained(error, [, { path, from }]) {
	const [, code] = /^([A-Z]{3,}): /.exec(error?.message ?? '') ?? [];
	if (code === undefined) {
		return error;
	}
	const own = failure(code, error.message, path ?? from);
	Object.defineProperty(own, 'stack', { value: error.stack, writable: true, configurable: true });
	return own;
}

async function promised(operation) {
	let step = operation.next();
	while (!step.done) {
		let answer;
		try {
			answer = await callOwn(...step.value);
		} catch (e) {
			step = operation.throw(explained(e, step.value));
			continue;
		}
		step = operation.next(answer);
	}
	return step.value;
}

function immediate(operation) {
	let step = operation.next();
	while (!step.done) {
		let answer;
		try {
			answer = callOwnNow(...step.value);
		} catch (e) {
			step = operation.throw(explained(e, step.value));
			continue;
		}
		step = operation.next(answer);
	}
	return step.value;
}

const constants = { F_OK: 0, R_OK: 4, W_OK: 2, X_OK: 1 };
const promises = { constants };
const fs = { constants, promises, Stats, Dirent };
for (const [name, operation] of Object.entries(operations)) {
	promises[name] = { [name]: (...args) => promised(operation(...args)) }[name];
	fs[`${name}Sync`] = { [`${name}Sync`]: (...args) => immediate(operation(...args)) }[`${name}Sync`];
	fs[name] = { [name](...args) {
		const callback = args.pop();
		if (typeof callback !== 'function') {
			throw new TypeError(`fs.${name} needs a callback; fs.promises.${name} gives a promise`);
		}
		promised(operation(...args)).then((value) => callback(null, value), callback);
	} }[name];
}
fs.existsSync = (path) => {
	try {
		fs.accessSync(path);
		return true;
	} catch {
		return false;
	}
};

// readParts goes through a file from start to end, both counted, a part at a time.
async function* readParts(path, { start = 0, end = Infinity, highWaterMark = 1 << 20 } = {}) {
	for (let offset = start; offset <= end;) {
		const length = Math.min(Math.max(highWaterMark, 1), partBytes, end - offset + 1);
		const part = await promised((function* () { return yield ['read_file', { path, offset, length }]; })());
		const bytes = Buffer.from(part.data ?? '', 'base64');
		if (bytes.length > 0) {
			yield bytes;
		}
		offset += bytes.length;
		if (part.eof !== false || bytes.length === 0) {
			return;
		}
	}
}

fs.createReadStream = function createReadStream(path, options) {
	const { ReadStream } = require('streams');
	const own = typeof options === 'string' ? { encoding: options } : options ?? {};
	return new ReadStream(path, readParts(pathOf(path), own), own.encoding);
};
fs.createWriteStream = function createWriteStream(path, options) {
	const { WriteStream } = require('streams');
	const { flags = 'w', encoding = 'utf8', start, highWaterMark } = typeof options === 'string' ? { encoding: options } : options ?? {};
	if (!/^(?:w|wx|a)$/.test(flags) || start !== undefined) {
		throw new TypeError('fs.createWriteStream writes a whole file or appends to one: give flags w, wx or a, and no start');
	}
	const file = pathOf(path);
	const encode = (data, other) => (typeof data === 'string' ? codec(other ?? encoding ?? 'utf8').encode(data) : Uint8Array.from(view(data)));
	const begin = async () => {
		if (flags === 'wx' && await promises.access(file).then(() => true, () => false)) {
			throw failure('EEXIST', `EEXIST: ${file}: the file exists already`, file);
		}
		await promises.writeFile(file, '', { flag: flags === 'a' ? 'a' : 'w' });
	};
	return new WriteStream(path, begin(), (parts) => promises.appendFile(file, Buffer.concat(parts)), encode, highWaterMark);
};
promises.open = async function open(path, flags = 'r') {
	if (/^r/.test(flags)) {
		await promises.access(path);
	} else if (/^w/.test(flags)) {
		await promises.writeFile(path, '');
	}
	return new (require('streams').FileHandle)(path, fs);
};

exports.fs = fs;
exports.promises = promises;
// either is fs for programs that have not imported it: what has no callback gives a promise.
exports.either = { ...fs, promises };
for (const [name, promising] of Object.entries(promises)) {
	if (typeof promising === 'function') {
		exports.either[name] = (...args) => typeof args.at(-1) === 'function' ? fs[name](...args) : promising(...args);
	}
}
