// What JSON loses of a value. A value is written by the engine's own JSON.stringify;
// here it is gone through once more, with a function that the engine calls for each
// member, to find what became null, an empty object or nothing.
'use strict';
const { stringify } = JSON;
const { apply, ownKeys, getPrototypeOf } = Reflect;
const { keys, getOwnPropertySymbols, prototype: objectPrototype } = Object;
const { isArray } = Array;
const NumberType = Number, BooleanType = Boolean, DateType = Date, PromiseType = Promise, Places = WeakMap;
const get = WeakMap.prototype.get, set = WeakMap.prototype.set;
const isEnumerable = Object.prototype.propertyIsEnumerable;
const uncurry = (method) => Function.prototype.call.bind(method);
const exec = uncurry(RegExp.prototype.exec);
const plainKey = /^[A-Za-z_$][\w$]*$/;

const mostNodes = 1_000_000; // that are looked at
const mostListed = 5;
const mostDepth = 8; // parts of a path
const longestKey = 40;
const enough = { __proto__: null };

// lossesOf lists what is lost of a value that JSON.stringify can write, as "$.path: what".
// isAwaited says whether a promise is written as what it was fulfilled with.
exports.lossesOf = function lossesOf(value, isAwaited) {
	const places = new Places(); // of objects: what holds them, and under which key
	const found = [];
	let nodes = 0, count = 0;
	function lose(holder, key, what) {
		if (count++ < mostListed) {
			found[found.length] = `${pathOf(places, holder, key)}: ${what}`;
		}
	}
	try {
		stringify(value, function visit(key, kept) {
			if (++nodes > mostNodes) {
				throw enough;
			}
			const what = lossOf(this, key, kept, isAwaited);
			if (what !== '') {
				lose(this, key, what);
			}
			if (typeof kept === 'object' && kept !== null) {
				apply(set, places, [kept, { __proto__: null, holder: this, key }]);
				const also = lossWithin(kept);
				if (also !== '') {
					lose(this, key, also);
				}
			}
			return kept;
		});
	} catch (e) {
		if (e !== enough) {
			throw e;
		}
		found[found.length] = `what comes after the first ${mostNodes} values was not looked at`;
	}
	if (count > mostListed) {
		found[found.length] = `and ${count - mostListed} more`;
	}
	return found;
};

// pathOf is the path of a member: $.list[1].name.
function pathOf(places, holder, key) {
	let path = '';
	for (let depth = 0; ; depth++) {
		const place = apply(get, places, [holder]);
		if (place === undefined) {
			return `$${path}`;
		}
		if (depth === mostDepth) {
			return `$…${path}`;
		}
		const part = isArray(holder) ? `[${key}]` : exec(plainKey, key) !== null && key.length <= longestKey ? `.${key}` : key.length > longestKey ? '["…"]' : `[${stringify(key)}]`;
		path = part + path;
		({ holder, key } = place);
	}
}

// lossOf says what is lost of one member, of which JSON keeps kept.
function lossOf(holder, key, kept, isAwaited) {
	switch (typeof kept) {
	case 'number':
		return kept - kept === 0 ? '' : `${kept} became null`;
	case 'symbol':
		return `a symbol ${gone(holder)}`;
	case 'function':
	case 'undefined': {
		const raw = holder[key];
		return typeof raw === 'function' ? `a function ${gone(holder)}` : '';
	}
	case 'object':
		break;
	default:
		return '';
	}
	if (kept === null) {
		return holder[key] instanceof DateType ? 'an invalid date became null' : '';
	}
	return isArray(kept) || keys(kept).length > 0 ? '' : emptied(holder[key], kept, isAwaited);
}

function gone(holder) { return isArray(holder) ? 'became null' : 'was left out'; }

// emptied says what an object was that has nothing to show.
function emptied(raw, kept, isAwaited) {
	if (raw instanceof PromiseType && !isAwaited(raw)) {
		return 'a promise that nobody awaited became {}';
	}
	if (kept instanceof NumberType || kept instanceof BooleanType) {
		return ''; // it is written as what it holds
	}
	const prototype = getPrototypeOf(kept);
	if (raw !== kept || prototype === null || prototype === objectPrototype || getPrototypeOf(prototype) === null) {
		return '';
	}
	const name = prototype.constructor?.name;
	return `${typeof name === 'string' && exec(plainKey, name) !== null && name.length <= longestKey ? name : 'an object'} has nothing that JSON shows and became {}`;
}

// lossWithin says what an object or list has besides what JSON shows.
function lossWithin(kept) {
	if (isArray(kept)) {
		const own = kept.length <= 1000 ? ownKeys(kept).length : 0;
		return own > kept.length + 1 && !('index' in kept && 'input' in kept) ? 'the members of a list that are no elements were left out' : '';
	}
	const symbols = getOwnPropertySymbols(kept);
	for (let i = 0; i < symbols.length; i++) {
		if (apply(isEnumerable, kept, [symbols[i]])) {
			return 'members whose keys are symbols were left out';
		}
	}
	return '';
}
