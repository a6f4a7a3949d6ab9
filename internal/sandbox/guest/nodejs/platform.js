// What Node, Bun or Deno have of the web, taken from the global object before it
// is cleared.
'use strict';
const { URL, URLSearchParams, TextEncoder, TextDecoder, DOMException, structuredClone, atob, btoa } = globalThis;
const { Buffer } = native.load('node:buffer');

Object.assign(exports, { URL, URLSearchParams, TextEncoder, TextDecoder, DOMException, structuredClone, atob, btoa, Buffer });
