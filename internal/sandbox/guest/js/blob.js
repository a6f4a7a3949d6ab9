// Blob and File.
'use strict';
const { codec, view, copy } = require('encoding');
const { Buffer } = require('buffer');

class Blob {
	#bytes;
	#type;

	constructor(parts = [], { type = '' } = {}) {
		this.#bytes = Buffer.concat([...parts].map((p) => (p instanceof Blob ? p.#bytes : typeof p === 'object' ? view(p) : codec().encode(`${p}`))));
		this.#type = `${type}`.toLowerCase();
	}

	get size() { return this.#bytes.length; }
	get type() { return this.#type; }
	async text() { return this.#bytes.toString(); }
	async arrayBuffer() { return copy(this.#bytes); }
	async bytes() { return new Uint8Array(copy(this.#bytes)); }
	toJSON() {
		const text = this.#bytes.toString();
		return { ...this, type: this.#type, size: this.size, ...(text.includes('\ufffd') ? { base64: this.#bytes.toString('base64') } : { text }) };
	}

	slice(start, end, type = '') { return new Blob([Uint8Array.prototype.slice.call(this.#bytes, start, end)], { type }); }
}

class File extends Blob {
	constructor(parts, name, { lastModified = Date.now(), ...options } = {}) {
		super(parts, options);
		this.name = `${name}`;
		this.lastModified = lastModified;
	}
}

exports.Blob = Blob;
exports.File = File;
