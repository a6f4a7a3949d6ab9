// Reading and writing of the file descriptors 0 and 1, which block.
'use strict';
const { exit } = require('exit');
const U8 = Uint8Array;

// operations gives read and write as (bytes, offset, length) => number of bytes,
// of which none means the end. Deno's fs can be broken by programs.
function operations() {
	const { Deno } = globalThis;
	if (Deno !== undefined) {
		const { stdin, stdout } = Deno;
		const { readSync } = stdin, { writeSync } = stdout, { apply } = Reflect;
		return {
			read: (bytes, offset, length) => apply(readSync, stdin, [new U8(bytes.buffer, offset, length)]) ?? 0,
			write: (bytes, offset, length) => apply(writeSync, stdout, [new U8(bytes.buffer, offset, length)]),
		};
	}
	const { readSync, writeSync } = native.load('node:fs');
	return {
		read: (bytes, offset, length) => readSync(0, bytes, offset, length, null),
		write: (bytes, offset, length) => writeSync(1, bytes, offset, length, null),
	};
}

// patiently does what a descriptor that should block may refuse for the moment.
const bell = new Int32Array(new SharedArrayBuffer(4));
const { wait } = Atomics;
function patiently(operation, bytes, offset, length) {
	for (;;) {
		try {
			return operation(bytes, offset, length);
		} catch (e) {
			if (e.code === 'EOF') {
				return 0;
			}
			if (e.code !== 'EAGAIN' && e.code !== 'EINTR') {
				exit(); // the host is gone
			}
			wait(bell, 0, 0, 1);
		}
	}
}

const { read, write } = operations();
exports.read = (bytes, offset, length) => patiently(read, bytes, offset, length);
exports.write = function writeAll(bytes, length) {
	for (let done = 0; done < length;) {
		done += patiently(write, bytes, done, length - done);
	}
};
