// What the modules of programs' surroundings call, see natives in native.go.
'use strict';
const frames = require('frames');
const host = require('host');
const alarms = require('alarms');
const { now } = require('clock');
const { load } = native;
const { stringify } = JSON;
const slice = Function.prototype.call.bind(String.prototype.slice);
const charCodeAt = Function.prototype.call.bind(String.prototype.charCodeAt);

native.target = host.target;
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

// What the report of the program warns of, each once, as members of a JSON list.
const warnings = { __proto__: null };
let warned = '', count = 0;
native.warn = (text) => {
	const most = 5, long = 4 << 10;
	const warning = stringify(text.length <= long ? text : `${slice(text, 0, long)}…`);
	if (!(warning in warnings) && count < most) {
		count++;
		warnings[warning] = true;
		warned += (warned === '' ? '' : ',') + warning;
	}
};
exports.warned = () => warned;

let began = 0, namespaces = [];
native.now = () => now() - began;
native.functions = (i) => namespaces[i].functions ?? [];

// began is told of the program's servers when it starts.
exports.begin = function begin(list) {
	began = now();
	namespaces = list;
};

// late loads a module of the platform when the global object has been cleared,
// which Deno's need as it was to begin with.
const { Deno } = globalThis;
function late(name) {
	if (Deno === undefined) {
		return load(name);
	}
	globalThis.Deno = Deno;
	try {
		return load(name);
	} finally {
		delete globalThis.Deno;
	}
}

// Node's crypto of the web takes longer to load than its own.
const web = native.runtime === 'node' ? undefined : globalThis.crypto;
native.random = (size) => {
	const bytes = new Uint8Array(size);
	web === undefined ? load('node:crypto').randomFillSync(bytes) : web.getRandomValues(bytes);
	return bytes.buffer;
};

const digests = { __proto__: null, md5: 1, sha1: 1, sha256: 1, sha384: 1, sha512: 1 };
native.digest = (algorithm, buffer) => {
	return algorithm in digests ? late('node:crypto').createHash(algorithm).update(new Uint8Array(buffer)).digest('hex') : '';
};
