'use strict';
exports.module = { EOL: '\n', platform: () => 'linux', type: () => 'Linux', arch: () => 'wasm', tmpdir: () => '/workspace', homedir: () => '/workspace', hostname: () => 'sandbox' };
