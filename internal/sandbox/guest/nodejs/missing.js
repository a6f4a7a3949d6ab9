// What Node 20 and 22 lack of the language that QuickJS has.
'use strict';
const { defineProperty } = Object;

// add defines what is not there.
function add(object, members) {
	for (const name of Object.keys(members)) {
		if (!(name in object)) {
			defineProperty(object, name, { value: members[name], writable: true, configurable: true });
		}
	}
}

// JSON.rawJSON and the source texts of numbers are behind a flag in Node 20, and
// the function is only in contexts that are made afterwards.
if (JSON.rawJSON === undefined) {
	native.load('node:v8').setFlagsFromString('--harmony-json-parse-with-source');
	const { rawJSON, isRawJSON } = native.load('node:vm').runInNewContext('({ __proto__: null, ...{ rawJSON: JSON.rawJSON, isRawJSON: JSON.isRawJSON } })');
	add(JSON, { rawJSON, isRawJSON });
}

add(Promise, {
	withResolvers() {
		let resolve, reject;
		const promise = new this((a, b) => { resolve = a; reject = b; });
		return { promise, resolve, reject };
	},
	try(callback, ...args) { return new this((resolve) => resolve(callback(...args))); },
});

function group(items, key, put) {
	let i = 0;
	for (const item of items) {
		put(key(item, i++), item);
	}
}

add(Object, { groupBy(items, key) {
	const groups = { __proto__: null };
	group(items, key, (k, item) => { (groups[k] ??= []).push(item); });
	return groups;
} });
add(Map, { groupBy(items, key) {
	const groups = new Map();
	group(items, key, (k, item) => { groups.has(k) ? groups.get(k).push(item) : groups.set(k, [item]); });
	return groups;
} });

for (const type of [Map, WeakMap]) {
	add(type.prototype, {
		getOrInsert(key, value) { return this.getOrInsertComputed(key, () => value); },
		getOrInsertComputed(key, make) {
			if (!this.has(key)) {
				this.set(key, make(key));
			}
			return this.get(key);
		},
	});
}

// each calls visit with the members of what is like a Set, until it gives false.
function each(other, visit) {
	const keys = other.keys();
	for (let step = keys.next(); !step.done; step = keys.next()) {
		if (visit(step.value) === false) {
			return false;
		}
	}
	return true;
}

add(Set.prototype, {
	union(other) {
		const set = new Set(this);
		each(other, (v) => { set.add(v); });
		return set;
	},
	intersection(other) { return new Set([...this].filter((v) => other.has(v))); },
	difference(other) { return new Set([...this].filter((v) => !other.has(v))); },
	symmetricDifference(other) {
		const set = new Set(this);
		each(other, (v) => { this.has(v) ? set.delete(v) : set.add(v); });
		return set;
	},
	isSubsetOf(other) { return this.size <= other.size && [...this].every((v) => other.has(v)); },
	isSupersetOf(other) { return each(other, (v) => this.has(v)); },
	isDisjointFrom(other) { return ![...this].some((v) => other.has(v)); },
});

const iterators = Object.getPrototypeOf(Object.getPrototypeOf([].values()));
if (globalThis.Iterator === undefined) {
	function Iterator() { throw new TypeError('Iterator is abstract'); }
	Iterator.prototype = iterators;
	Iterator.from = (source) => (function* () { yield* source[Symbol.iterator] ? source : { [Symbol.iterator]: () => source }; })();
	defineProperty(globalThis, 'Iterator', { value: Iterator, writable: true, configurable: true });
}
add(iterators, {
	*map(f) { let i = 0; for (const v of this) { yield f(v, i++); } },
	*filter(f) { let i = 0; for (const v of this) { if (f(v, i++)) { yield v; } } },
	*take(n) { if (n > 0) { for (const v of this) { yield v; if (--n <= 0) { return; } } } },
	*drop(n) { for (const v of this) { if (n-- <= 0) { yield v; } } },
	*flatMap(f) { let i = 0; for (const v of this) { yield* f(v, i++); } },
	reduce(f, ...initial) { return [...this].reduce(f, ...initial); },
	toArray() { return [...this]; },
	forEach(f) { let i = 0; for (const v of this) { f(v, i++); } },
	some(f) { let i = 0; for (const v of this) { if (f(v, i++)) { return true; } } return false; },
	every(f) { let i = 0; for (const v of this) { if (!f(v, i++)) { return false; } } return true; },
	find(f) { let i = 0; for (const v of this) { if (f(v, i++)) { return v; } } return undefined; },
});

add(Array, {
	async fromAsync(items, map, self) {
		const list = [];
		const iterable = items[Symbol.asyncIterator] != null || items[Symbol.iterator] != null;
		for await (const item of iterable ? items : Array.from(items)) {
			list.push(map === undefined ? item : await map.call(self, item, list.length));
		}
		return list;
	},
});

const { from } = native.load('node:buffer').Buffer;
const plain = (buffer) => new Uint8Array(buffer);
const text = (bytes, encoding) => from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString(encoding);
add(Uint8Array, {
	fromHex(hex) {
		if (!/^(?:[0-9a-fA-F]{2})*$/.test(hex)) {
			throw new SyntaxError('the text is not hexadecimal');
		}
		return plain(from(hex, 'hex'));
	},
	fromBase64(base64, { alphabet = 'base64' } = {}) {
		if (!(alphabet === 'base64' ? /^[A-Za-z0-9+/\s]*={0,2}\s*$/ : /^[\w\-\s]*={0,2}\s*$/).test(base64)) {
			throw new SyntaxError('the text is not base64');
		}
		return plain(from(base64, alphabet));
	},
});
add(Uint8Array.prototype, {
	toHex() { return text(this, 'hex'); },
	toBase64({ alphabet = 'base64', omitPadding = false } = {}) {
		const encoded = text(this, alphabet);
		return alphabet === 'base64' ? (omitPadding ? encoded.replace(/=+$/, '') : encoded) : omitPadding ? encoded : encoded.padEnd(Math.ceil(encoded.length / 4) * 4, '=');
	},
});

add(ArrayBuffer.prototype, {
	transfer(size = this.byteLength) {
		const moved = new ArrayBuffer(size);
		new Uint8Array(moved).set(new Uint8Array(this, 0, Math.min(size, this.byteLength)));
		structuredClone(this, { transfer: [this] });
		return moved;
	},
});
add(RegExp, { escape(words) {
	return words.replace(/^[A-Za-z0-9]/, (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`).replace(/[\^$\\.*+?()[\]{}|/]/g, '\\$&')
		.replace(/[,\-=<>#&!%:;@~'`"\s]/g, (c) => (c.charCodeAt(0) < 256 ? `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}` : `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`));
} });
add(Error, { isError: (value) => value instanceof Error });
