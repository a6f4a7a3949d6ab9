// The way of one process: ready, one program, the end.
'use strict';
const { process } = globalThis;
native.setImmediate = globalThis.setImmediate;
native.runtime = process.versions.bun ? 'bun' : process.versions.deno ? 'deno' : 'node';
const frames = require('frames');
const { exit } = require('exit');

frames.post(frames.kinds.ready, 0, JSON.stringify({ protocol: 1, runtime: native.runtime }), '');
frames.flush();

// The rest in a task of its own: a platform may have things to do when it has
// evaluated the script, and needs its global object for them.
native.setImmediate(() => {
	process.env.TZ = 'UTC';
	require('natives');
	require('missing');
	require('platform');
	require('rejections');
	const loop = require('loop');
	require('warm');

	const start = frames.read();
	if (start === null || start.kind !== frames.kinds.start) {
		exit();
	}
	loop.run(start);
});
