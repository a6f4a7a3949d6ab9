// In the place of the module that QuickJS needs.
'use strict';
const { URL, URLSearchParams } = require('platform');
const { readableURLs } = require('readable');

readableURLs(URL, URLSearchParams);
exports.URL = URL;
exports.URLSearchParams = URLSearchParams;
