// Values as people read them, in the manner of Node's util.inspect.
'use strict';
const { getPrototypeOf, getOwnPropertyDescriptor } = Object;
const { ownKeys } = Reflect;
const { isArray } = Array;
const TypedArray = getPrototypeOf(Uint8Array);
const custom = Symbol.for('nodejs.util.inspect.custom');
const defaults = { depth: 4, maxArrayLength: 100, maxStringLength: 10_000, breakLength: 80, compact: 3, sorted: false, showHidden: false };
const mostText = 100_000; // of one inspected value
const plainKey = /^[A-Za-z_$][\w$]*$/;

exports.inspect = function inspect(value, options, ...legacy) {
	if (typeof options === 'boolean') {
		options = { showHidden: options, ...(legacy[0] !== undefined && { depth: legacy[0] }) };
	}
	const settings = { ...defaults, ...options };
	settings.depth ??= Infinity;
	return new Inspection(settings).show(value, 0);
};
exports.inspect.custom = custom;
exports.inspect.defaultOptions = defaults;

class Inspection {
	constructor(settings) {
		this.settings = settings;
		this.parents = [];
		this.circular = new Map();
		this.budget = mostText;
	}

	show(value, depth) {
		const text = this.raw(value, depth);
		this.budget -= text.length;
		return text;
	}

	raw(value, depth) {
		switch (typeof value) {
		case 'string': return depth === 0 && this.settings.bare ? value : this.string(value);
		case 'bigint': return `${value}n`;
		case 'symbol': return value.toString();
		case 'number': return Object.is(value, -0) ? '-0' : `${value}`;
		case 'function': case 'object': break;
		default: return `${value}`;
		}
		if (value === null) {
			return 'null';
		}
		if (this.parents.includes(value)) {
			this.circular.set(value, this.circular.size + 1);
			return `[Circular *${this.circular.get(value)}]`;
		}
		if (typeof value[custom] === 'function' && value[custom] !== exports.inspect) {
			const shown = value[custom](this.settings.depth - depth, this.settings, exports.inspect);
			return typeof shown === 'string' ? shown : this.raw(shown, depth);
		}
		return this.object(value, depth);
	}

	string(text) {
		const most = this.settings.maxStringLength ?? Infinity;
		const rest = text.length - most;
		if (rest > 0) {
			text = text.slice(0, most);
		}
		const quote = !text.includes("'") ? "'" : !text.includes('"') ? '"' : !text.includes('`') ? '`' : "'";
		const escaped = text.replace(/[\\\n\r\t\b\f\v\x00-\x1f\x7f]/g, escape);
		return quote + (quote === "'" ? escaped.replaceAll("'", "\\'") : escaped) + quote + (rest > 0 ? `... ${rest} more characters` : '');
	}

	object(value, depth) {
		const kind = classify(value);
		const prefix = this.prefix(value, kind);
		if (kind === 'error' && depth > this.settings.depth) {
			return `[${errorText(value).split('\n')[0]}]`;
		}
		const simple = this.simple(value, kind);
		if (depth > this.settings.depth && simple === undefined) {
			return isArray(value) ? '[Array]' : `[${constructorName(value) ?? 'Object: null prototype'}]`;
		}
		this.parents.push(value);
		const [open, close] = kind === 'list' || kind === 'typed' ? ['[', ']'] : ['{', '}'];
		const entries = [...this.elements(value, kind, depth), ...this.properties(value, kind, depth)];
		this.parents.pop();
		const mark = this.circular.has(value) ? `<ref *${this.circular.get(value)}> ` : '';
		if (simple !== undefined) {
			return mark + (entries.length === 0 ? simple : `${simple} ${this.join('{', entries, '}', depth)}`);
		}
		return mark + prefix + (entries.length === 0 ? open + close : this.join(open, entries, close, depth));
	}

	// simple is the text of values that need no braces of their own.
	simple(value, kind) {
		switch (kind) {
		case 'function': return functionText(value);
		case 'error': return errorText(value);
		case 'regexp': return RegExp.prototype.toString.call(value);
		case 'date': return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString();
		case 'boxed': return `[${constructorName(value)}: ${this.raw(value.valueOf(), 1)}]`;
		case 'weak': return `${constructorName(value)} { <items unknown> }`;
		case 'promise': return 'Promise { <pending or settled> }';
		}
		return undefined;
	}

	prefix(value, kind) {
		const name = constructorName(value);
		switch (kind) {
		case 'list': return name === 'Array' ? '' : `${name}(${value.length}) `;
		case 'typed': return `${name}(${value.length}) `;
		case 'map': case 'set': return `${name}(${value.size}) `;
		case 'buffer': return `${name} `;
		}
		const tag = value[Symbol.toStringTag];
		const shownTag = typeof tag === 'string' && tag !== '' && tag !== name ? `[${tag}] ` : '';
		return name === 'Object' && shownTag === '' ? '' : `${name ?? '[Object: null prototype]'} ${shownTag}`;
	}

	elements(value, kind, depth) {
		const most = this.settings.maxArrayLength ?? Infinity;
		switch (kind) {
		case 'list': case 'typed': return this.list(value, depth, most);
		case 'map': return this.collection(value, most, ([k, v]) => `${this.show(k, depth + 1)} => ${this.show(v, depth + 1)}`);
		case 'set': return this.collection(value, most, (v) => this.show(v, depth + 1));
		case 'buffer': return [`byteLength: ${value.byteLength}`];
		}
		return [];
	}

	list(value, depth, most) {
		const out = [];
		const last = Math.min(value.length, most);
		let i = 0;
		for (; i < last && this.budget > 0; i++) {
			if (i in value) {
				out.push(this.show(value[i], depth + 1));
				continue;
			}
			let holes = 1;
			while (i + 1 < last && !((i + 1) in value)) {
				i++;
				holes++;
			}
			out.push(`<${holes} empty item${holes > 1 ? 's' : ''}>`);
		}
		return withRest(out, value.length - i);
	}

	collection(value, most, show) {
		const out = [];
		for (const item of value) {
			if (out.length >= most || this.budget <= 0) {
				break;
			}
			out.push(show(item));
		}
		return withRest(out, value.size - out.length);
	}

	properties(value, kind, depth) {
		const out = [];
		const keys = ownKeys(value).filter((key) => this.wanted(value, key, kind));
		if (this.settings.sorted) {
			keys.sort();
		}
		for (const key of keys) {
			if (this.budget <= 0) {
				return withRest(out, keys.length - out.length);
			}
			out.push(`${keyText(key, this)}: ${this.property(value, key, depth)}`);
		}
		return out;
	}

	wanted(value, key, kind) {
		if ((kind === 'list' || kind === 'typed') && typeof key === 'string' && (key === 'length' || /^\d+$/.test(key))) {
			return false;
		}
		if (kind === 'error' && (key === 'stack' || key === 'message' || key === 'hint' && value.hint === '' || key === 'server' && value.server === '')) {
			return false;
		}
		return this.settings.showHidden || getOwnPropertyDescriptor(value, key)?.enumerable === true || kind === 'error' && (key === 'cause' || key === 'errors');
	}

	property(value, key, depth) {
		const { get, set } = getOwnPropertyDescriptor(value, key) ?? {};
		if (get !== undefined) {
			return set === undefined ? '[Getter]' : '[Getter/Setter]';
		}
		return set === undefined ? this.show(value[key], depth + 1) : '[Setter]';
	}

	join(open, entries, close, depth) {
		const length = entries.reduce((sum, e) => sum + e.length + 2, open.length);
		if (length + depth * 2 <= this.settings.breakLength - 4 && !entries.some((e) => e.includes('\n'))) {
			return `${open} ${entries.join(', ')} ${close}`;
		}
		const indent = '  '.repeat(depth + 1);
		if (open === '[' && entries.length > 6 && entries.every((e) => e.length <= 6 || e.startsWith('...'))) {
			return `${open}\n${indent}${columns(entries, this.settings.breakLength - indent.length).join(`\n${indent}`)}\n${'  '.repeat(depth)}${close}`;
		}
		return `${open}\n${indent}${entries.join(`,\n${indent}`)}\n${'  '.repeat(depth)}${close}`;
	}
}

function columns(entries, width) {
	const lines = [];
	let line = '';
	entries.forEach((entry, i) => {
		const text = i < entries.length - 1 ? `${entry}, ` : entry;
		if (line !== '' && line.length + text.length > width) {
			lines.push(line.trimEnd());
			line = '';
		}
		line += text;
	});
	lines.push(line);
	return lines;
}

function withRest(entries, rest) {
	if (rest > 0) {
		entries.push(`... ${rest} more item${rest > 1 ? 's' : ''}`);
	}
	return entries;
}

const escapes = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t', '\b': '\\b', '\f': '\\f', '\v': '\\v' };
function escape(c) {
	return escapes[c] ?? `\\x${c.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
}

function keyText(key, inspection) {
	if (typeof key === 'symbol') {
		return `[${key.toString()}]`;
	}
	return plainKey.test(key) ? key : inspection.string(key);
}

function constructorName(value) {
	for (let o = value; o !== null; o = getPrototypeOf(o)) {
		const d = getOwnPropertyDescriptor(o, 'constructor');
		if (typeof d?.value === 'function' && d.value.name !== '') {
			return d.value.name;
		}
	}
	return undefined;
}

function classify(value) {
	if (typeof value === 'function') {
		return 'function';
	}
	if (isArray(value)) {
		return 'list';
	}
	const kinds = [
		['error', Error], ['map', Map], ['set', Set], ['date', Date], ['regexp', RegExp], ['promise', Promise],
		['typed', TypedArray], ['buffer', ArrayBuffer], ['weak', WeakMap], ['weak', WeakSet], ['weak', WeakRef],
		['boxed', String], ['boxed', Number], ['boxed', Boolean],
	];
	return kinds.find(([, type]) => value instanceof type && value !== type.prototype)?.[0] ?? 'object';
}

function functionText(value) {
	const source = Function.prototype.toString.call(value);
	if (/^class\b/.test(source)) {
		return `[class ${value.name || '(anonymous)'}]`;
	}
	const type = value.constructor?.name ?? 'Function';
	return value.name ? `[${type}: ${value.name}]` : `[${type} (anonymous)]`;
}

function errorText(error) {
	const head = `${error.name}: ${error.message}`.replace(/: $/, '');
	const stack = typeof error.stack === 'string' ? error.stack.split('\n').filter((l) => l.trim() !== '' && !l.includes('<eval>') && !l.includes('(native)')) : [];
	return [head, ...stack.filter((l) => !l.startsWith(head))].join('\n');
}

// format is console.log's: a first string may hold %s and the like.
exports.format = function format(args) {
	const rest = [...args];
	let text = '';
	if (typeof rest[0] === 'string') {
		text = rest.shift();
		if (rest.length > 0) {
			text = text.replace(/%[sdifjoOc%]/g, (m) => (m === '%%' ? '%' : rest.length === 0 ? m : directive(m[1], rest.shift())));
		}
	} else if (rest.length > 0) {
		text = exports.inspect(rest.shift());
	}
	for (const arg of rest) {
		text += ` ${typeof arg === 'string' ? arg : exports.inspect(arg)}`;
	}
	return text;
};

function directive(letter, arg) {
	switch (letter) {
	case 's': return typeof arg === 'string' ? arg : typeof arg === 'object' && arg !== null ? exports.inspect(arg, { depth: 0 }) : typeof arg === 'bigint' ? `${arg}n` : String(arg);
	case 'd': return typeof arg === 'bigint' ? `${arg}n` : typeof arg === 'symbol' ? 'NaN' : `${Number(arg)}`;
	case 'i': return typeof arg === 'bigint' ? `${arg}n` : typeof arg === 'symbol' ? 'NaN' : `${parseInt(arg, 10)}`;
	case 'f': return typeof arg === 'symbol' ? 'NaN' : `${parseFloat(arg)}`;
	case 'j': return JSON.stringify(arg);
	case 'c': return '';
	}
	return exports.inspect(arg);
}

// table is console.table's.
exports.table = function table(data, only) {
	const rows = data instanceof Map ? [...data] : data instanceof Set ? [...data].map((v, i) => [i, v]) : Object.entries(data);
	const names = only ?? [...new Set(rows.flatMap(([, row]) => (typeof row === 'object' && row !== null ? Object.keys(row) : [])))];
	const hasValues = rows.some(([, row]) => typeof row !== 'object' || row === null);
	const cell = (v) => exports.inspect(v, { depth: 0 });
	const lines = [['(index)', ...names, ...(hasValues ? ['Values'] : [])]];
	for (const [index, row] of rows) {
		const isRow = typeof row === 'object' && row !== null;
		const cells = names.map((n) => (isRow && n in row ? cell(row[n]) : ''));
		lines.push([`${typeof index === 'string' ? index : cell(index)}`, ...cells, ...(hasValues ? [isRow ? '' : cell(row)] : [])]);
	}
	const widths = lines[0].map((_, i) => lines.reduce((w, l) => Math.max(w, l[i].length), 0) + 2);
	const rule = (l, m, r) => l + widths.map((w) => '─'.repeat(w)).join(m) + r;
	const draw = (l) => `│${l.map((c, i) => ` ${c.padEnd(widths[i] - 1)}`).join('│')}│`;
	return [rule('┌', '┬', '┐'), draw(lines[0]), rule('├', '┼', '┤'), ...lines.slice(1).map(draw), rule('└', '┴', '┘')].join('\n');
};
