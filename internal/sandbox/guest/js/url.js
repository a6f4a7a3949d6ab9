// URL and URLSearchParams of the web.
'use strict';
const { parseHost } = require('url_host');
const { readableURLs } = require('readable');
const ports = { __proto__: null, 'http:': '80', 'https:': '443', 'ws:': '80', 'wss:': '443', 'ftp:': '21', 'file:': '' };

// escape percent-encodes the characters of text that match pattern.
function escape(text, pattern) {
	return text.toWellFormed().replace(pattern, (c) => (c.charCodeAt(0) < 128 ? percent(c.charCodeAt(0)) : encodeURIComponent(c)));
}
const percent = (code) => `%${code.toString(16).toUpperCase().padStart(2, '0')}`;

const inFragment = /[\x00-\x20"<>`\x7f]|[^\x00-\x7f]+/gu;
const inQuery = /[\x00-\x20"#<>\x7f]|[^\x00-\x7f]+/gu;
const inSpecialQuery = /[\x00-\x20"#'<>\x7f]|[^\x00-\x7f]+/gu;
const inPath = /[\x00-\x20"#<>?^`{}\x7f]|[^\x00-\x7f]+/gu;
const inUser = /[\x00-\x20"#/:;<=>?@[\\\]^`{|}\x7f]|[^\x00-\x7f]+/gu;
const inOpaque = /[\x00-\x1f\x7f]|[^\x00-\x7f]+/gu;

const isSpecial = (protocol) => protocol in ports;

function cleanPath(path, special) {
	const out = [];
	const parts = (special ? path.replaceAll('\\', '/') : path).split('/');
	parts.forEach((part, i) => {
		const plain = part.replace(/%2e/gi, '.');
		const last = i === parts.length - 1;
		if (plain === '..') {
			out.pop();
		}
		if (plain === '..' || plain === '.') {
			if (last) {
				out.push('');
			}
			return;
		}
		out.push(escape(part, inPath));
	});
	return out;
}

function absolutePath(path, special) {
	if (path === '' && !special) {
		return '';
	}
	return `/${cleanPath(path.replace(special ? /^[/\\]/ : /^\//, ''), special).join('/')}`;
}

function parsePort(text, protocol) {
	if (!/^\d*$/.test(text) || +text > 65535) {
		throw new TypeError('Invalid URL: the port is not valid');
	}
	return text === '' || `${+text}` === ports[protocol] ? '' : `${+text}`;
}

function parseAuthority(record, authority) {
	const at = authority.lastIndexOf('@');
	if (at >= 0) {
		const [, user, password = ''] = /^([^:]*)(?::(.*))?$/s.exec(authority.slice(0, at));
		record.username = escape(user, inUser);
		record.password = escape(password, inUser);
	}
	const [, host, port = ''] = /^(\[[^\]]*\]|[^:]*)(?::(.*))?$/s.exec(authority.slice(at + 1)) ?? [];
	if (host === undefined) {
		throw new TypeError('Invalid URL');
	}
	record.host = isSpecial(record.protocol) ? parseHost(host) : escape(host, inOpaque);
	record.port = parsePort(port, record.protocol);
}

function parseAbsolute(record, rest) {
	const special = isSpecial(record.protocol);
	const file = record.protocol === 'file:';
	if (special && !file) {
		const [, authority, path] = /^[/\\]*([^/\\]*)(.*)$/s.exec(rest);
		parseAuthority(record, authority);
		record.path = absolutePath(path, true);
		return;
	}
	const withHost = (file ? /^[/\\]{2}([^/\\]*)(.*)$/s : /^\/\/([^/]*)(.*)$/s).exec(rest);
	if (withHost !== null) {
		const [, authority, path] = withHost;
		if (file) {
			record.host = authority === '' || authority.toLowerCase() === 'localhost' ? '' : parseHost(authority);
		} else {
			parseAuthority(record, authority);
		}
		record.path = absolutePath(path, special);
		return;
	}
	if (file || rest.startsWith('/')) {
		record.host = file ? '' : null;
		record.path = absolutePath(rest, special);
		return;
	}
	record.opaque = true;
	record.path = escape(rest, inOpaque);
}

function parseRelative(record, rest, base, hasQuery) {
	if (base.opaque) {
		throw new TypeError('Invalid URL: the base cannot be a base');
	}
	const special = isSpecial(base.protocol);
	if ((special ? /^[/\\]{2}/ : /^\/\//).test(rest)) {
		parseAbsolute(record, rest);
		return;
	}
	const { username, password, host, port } = base;
	Object.assign(record, { username, password, host, port });
	if (rest === '') {
		record.path = base.path;
		record.query = hasQuery ? record.query : base.query;
	} else if (rest.startsWith('/') || special && rest.startsWith('\\')) {
		record.path = absolutePath(rest, special);
	} else {
		record.path = absolutePath(base.path.replace(/[^/]*$/, '') + rest, special);
	}
}

// parse makes a record of what a URL consists of.
function parse(input, base) {
	const text = input.replace(/^[\x00-\x20]+|[\x00-\x20]+$/g, '').replace(/[\t\n\r]/g, '');
	const [, main, query, fragment] = /^([^?#]*)(?:\?([^#]*))?(?:#(.*))?$/s.exec(text);
	const [, scheme, rest] = /^([a-zA-Z][a-zA-Z0-9+.-]*:)(.*)$/s.exec(main) ?? [];
	const record = { protocol: scheme?.toLowerCase() ?? base?.protocol, username: '', password: '', host: null, port: '', path: '', opaque: false, query: null, fragment: null };
	if (record.protocol === undefined) {
		throw new TypeError(`Invalid URL: ${JSON.stringify(input)} has no scheme, and there is no base`);
	}
	if (query !== undefined) {
		record.query = escape(query, isSpecial(record.protocol) ? inSpecialQuery : inQuery);
	}
	if (fragment !== undefined) {
		record.fragment = escape(fragment, inFragment);
	}
	const relative = scheme === undefined || base !== undefined && isSpecial(record.protocol) && record.protocol === base.protocol && !/^[/\\]/.test(rest);
	if (relative) {
		parseRelative(record, rest ?? main, base, query !== undefined);
	} else {
		parseAbsolute(record, rest);
	}
	return record;
}

function serialize(r) {
	const user = r.username !== '' || r.password !== '' ? `${r.username}${r.password !== '' ? `:${r.password}` : ''}@` : '';
	const authority = r.host !== null ? `//${user}${r.host}${r.port !== '' ? `:${r.port}` : ''}` : r.path.startsWith('//') ? '/.' : '';
	return r.protocol + authority + r.path + (r.query !== null ? `?${r.query}` : '') + (r.fragment !== null ? `#${r.fragment}` : '');
}

class URL {
	#record;
	#params = null;

	constructor(url, base) {
		this.#record = parse(`${url}`, base === undefined ? undefined : parse(`${base}`));
	}

	static canParse(url, base) { return URL.parse(url, base) !== null; }
	static parse(url, base) {
		try {
			return new URL(url, base);
		} catch {
			return null;
		}
	}

	get href() { return serialize(this.#record); }
	set href(value) {
		this.#record = parse(`${value}`);
		this.#refresh();
	}
	get origin() {
		const { protocol, host, port, path } = this.#record;
		if (protocol === 'blob:') {
			const inner = URL.parse(path)?.origin ?? 'null';
			return inner.startsWith('http') ? inner : 'null';
		}
		return isSpecial(protocol) && protocol !== 'file:' ? `${protocol}//${host}${port !== '' ? `:${port}` : ''}` : 'null';
	}
	get protocol() { return this.#record.protocol; }
	set protocol(value) {
		const [scheme] = /^[a-zA-Z][a-zA-Z0-9+.-]*/.exec(`${value}`) ?? [];
		if (scheme !== undefined && isSpecial(`${scheme.toLowerCase()}:`) === isSpecial(this.#record.protocol)) {
			this.#record.protocol = `${scheme.toLowerCase()}:`;
			this.#record.port = parsePort(this.#record.port, this.#record.protocol);
		}
	}
	get username() { return this.#record.username; }
	set username(value) { this.#record.username = escape(`${value}`, inUser); }
	get password() { return this.#record.password; }
	set password(value) { this.#record.password = escape(`${value}`, inUser); }
	get host() { return (this.#record.host ?? '') + (this.#record.port !== '' ? `:${this.#record.port}` : ''); }
	set host(value) { this.#change({ username: '', password: '', port: '' }, (r) => parseAuthority(r, `${value}`)); }
	get hostname() { return this.#record.host ?? ''; }
	set hostname(value) { this.#change({}, (r) => { r.host = isSpecial(r.protocol) ? parseHost(`${value}`) : escape(`${value}`, inOpaque); }); }
	get port() { return this.#record.port; }
	set port(value) { this.#change({}, (r) => { r.port = parsePort(/^\d*/.exec(`${value}`)[0], r.protocol); }); }
	get pathname() { return this.#record.path; }
	set pathname(value) {
		if (!this.#record.opaque) {
			this.#record.path = absolutePath(`${value}`, isSpecial(this.#record.protocol));
		}
	}
	get search() { return this.#record.query ? `?${this.#record.query}` : ''; }
	set search(value) {
		const text = `${value}`.replace(/^\?/, '');
		this.#record.query = text === '' ? null : escape(text, isSpecial(this.#record.protocol) ? inSpecialQuery : inQuery);
		this.#refresh();
	}
	get hash() { return this.#record.fragment ? `#${this.#record.fragment}` : ''; }
	set hash(value) {
		const text = `${value}`.replace(/^#/, '');
		this.#record.fragment = text === '' ? null : escape(text, inFragment);
	}
	get searchParams() {
		this.#params ??= linked(this.#record.query ?? '', (text) => { this.#record.query = text === '' ? null : text; });
		return this.#params;
	}
	toString() { return this.href; }
	toJSON() { return this.href; }

	// change sets parts of the URL, or nothing if they are not valid.
	#change(reset, set) {
		const { username, password } = this.#record;
		const changed = { ...this.#record, ...reset };
		try {
			set(changed);
		} catch {
			return;
		}
		this.#record = { ...changed, username, password };
	}

	#refresh() {
		if (this.#params !== null) {
			reload(this.#params, this.#record.query ?? '');
		}
	}
}

function encodeForm(text) {
	return escape(`${text}`, /[^A-Za-z0-9*._ -]+?/gu).replaceAll(' ', '+');
}

function decodeForm(text) {
	const spaced = text.replaceAll('+', ' ');
	try {
		return decodeURIComponent(spaced);
	} catch {
		const bytes = Uint8Array.from([...spaced].flatMap((c) => [...new TextEncoder().encode(c)]));
		const raw = String.fromCharCode(...bytes).replace(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(parseInt(hex, 16)));
		return new TextDecoder().decode(Uint8Array.from(raw, (c) => c.charCodeAt(0)));
	}
}

function pairsOf(init) {
	if (typeof init === 'string') {
		return init.replace(/^\?/, '').split('&').filter((p) => p !== '').map((p) => {
			const [, key, value = ''] = /^([^=]*)=?(.*)$/s.exec(p);
			return [decodeForm(key), decodeForm(value)];
		});
	}
	if (init == null) {
		return [];
	}
	const entries = typeof init[Symbol.iterator] === 'function' ? [...init] : Object.entries(init);
	return entries.map((pair) => {
		const [key, value, ...more] = pair;
		if (value === undefined && !(1 in pair) || more.length > 0) {
			throw new TypeError('each pair of URLSearchParams has a name and a value');
		}
		return [`${key}`, `${value}`];
	});
}

class URLSearchParams {
	#pairs;
	#changed = () => {};

	constructor(init = '') {
		this.#pairs = init instanceof URLSearchParams ? init.#pairs.map((p) => [...p]) : pairsOf(typeof init === 'object' ? init : `${init}`);
	}

	static linked(query, changed) {
		const params = new URLSearchParams(query);
		params.#changed = () => changed(params.toString());
		return params;
	}
	static reload(params, query) { params.#pairs = pairsOf(query); }

	get size() { return this.#pairs.length; }
	append(name, value) {
		this.#pairs.push([`${name}`, `${value}`]);
		this.#changed();
	}
	delete(name, value) {
		this.#pairs = this.#pairs.filter(([n, v]) => n !== `${name}` || value !== undefined && v !== `${value}`);
		this.#changed();
	}
	get(name) { return this.#pairs.find(([n]) => n === `${name}`)?.[1] ?? null; }
	getAll(name) { return this.#pairs.filter(([n]) => n === `${name}`).map(([, v]) => v); }
	has(name, value) { return this.#pairs.some(([n, v]) => n === `${name}` && (value === undefined || v === `${value}`)); }
	set(name, value) {
		const at = this.#pairs.findIndex(([n]) => n === `${name}`);
		if (at < 0) {
			this.append(name, value);
			return;
		}
		this.#pairs = this.#pairs.filter(([n], i) => i === at || n !== `${name}`);
		this.#pairs[at] = [`${name}`, `${value}`];
		this.#changed();
	}
	sort() {
		this.#pairs.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
		this.#changed();
	}
	forEach(callback, self) {
		for (const [name, value] of this.#pairs) {
			callback.call(self, value, name, this);
		}
	}
	*entries() { yield* this.#pairs.map((p) => [...p]); }
	*keys() { yield* this.#pairs.map(([name]) => name); }
	*values() { yield* this.#pairs.map(([, value]) => value); }
	[Symbol.iterator]() { return this.entries(); }
	toString() { return this.#pairs.map(([name, value]) => `${encodeForm(name)}=${encodeForm(value)}`).join('&'); }
}
const { linked, reload } = URLSearchParams;
delete URLSearchParams.linked;
delete URLSearchParams.reload;

readableURLs(URL, URLSearchParams);
for (const type of [URL, URLSearchParams]) {
	Object.defineProperty(type.prototype, Symbol.toStringTag, { value: type.name, configurable: true });
	exports[type.name] = type;
}
