// The time since the process started, in milliseconds.
'use strict';
const { performance } = globalThis;
const { now } = performance;
const { apply } = Reflect;
const none = [];

exports.now = () => apply(now, performance, none);
