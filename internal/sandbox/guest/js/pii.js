// pii: what can be told of the values that tokens stand for.
'use strict';
const { callOwn } = require('calls');

exports.pii = Object.freeze({
	domain: (token) => callOwn('pii_domain', { token: `${token}` }),
	equals: (token, other) => callOwn('pii_equals', { token: `${token}`, other: `${other}` }),
	mask: (token) => callOwn('pii_mask', { token: `${token}` }),
	country: (token) => callOwn('pii_country', { token: `${token}` }),
	age: (token) => callOwn('pii_age', { token: `${token}` }),
	async sortBy(items, key) {
		const of = typeof key === 'function' ? key : (item) => (key === undefined ? item : item[key]);
		const ranks = await callOwn('pii_ranks', { tokens: items.map((item) => `${of(item)}`) });
		return items.map((item, i) => [item, ranks[i]]).sort((a, b) => a[1] - b[1]).map((pair) => pair[0]);
	},
});
