// In the place of the module that QuickJS needs.
'use strict';
exports.DOMException = require('platform').DOMException;
