// In the place of the module that QuickJS needs.
'use strict';
const { DOMException, structuredClone } = require('platform');

exports.DOMException = DOMException;
exports.structuredClone = structuredClone;
