// The pending timers of a program: a heap by the time at which they are due, and
// in the order of their making.
'use strict';
const heap = [];
const byID = { __proto__: null };
let size = 0, made = 0;

const before = (a, b) => a.due < b.due || a.due === b.due && a.seq < b.seq;

function put(entry, at) {
	heap[at] = entry;
	entry.at = at;
}

// settle moves an entry to where it belongs, given a place that is free.
function settle(entry, at) {
	while (at > 0 && before(entry, heap[at - 1 >> 1])) {
		put(heap[at - 1 >> 1], at);
		at = at - 1 >> 1;
	}
	for (;;) {
		let child = 2 * at + 1;
		if (child + 1 < size && before(heap[child + 1], heap[child])) {
			child++;
		}
		if (child >= size || !before(heap[child], entry)) {
			break;
		}
		put(heap[child], at);
		at = child;
	}
	put(entry, at);
}

exports.add = function add(id, due) {
	remove(id);
	const entry = { __proto__: null, id, due, seq: ++made, at: 0 };
	byID[id] = entry;
	settle(entry, size++);
};

function remove(id) {
	const entry = byID[id];
	if (entry === undefined) {
		return;
	}
	delete byID[id];
	const last = heap[--size];
	heap[size] = undefined;
	if (last !== entry) {
		settle(last, entry.at);
	}
}
exports.remove = remove;

// next is when the next timer is due, or Infinity.
exports.next = () => (size === 0 ? Infinity : heap[0].due);

// take removes the next timer if it is due and gives its id, else 0.
exports.take = function take(time) {
	if (size === 0 || heap[0].due > time) {
		return 0;
	}
	const { id } = heap[0];
	remove(id);
	return id;
};
