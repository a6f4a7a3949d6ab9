// Stack traces with the frames of the program alone, in the form that QuickJS
// gives them: "    at name (file:line:column)".
'use strict';
const { defineProperty } = Object;
const deepest = 50; // frames that an error remembers

// What stands before the code of a program, on its first line, and after it.
// Positions in the first line are corrected for it. Bun cannot be rid of its
// global; at least the name means nothing.
const bun = native.runtime === 'bun';
const head = `'use strict';(${bun ? 'function (Bun) { return ' : ''}async function (__import, __exports, __meta) {`;
exports.head = head;
exports.tail = `\n}${bun ? ' })()' : ')'}`;

let file = '';
const skills = { __proto__: null }; // the files of skills
exports.setFile = (name) => { file = name; };
exports.addFile = (name) => { skills[name] = true; };
exports.isSkill = (name) => name in skills;

const column = (line, at) => (line === 1 && at > head.length ? at - head.length : at);
exports.column = column;

function frame(site) {
	const name = site.getFileName();
	if (name !== file && !(name in skills) || site.isAsync?.()) {
		return '';
	}
	const line = site.getLineNumber();
	return `    at ${site.getFunctionName() || '<anonymous>'} (${name}:${line}:${column(line, site.getColumnNumber())})\n`;
}

function prepareStackTrace(error, sites) {
	let text = '';
	for (let i = 0; i < sites.length; i++) {
		text += frame(sites[i]);
	}
	return text;
}

exports.install = function install() {
	Error.prepareStackTrace = prepareStackTrace; // Bun sees assignments only
	Error.stackTraceLimit = deepest;
	defineProperty(Error, 'prepareStackTrace', { enumerable: false });
};
