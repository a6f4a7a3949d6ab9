// Values as JSON. JSON.stringify asks every object and every BigInt for its
// toJSON, so the types that JSON does not know get one; the rest is native speed.
// Programs see this too: JSON.stringify of a Map or a BigInt does what they mean.
'use strict';
const { stringify, rawJSON } = JSON;
const { apply, ownKeys, getPrototypeOf } = Reflect;
const { defineProperty, keys, getOwnPropertySymbols } = Object;
const isArray = Array.isArray;
const MapType = Map, SetType = Set;
const mapForEach = Map.prototype.forEach, setForEach = Set.prototype.forEach;
const weakGet = WeakMap.prototype.get, weakHas = WeakMap.prototype.has, weakSet = WeakMap.prototype.set;
const isEnumerable = Object.prototype.propertyIsEnumerable;
const bigIntText = BigInt.prototype.toString;
const regExpText = RegExp.prototype.toString;
const includes = Function.prototype.call.bind(String.prototype.includes);
const TypedArray = getPrototypeOf(Uint8Array);

function addToJSON(prototype, toJSON) {
	defineProperty(prototype, 'toJSON', { value: toJSON, writable: true, configurable: true });
}

addToJSON(BigInt.prototype, function toJSON() {
	return rawJSON(apply(bigIntText, this, []));
});

// What each Map, Set and Error has become in the rendering that goes on, so that one
// that contains itself is seen at once and not when the stack is full.
const Shadows = WeakMap;
let shadows = null;
let rendering = false;

function shadowed(prototype, toPlain) {
	addToJSON(prototype, function toJSON() {
		if (!rendering) {
			return toPlain(this);
		}
		shadows ??= new Shadows();
		if (apply(weakHas, shadows, [this])) {
			return apply(weakGet, shadows, [this]);
		}
		const plain = toPlain(this);
		apply(weakSet, shadows, [this, plain]);
		return plain;
	});
}

shadowed(Map.prototype, (map) => {
	const entries = [];
	const object = { __proto__: null };
	let textual = true, n = 0;
	apply(mapForEach, map, [(value, key) => {
		textual &&= typeof key === 'string';
		entries[n++] = [key, value];
		if (textual) {
			object[key] = value;
		}
	}]);
	return textual ? object : entries;
});

shadowed(Set.prototype, (set) => {
	const list = [];
	let n = 0;
	apply(setForEach, set, [(value) => { list[n++] = value; }]);
	return list;
});

shadowed(Error.prototype, (error) => {
	const object = { name: `${error.name}`, message: `${error.message}` };
	const keys = ownKeys(error);
	for (let i = 0; i < keys.length; i++) {
		const key = keys[i];
		if (key !== 'stack' && key !== 'message' && typeof key === 'string' && (key === 'cause' || key === 'errors' || apply(isEnumerable, error, [key]))) {
			object[key] = error[key];
		}
	}
	return object;
});

function listOf(array) {
	const list = [];
	for (let i = 0; i < array.length; i++) {
		list[i] = array[i];
	}
	return list;
}

const Bytes = Uint8Array;
addToJSON(TypedArray.prototype, function toJSON() { return listOf(this); });
addToJSON(ArrayBuffer.prototype, function toJSON() { return listOf(new Bytes(this)); });
addToJSON(DataView.prototype, function toJSON() { return listOf(new Bytes(this.buffer, this.byteOffset, this.byteLength)); });
addToJSON(RegExp.prototype, function toJSON() { return apply(regExpText, this, []); });

// Functions have no JSON. That there was something that has none is remembered, see warn.
let lossy = false;
addToJSON(Function.prototype, function toJSON() {
	lossy = true;
	return undefined;
});

// What iterators gave, as they give it once. JSON.stringify of a program leaves them alone.
const consumed = new WeakMap();
const mostItems = 10_000_000;

addToJSON(getPrototypeOf(getPrototypeOf([][Symbol.iterator]())), function toJSON() {
	const next = rendering ? this.next : undefined;
	if (typeof next !== 'function') {
		return this;
	}
	if (apply(weakHas, consumed, [this])) {
		return apply(weakGet, consumed, [this]);
	}
	const list = [];
	apply(weakSet, consumed, [this, list]);
	for (let n = 0, item = apply(next, this, []); !item.done; item = apply(next, this, [])) {
		if (n === mostItems) {
			throw new TypeError('the value has an iterator without an end');
		}
		list[n++] = item.value;
	}
	return list;
});

// Promises inside of a value are collected while it is rendered for the first
// time, awaited, and replaced by what they were fulfilled with.
const fulfilled = new WeakMap();
const rounds = 10; // of promises that are fulfilled with promises inside
let unawaited = null;

addToJSON(Promise.prototype, function toJSON(key) {
	if (apply(weakHas, fulfilled, [this])) {
		const value = apply(weakGet, fulfilled, [this]); // which nobody else asks for its toJSON
		return typeof value?.toJSON === 'function' ? value.toJSON(key) : value;
	}
	if (unawaited !== null) {
		unawaited[unawaited.length] = this;
	} else {
		lossy = true;
	}
	return {};
});

// An asynchronous iterator is a promise of the list of what it gives.
addToJSON(getPrototypeOf(getPrototypeOf((async function* () {}).prototype)), function toJSON() {
	if (!apply(weakHas, consumed, [this])) {
		if (unawaited === null || typeof this.next !== 'function') {
			lossy = true;
			return this;
		}
		apply(weakSet, consumed, [this, collected(this)]);
	}
	return apply(weakGet, consumed, [this]).toJSON();
});

async function collected(items) {
	const list = [];
	let n = 0;
	for (let item = await items.next(); !item.done; item = await items.next()) {
		if (n === mostItems) {
			throw new TypeError('the value has an iterator without an end');
		}
		list[n++] = item.value;
	}
	return list;
}

// render is the JSON of a value, or undefined if it has none.
function render(value) {
	try {
		rendering = true;
		shadows = null;
		return stringify(value);
	} catch (e) {
		rendering = false;
		shadows = null;
		const place = circle(value);
		if (place !== undefined) {
			throw new TypeError(`the value contains itself at ${place}, which JSON cannot express`);
		}
		throw e;
	} finally {
		rendering = false;
		shadows = null;
	}
}
exports.render = render;

// renderArguments is render for the arguments of a call, of which losses are told too.
exports.renderArguments = function renderArguments(value, server, tool) {
	lossy = false;
	const text = render(value);
	if (text !== undefined && (lossy || hasNull(text))) {
		warn(value, `the arguments of ${server === '' ? tool : `${server}.${tool}`}`);
	}
	return text;
};

// hasNull says whether JSON has a null, or text like it. Engines look for the first letter of a text
// byte by byte, and u is rarer than n.
function hasNull(text) { return includes(text, 'ull') && includes(text, 'null'); }

// warn tells what JSON lost of a value that was just rendered.
function warn(value, name) {
	let found = [];
	rendering = true;
	shadows = null;
	try {
		found = require('losses').lossesOf(value, (promise) => apply(weakHas, fulfilled, [promise]));
	} catch {
		// A getter or toJSON of the program's that works once.
	}
	rendering = false;
	shadows = null;
	let list = '';
	for (let i = 0; i < found.length; i++) {
		list += `${i === 0 ? '' : '; '}${found[i]}`;
	}
	if (list !== '') {
		native.warn(`JSON does not hold all of ${name}: ${list}`);
	}
}

const mostLooked = 1000; // values in which symbols are looked for

// hidesSymbols says whether a value has symbols, or a list members that are no elements: that
// is lost without a trace in the JSON.
function hidesSymbols(value) {
	let looked = 0;
	function seek(node) {
		if (typeof node !== 'object' || node === null || ++looked > mostLooked || typeof node.toJSON === 'function') {
			return typeof node === 'symbol';
		}
		const names = isArray(node) && node.length > mostLooked ? [] : keys(node);
		if (getOwnPropertySymbols(node).length > 0 || isArray(node) && names.length > node.length) {
			return true;
		}
		for (let i = 0; i < names.length; i++) {
			if (seek(node[names[i]])) {
				return true;
			}
		}
		return false;
	}
	try {
		return seek(value);
	} catch {
		return false; // a getter of the program's that works once
	}
}

// renderAwaited is render for a value that may contain promises. A value found
// to contain some is rendered again when they are fulfilled.
exports.renderAwaited = async function renderAwaited(value) {
	lossy = false;
	for (let round = 0; ; round++) {
		const found = unawaited = [];
		let text;
		try {
			text = render(value);
		} finally {
			unawaited = null;
		}
		if (found.length === 0 || round === rounds) {
			if (value !== undefined && (text === undefined || lossy || hasNull(text) || includes(text, '{}') || hidesSymbols(value))) {
				warn(value, 'the result');
			}
			return text;
		}
		for (let i = 0; i < found.length; i++) {
			apply(weakSet, fulfilled, [found[i], await found[i]]);
		}
	}
};

// circle is the path at which a value contains itself, if it does.
function circle(value) {
	const parents = [];
	let budget = 100_000;
	function walk(node, path) {
		if (typeof node !== 'object' || node === null || budget-- < 0 || parents.length > 500) {
			return undefined;
		}
		for (let i = 0; i < parents.length; i++) {
			if (parents[i] === node) {
				return path;
			}
		}
		parents[parents.length] = node;
		let found;
		inside(node, (child, name) => { found ??= walk(child, path + name); });
		parents.length--;
		return found;
	}
	try {
		return walk(value, '$');
	} catch {
		return undefined;
	}
}

// inside calls visit with what JSON would show of a value's inside.
function inside(node, visit) {
	if (node instanceof MapType) {
		apply(mapForEach, node, [(value, key) => visit(value, typeof key === 'string' ? `.${key}` : '[…]')]);
	} else if (node instanceof SetType) {
		apply(setForEach, node, [(value) => visit(value, '[…]')]);
	}
	const keys = ownKeys(node);
	for (let i = 0; i < keys.length; i++) {
		if (typeof keys[i] !== 'symbol' && !(isArray(node) && keys[i] === 'length')) {
			visit(node[keys[i]], isArray(node) ? `[${keys[i]}]` : `.${keys[i]}`);
		}
	}
}
