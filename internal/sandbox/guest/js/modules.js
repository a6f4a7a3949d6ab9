// Modules that programs can import. None of them is a file.
'use strict';
const servers = require('servers');
const skills = require('skills');
const { keys } = Object;

const builtin = {
	__proto__: null,
	'fs/promises': () => require('fs').promises,
	fs: () => require('fs').fs,
	path: () => require('path').path,
	'path/posix': () => require('path').path,
	url: () => require('url_module').module,
	util: () => require('util').module,
	crypto: () => require('crypto').module,
	buffer: () => require('buffer').module,
	timers: () => require('timers_module').callbacks,
	'timers/promises': () => require('timers_module').promises,
	assert: () => require('assert').assert,
	'assert/strict': () => require('assert').assert,
	readline: () => require('streams').readline,
	'readline/promises': () => require('streams').readline,
	stream: () => require('stream_module').module,
	'stream/promises': () => require('stream_module').promises,
	events: () => require('emitter').module,
	os: () => require('os').module,
	process: () => require('process').module,
	perf_hooks: () => ({ performance: globalThis.performance }),
};

// resolve finds a module, or gives undefined.
function resolve(specifier) {
	const name = specifier.replace(/^node:/, '');
	if (builtin[name] !== undefined) {
		return withDefault(builtin[name]());
	}
	const path = specifier.replace(/^(?:\.{1,2}\/|\/)+/, '').replace(/\.(?:[cm]?[jt]s|d\.ts)$/, '').replace(/\/index$/, '').replace(/^\.claude\/mcp-api(?=\/|$)/, 'servers');
	if (path === 'client' || path === 'servers/client') {
		return withDefault(servers.helpers());
	}
	if (path === 'servers') {
		return servers.all();
	}
	if (path === 'skills') {
		return skills.all();
	}
	if (path.startsWith('skills/')) {
		const skill = skills.named(path.slice('skills/'.length));
		return skill && skills.load(skill);
	}
	const [, module, tool] = path.match(/^servers\/([^/]+)(?:\/([^/]+))?$/) ?? [];
	const entry = servers.byModule[module];
	if (entry === undefined) {
		return undefined;
	}
	return tool === undefined ? entry.namespace() : tool === 'client' ? withDefault(servers.helpers()) : servers.toolModule(entry, tool);
}

// withDefault gives a module object whose default is the module itself.
const made = new WeakMap();
function withDefault(exported) {
	if (!made.has(exported)) {
		made.set(exported, 'default' in exported ? exported : { __proto__: null, ...exported, default: exported });
	}
	return made.get(exported);
}

function find(specifier) {
	const module = resolve(`${specifier}`);
	if (module !== undefined) {
		return module;
	}
	const known = keys(servers.byModule).map((m) => `./servers/${m}`);
	const shown = known.slice(0, 20).join(', ') + (known.length > 20 ? ` and ${known.length - 20} more` : '');
	const error = new Error(`there is no module ${JSON.stringify(`${specifier}`)}; there are ${shown ? `${shown}, ` : ''}${keys(builtin).map((m) => `node:${m}`).join(', ')}`);
	error.code = 'ERR_MODULE_NOT_FOUND';
	throw error;
}

exports.importModule = async function importModule(specifier) {
	return find(specifier);
};

exports.importNow = function importNow(specifier) {
	const module = find(specifier);
	if (typeof module.then === 'function') {
		throw new Error(`a skill is imported: import { f } from ${JSON.stringify(`${specifier}`)}`);
	}
	return module.default ?? module;
};
