// performance: the time since the program started.
'use strict';
const marks = new Map();

exports.performance = {
	timeOrigin: Date.now() - native.now(),
	now: () => native.now(),
	mark(name) {
		marks.set(`${name}`, native.now());
		return { name: `${name}`, entryType: 'mark', startTime: marks.get(`${name}`), duration: 0 };
	},
	measure(name, from, to) {
		const startTime = marks.get(from) ?? 0;
		return { name: `${name}`, entryType: 'measure', startTime, duration: (marks.get(to) ?? native.now()) - startTime };
	},
	clearMarks(name) { name === undefined ? marks.clear() : marks.delete(name); },
	toJSON() { return { timeOrigin: exports.performance.timeOrigin }; },
};
