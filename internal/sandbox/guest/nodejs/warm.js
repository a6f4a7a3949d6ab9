// Evaluates what most programs use, while a program is waited for.
'use strict';
const { format } = require('inspect');
const { render } = require('values');
const { lossesOf } = require('losses');
const { describe } = require('errors');
require('console');
const { Script } = native.load('node:vm');
const { head, tail } = require('stack');

format(['%s', 'text', { a: [1, 'b', null], m: new Map([[1, new Date(0)]]) }]);
render({ a: [1, 'b', { c: 1n }], d: new Date(0) });
lossesOf({ a: [1, 'b', null] }, () => true);
describe(new TypeError('m'));
new Script(`${head}const {a} = await __import('x'); console.log(a); return [a]${tail}`, { filename: 'warm.ts' }).runInThisContext();
