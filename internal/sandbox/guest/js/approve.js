// approve: asks a person once about several calls that the program is going to make.
'use strict';
const { approver } = require('calls');
const { argumentsOf } = require('servers');

const ask = approver();

// approve takes a list of calls, each [tool, arguments] or { tool, arguments }, or a tool and the
// arguments of each of its calls.
exports.approve = function approve(purpose, calls, ...rest) {
	let list;
	if (typeof calls === 'function' || typeof calls === 'string') {
		const rows = rest.shift();
		list = [...rows].map((args) => callOf(calls, args));
	} else {
		list = [...calls].map((one) => (Array.isArray(one) ? callOf(one[0], one[1]) : callOf(one?.tool, one?.arguments)));
	}
	return ask(`${purpose}`, list, rest[0]?.optional === true);
};

function callOf(tool, args) {
	if (typeof tool === 'string') {
		return { name: tool, args };
	}
	const call = argumentsOf(tool, [args ?? {}]);
	if (call === undefined) {
		throw new TypeError('approve takes calls such as [github.closeIssue, { number: 1 }]: the first is a function of a server, or the name of a tool');
	}
	return call;
}
