// The servers as programs see them: a frozen namespace of functions each, made
// when it is first looked at.
'use strict';
const { callee } = require('calls');
const { parse } = JSON;
const { defineProperty, freeze, hasOwn, keys, getPrototypeOf } = Object;
const isArray = Array.isArray;
const plain = Object.prototype;

const byModule = { __proto__: null };
const byName = { __proto__: null };
exports.byModule = byModule;

// arrange makes the arguments object of a call: a single plain object is it,
// anything else is positional.
function arrange(f, args) {
	if (args.length === 0 || args.length === 1 && args[0] === undefined) {
		return {};
	}
	if (args.length === 1 && isPlain(args[0])) {
		return args[0];
	}
	if (args.length > f.params.length) {
		throw new TypeError(`${f.name} takes ${f.params.length === 0 ? 'no arguments' : `one object, or in this order: ${f.params.join(', ')}`}; ${args.length} were given`);
	}
	const named = {};
	for (let i = 0; i < args.length; i++) {
		if (args[i] !== undefined) {
			defineProperty(named, f.params[i], { value: args[i], enumerable: true });
		}
	}
	return named;
}

function isPlain(value) {
	if (typeof value !== 'object' || value === null || isArray(value)) {
		return false;
	}
	const prototype = getPrototypeOf(value);
	return prototype === null || prototype === plain || getPrototypeOf(prototype) === null;
}

// functionsOf gives the functions of a server, which some runtimes decode only now.
function functionsOf(index) {
	const functions = native.functions(index);
	return typeof functions === 'string' ? parse(functions) : functions;
}

const toolOf = new WeakMap(); // function of a namespace → the tool that it calls
const getTool = Function.prototype.call.bind(WeakMap.prototype.get);

function functionOf(server, f) {
	const send = callee(server, f.tool);
	const call = (...args) => send(arrange(f, args));
	toolOf.set(call, { server, f });
	return defineProperty(call, 'name', { value: f.name });
}

// argumentsOf gives the tool that a function calls, with the arguments object of a call; undefined
// if it is no function of a server.
exports.argumentsOf = function argumentsOf(call, args) {
	const tool = typeof call === 'function' ? getTool(toolOf, call) : undefined;
	return tool && { server: tool.server, tool: tool.f.tool, args: arrange(tool.f, args) };
};

// helpers are what programs look for beside tools in any module of servers.
exports.helpers = () => ({
	callMCPTool: globalThis.callMCPTool, searchTools: globalThis.searchTools, pages: require('pages').pages, approve: require('approve').approve, sleep: globalThis.sleep, ToolError: globalThis.ToolError,
});

// complete adds members that are found by name only, where nothing has the name.
function complete(object, members) {
	const names = keys(members);
	for (let i = 0; i < names.length; i++) {
		if (!hasOwn(object, names[i])) {
			defineProperty(object, names[i], { value: members[names[i]] });
		}
	}
	return freeze(object);
}

exports.complete = complete;

// build makes the namespace of a server. The server itself is in it too, since
// programs write import { crm } from './servers/crm'.
function build(index, server, name) {
	const namespace = {};
	const functions = functionsOf(index);
	for (let i = 0; i < functions.length; i++) {
		const f = functions[i];
		f.params ??= [];
		defineProperty(namespace, f.name, { value: functionOf(server, f), enumerable: true });
	}
	return complete(namespace, { default: namespace, [name]: namespace, ...exports.helpers() });
}

// toolsByRawName gives a function for ./servers/<module>/<raw name of a tool>.
function toolModule(entry, name) {
	const functions = functionsOf(entry.index);
	for (let i = 0; i < functions.length; i++) {
		const f = functions[i];
		if (f.name === name || f.tool === name) {
			const call = entry.namespace()[f.name];
			return freeze({ [f.name]: call, default: call });
		}
	}
	return undefined;
}
exports.toolModule = toolModule;

// installNamespaces makes every server known, and a global where its name is free.
exports.installNamespaces = function installNamespaces(list) {
	list.forEach(({ server, global, modules }, index) => {
		let built;
		const entry = { index, namespace: () => (built ??= build(index, server, global || modules[0])) };
		for (const module of modules) {
			byModule[module] ??= entry;
		}
		byName[global || modules[0] || server] = entry;
		if (global && (!(global in globalThis) || global === 'path' || global === 'pages' || global === 'approve')) { // a server counts before these
			lazy(globalThis, global, entry.namespace, true);
		}
	});
};

// lazy defines a property whose value is made when it is first used.
function lazy(object, name, make, writable) {
	defineProperty(object, name, {
		get() {
			const value = make();
			defineProperty(object, name, { value, writable, enumerable: !writable, configurable: true });
			return value;
		},
		set: writable ? (value) => defineProperty(object, name, { value, writable, configurable: true }) : undefined,
		enumerable: !writable,
		configurable: true,
	});
}
exports.lazy = lazy;

// all is the namespace of all servers by name.
let everything;
exports.all = function all() {
	if (everything === undefined) {
		everything = {};
		for (const name in byName) {
			defineProperty(everything, name, { get: byName[name].namespace, enumerable: true });
		}
		complete(everything, { default: everything, ...exports.helpers() });
	}
	return everything;
};
