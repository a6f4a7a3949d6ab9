// state: small values that outlive the program, per session.
'use strict';
const { callOwn } = require('calls');

exports.state = Object.freeze({
	get: (key) => callOwn('state_get', { key: `${key}`, found: true }).then(([value]) => value),
	set: (key, value) => callOwn('state_set', { key: `${key}`, value }),
	delete: (key) => callOwn('state_delete', { key: `${key}` }),
	keys: () => callOwn('state_keys', {}),
});
