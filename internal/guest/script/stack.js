// Stack traces with the frames of the program alone, in the form that QuickJS
// gives them: "    at name (file:line:column)".
'use strict';
const { defineProperty } = Object;
const deepest = 50; // frames that an error remembers

// What stands before the code of a program, on its first line. Positions there
// are corrected for it.
const head = "'use strict';(async function (__import, __exports, __meta) {";
exports.head = head;
exports.tail = '\n})';

let file = '';
exports.setFile = (name) => { file = name; };

const column = (line, at) => (line === 1 && at > head.length ? at - head.length : at);
exports.column = column;

function frame(site) {
	if (site.getFileName() !== file || site.isAsync?.()) {
		return '';
	}
	const line = site.getLineNumber();
	return `    at ${site.getFunctionName() || '<anonymous>'} (${file}:${line}:${column(line, site.getColumnNumber())})\n`;
}

function prepareStackTrace(error, sites) {
	let text = '';
	for (let i = 0; i < sites.length; i++) {
		text += frame(sites[i]);
	}
	return text;
}

exports.install = function install() {
	defineProperty(Error, 'prepareStackTrace', { value: prepareStackTrace, writable: true, configurable: true });
	defineProperty(Error, 'stackTraceLimit', { value: deepest, writable: true, configurable: true });
};
