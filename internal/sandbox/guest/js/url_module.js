// node:url.
'use strict';
const { URL, URLSearchParams } = require('url');

exports.module = {
	URL, URLSearchParams,
	fileURLToPath: (url) => decodeURIComponent(new URL(url).pathname),
	pathToFileURL: (path) => new URL(`file://${path.split('/').map(encodeURIComponent).join('/')}`),
	format: (url) => `${url.href ?? url}`,
};
