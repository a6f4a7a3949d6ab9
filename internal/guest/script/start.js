// The way of one process: ready, one program, the end.
'use strict';
const { process } = globalThis;
native.setImmediate = globalThis.setImmediate;
const frames = require('frames');

const runtime = process.versions.bun ? 'bun' : process.versions.deno ? 'deno' : 'node';
frames.post(frames.kinds.ready, 0, JSON.stringify({ protocol: 1, runtime }), '');
frames.flush();

// The rest in a task of its own: a platform may have things to do when it has
// evaluated the script, and needs its global object for them.
native.setImmediate(() => {
	process.env.TZ = 'UTC';
	require('natives');
	require('missing');
	require('platform');
	const loop = require('loop');
	process.on('unhandledRejection', loop.rejected);
	process.on('rejectionHandled', loop.handled);
	process.on('uncaughtException', loop.thrown);
	require('inspect');
	require('console');

	const start = frames.read();
	if (start === null || start.kind !== frames.kinds.start) {
		process.exit(0);
	}
	loop.run(start);
});
