// What the modules of programs' surroundings call, see natives in native.go.
'use strict';
const frames = require('frames');
const host = require('host');
const alarms = require('alarms');
const { now } = require('clock');
const { load } = native;
const slice = Function.prototype.call.bind(String.prototype.slice);
const charCodeAt = Function.prototype.call.bind(String.prototype.charCodeAt);
const { stringify } = JSON;

native.call = host.call;
native.callSync = host.callSync;
native.timer = (id, delay) => alarms.add(id, now() + delay);
native.clearTimer = alarms.remove;

native.print = function print(text) {
	const part = 16 << 10;
	for (let from = 0; from < text.length;) {
		let to = from + part;
		if (to < text.length && (charCodeAt(text, to) & 0xfc00) === 0xdc00) {
			to--;
		}
		frames.post(frames.kinds.output, 0, '', slice(text, from, to));
		from = to;
	}
};

let began = 0, namespaces = [];
native.now = () => now() - began;
native.functions = (i) => stringify(namespaces[i].functions ?? []);

// began is told of the program's servers when it starts.
exports.begin = function begin(list) {
	began = now();
	namespaces = list;
};

native.random = (size) => {
	const bytes = new Uint8Array(size);
	load('node:crypto').randomFillSync(bytes);
	return bytes.buffer;
};

const digests = { __proto__: null, md5: 1, sha1: 1, sha256: 1, sha384: 1, sha512: 1 };
native.digest = (algorithm, buffer) => {
	return algorithm in digests ? load('node:crypto').createHash(algorithm).update(new Uint8Array(buffer)).digest('hex') : '';
};
