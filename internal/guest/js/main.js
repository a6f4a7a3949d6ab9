// What the loop in Go needs: start, settle, fire, finish, render, describe. It
// is evaluated before the program and keeps its own references to everything
// it uses, so that a program that changes built-in objects changes only what it
// sees itself.
'use strict';
const { ToolError, describe } = require('errors');
const { settle, callTool, callOwn } = require('calls');
const { render, awaitInside } = require('values');
const { fire } = require('timers');
const { installNamespaces } = require('servers');
const { importModule, importNow } = require('modules');
const { installGlobals } = require('globals');

const exported = { __proto__: null };
const { parse } = JSON;

exports.describe = describe;
exports.settle = settle;
exports.fire = fire;
exports.render = render;

// start calls the program's function, which gives a promise.
exports.start = function start(program, namespaces, file) {
	installNamespaces(parse(namespaces));
	const meta = { url: `file:///${file}`, filename: `/${file}`, dirname: '/', main: true };
	return program(importModule, exported, meta);
};

// finish turns what the function returned into the program's value.
exports.finish = async function finish(value) {
	if (value === undefined && 'default' in exported) {
		const main = exported.default;
		value = await (typeof main === 'function' ? main() : main);
	}
	return awaitInside(value);
};

installGlobals({
	ToolError,
	require: importNow,
	callMCPTool: (name, args) => callTool('', 'call', { name: `${name}`, arguments: args ?? {} }),
	searchTools: (query, detail, options) => callOwn('search_tools', { query, ...(detail && { detail_level: detail }), ...options }),
});
