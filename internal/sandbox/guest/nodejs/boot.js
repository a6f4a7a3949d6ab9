// Stands after the table of all modules and evaluates the first.
const native = { __proto__: null, load }, loaded = { __proto__: null };

function require(name) {
	if (!(name in loaded)) {
		loaded[name] = { __proto__: null };
		modules[name](require, loaded[name], native);
	}
	return loaded[name];
}
require('start');
