// In the place of the module that QuickJS needs.
'use strict';
const { Buffer } = require('platform');
const { readableBuffers } = require('readable');

readableBuffers(Buffer);
exports.Buffer = Buffer;
exports.module = { Buffer, get Blob() { return globalThis.Blob; }, atob: (s) => globalThis.atob(s), btoa: (s) => globalThis.btoa(s) };
