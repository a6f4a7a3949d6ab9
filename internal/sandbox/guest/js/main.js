// What the loop takes from the prelude. It is evaluated before the program
// and keeps its own references to everything it uses, so that a program that
// changes built-in objects changes only what it sees itself.
'use strict';
const { ToolError, describe } = require('errors');
const { callNamed, callOwn, parsed, revived, failed } = require('calls');
const { renderAwaited } = require('values');
const { fire } = require('timers');
const { installNamespaces } = require('servers');
const skills = require('skills');
const { importModule, importNow } = require('modules');
const { installGlobals } = require('globals');
const { completeLanguage } = require('engine');

const exported = { __proto__: null };
const { parse } = JSON;

exports.describe = describe;
exports.parsed = parsed;
exports.revived = revived;
exports.failed = failed;
exports.fire = fire;

exports.importModule = importModule;
exports.exported = exported;

// prepare makes the servers known and gives the program's import.meta.
exports.prepare = function prepare(namespaces, file, modules) {
	installNamespaces(parse(namespaces));
	skills.install(parse(modules), importModule);
	return { url: `file:///${file}`, filename: `/${file}`, dirname: '/', main: true };
};

// startLater calls the function that a program is, once the skills are there that it
// finds as members of a global.
exports.startLater = async function startLater(program, meta) {
	await skills.installGlobal();
	return await program(importModule, exported, meta);
};

// preload evaluates a module of the prelude ahead of its use.
exports.preload = function preload(name) { require(name); };

// finish turns what the function returned into the JSON of the program's value,
// or undefined if it has none. It awaits before it returns: to return a promise
// would call its then, which may be the program's own.
exports.finish = async function finish(value) {
	if (value === undefined && 'default' in exported) {
		const main = exported.default;
		value = await (typeof main === 'function' ? main() : main);
	}
	return await renderAwaited(value);
};

const callByName = callNamed();

completeLanguage();
installGlobals({
	ToolError,
	require: importNow,
	callMCPTool: (name, args, options) => callByName(typeof name === 'string' ? name : `${name}`, args, options?.noCache),
	exec: (command, args, options) => callOwn('exec', { command: `${command}`, args: [...args ?? []].map((a) => `${a}`), stdin: options?.stdin === undefined ? undefined : `${options.stdin}` }),
	searchTools: (query, detail, options) => callOwn('search_tools', { query, ...(detail && { detail_level: detail }), ...options }),
});
