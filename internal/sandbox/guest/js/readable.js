// How URLs and Buffers are printed, whoever made the classes.
'use strict';
const custom = Symbol.for('nodejs.util.inspect.custom');

function define(type, method) {
	Object.defineProperty(type.prototype, custom, { value: method, writable: true, configurable: true });
}

exports.readableURLs = function readableURLs(URL, URLSearchParams) {
	define(URL, function (depth, options, inspect) {
		const { href, origin, protocol, username, password, host, hostname, port, pathname, search, searchParams, hash } = this;
		return `URL ${inspect({ href, origin, protocol, username, password, host, hostname, port, pathname, search, searchParams, hash }, options)}`;
	});
	define(URLSearchParams, function (depth, options, inspect) {
		return this.size === 0 ? 'URLSearchParams {}' : `URLSearchParams { ${[...this].map(([n, v]) => `${inspect(n)} => ${inspect(v)}`).join(', ')} }`;
	});
};

exports.readableBuffers = function readableBuffers(Buffer) {
	define(Buffer, function () {
		const most = 50;
		const bytes = Array.from(this.subarray(0, most), (b) => ` ${b.toString(16).padStart(2, '0')}`);
		return `<Buffer${bytes.join('')}${this.length > most ? ` ... ${this.length - most} more bytes` : ''}>`;
	});
};
