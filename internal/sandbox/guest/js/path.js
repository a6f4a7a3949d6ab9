// node:path. Paths have slashes, and the current directory is /, but see resolve.
'use strict';
function normalizeParts(path, absolute) {
	const out = [];
	for (const part of path.split('/')) {
		if (part === '..' && out.length > 0 && out.at(-1) !== '..') {
			out.pop();
		} else if (part !== '' && part !== '.' && !(part === '..' && absolute)) {
			out.push(part);
		}
	}
	return out.join('/');
}

function check(path) {
	if (typeof path !== 'string') {
		throw new TypeError(`The "path" argument must be of type string. Received ${typeof path}`);
	}
	return path;
}

const isAbsolute = (path) => check(path).startsWith('/');

function normalize(path) {
	const absolute = isAbsolute(path);
	const parts = normalizeParts(path, absolute);
	const tail = parts !== '' && path.endsWith('/') ? '/' : '';
	return (absolute ? '/' : '') + parts + tail || '.';
}

function join(...parts) {
	const path = parts.map(check).filter((p) => p !== '').join('/');
	return path === '' ? '.' : normalize(path);
}

const visible = ['', '..', 'servers', 'skills', 'workspace'];

// resolve makes a path absolute. One that begins with no folder of the tree is
// in the workspace, as for node:fs.
function resolve(...parts) {
	let path = '';
	for (const part of parts.toReversed()) {
		path = check(part) === '' ? path : path === '' ? part : `${part}/${path}`;
		if (part.startsWith('/')) {
			break;
		}
	}
	const rest = normalizeParts(path, true);
	const written = path.split('/').find((part) => part !== '' && part !== '.') ?? '';
	const bare = !path.startsWith('/') && !visible.includes(written) && !visible.includes(normalizeParts(path, false).split('/', 1)[0]);
	return `${bare ? '/workspace' : ''}/${rest}`;
}

function dirname(path) {
	const trimmed = check(path).replace(/\/+$/, '');
	const at = trimmed.lastIndexOf('/');
	if (at < 0) {
		return trimmed === '' && path !== '' ? '/' : '.';
	}
	return trimmed.slice(0, at).replace(/\/+$/, '') || '/';
}

function basename(path, suffix = '') {
	const base = check(path).replace(/\/+$/, '').replace(/^.*\//s, '');
	return suffix !== '' && base !== suffix && base.endsWith(suffix) ? base.slice(0, -suffix.length) : base;
}

function extname(path) {
	const base = basename(path);
	const at = base.lastIndexOf('.');
	return at > 0 && base !== '..' ? base.slice(at) : '';
}

function relative(from, to) {
	const a = resolve(from).split('/').filter(Boolean), b = resolve(to).split('/').filter(Boolean);
	let same = 0;
	while (same < a.length && a[same] === b[same]) {
		same++;
	}
	return [...a.slice(same).map(() => '..'), ...b.slice(same)].join('/');
}

function parse(path) {
	const root = isAbsolute(path) ? '/' : '';
	const base = basename(path), ext = extname(path);
	const dir = path.replace(/\/+$/, '').includes('/') ? dirname(path) : root;
	return { root, dir, base, ext, name: base.slice(0, base.length - ext.length) };
}

function format({ root = '', dir = '', base, name = '', ext = '' }) {
	const file = base || name + (ext && !ext.startsWith('.') ? `.${ext}` : ext);
	return dir === '' ? root + file : dir === root ? dir + file : `${dir}/${file}`;
}

exports.path = { sep: '/', delimiter: ':', isAbsolute, normalize, join, resolve, dirname, basename, extname, relative, parse, format, toNamespacedPath: (p) => p };
exports.path.posix = exports.path;
