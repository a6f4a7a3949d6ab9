// The skills that a program imports: modules that came with it. Each is evaluated
// once, when it is first imported.
'use strict';
const { complete } = require('servers');
const { defineProperty, keys } = Object;
const replace = Function.prototype.call.bind(String.prototype.replace);
const toLowerCase = Function.prototype.call.bind(String.prototype.toLowerCase);

const known = { __proto__: null };
let importModule;

// install makes the skills known. find is what they import others with.
exports.install = function install(list, find) {
	importModule = find;
	list.forEach(({ name, global, file }, index) => {
		known[name] = { index, name, global, file, made: undefined };
	});
};

// named is the skill that a path means: a name or an identifier, perhaps of its file.
exports.named = function named(path) {
	const name = replace(replace(path, /\/skill$/, ''), /_/g, '-');
	return known[name] ?? known[toLowerCase(replace(name, /[A-Z]/g, (letter) => `-${letter}`))];
};

// load gives the promise of a skill's module.
exports.load = function load(skill) { return skill.made ??= evaluate(skill); };

async function evaluate({ index, file }) {
	const own = { __proto__: null, names: {} };
	await native.skill(index)(importModule, own, { url: `file:///${file}`, filename: `/${file}`, dirname: '/', main: false });
	const module = {};
	for (const name of keys(own.names)) {
		defineProperty(module, name, { get: own.names[name], enumerable: true });
	}
	if ('default' in own) {
		defineProperty(module, 'default', { value: own.default, enumerable: true });
	}
	return complete(module, {});
}

// all gives the promise of the module of those that the program names as members
// of skills, by these names.
let everything;
exports.all = function all() { return everything ??= together(); };

async function together() {
	const module = {};
	for (const name of keys(known)) {
		if (known[name].global) {
			defineProperty(module, known[name].global, { value: await exports.load(known[name]), enumerable: true });
		}
	}
	return complete(module, { default: module });
}

// installGlobal makes the global skills, of those that have a name there.
exports.installGlobal = async function installGlobal() {
	defineProperty(globalThis, 'skills', { value: await exports.all(), writable: true, configurable: true });
};
