// What a program's environment has beyond the language's own library. There is
// no network, no process and no environment: fetch and process do not exist.

// ---- Retort

/** Calls a tool by its raw name, server__tool, with an object of arguments. */
declare function callMCPTool<T = any>(name: string, args?: object): Promise<T>;

interface FoundTool {
  /** What a program writes: server.tool */
  name: string;
  server: string;
  tool: string;
  category: string;
  description?: string;
  /** A typed signature, with detail "full". */
  definition?: string;
}

interface SearchOptions {
  detail?: "name" | "description" | "full";
  server?: string;
  category?: string;
  limit?: number;
}

/** Finds tools by what they do. */
declare function searchTools(query: string, detail?: "name" | "description" | "full" | SearchOptions): Promise<FoundTool[]>;

/** Waits. */
declare function sleep(ms: number): Promise<void>;

/** What a failed tool call throws. */
interface ToolError extends Error {
  readonly kind:
    | "tool_error" | "tool_not_found" | "invalid_arguments" | "upstream_gone" | "upstream_timeout" | "tool_changed"
    | "policy" | "limit" | "cancelled" | "internal" | (string & {});
  readonly server: string;
  readonly tool: string;
  readonly hint?: string;
}
interface ToolErrorConstructor {
  new (message?: string, options?: { cause?: unknown; kind?: string; server?: string; tool?: string; hint?: string }): ToolError;
  readonly prototype: ToolError;
}
declare var ToolError: ToolErrorConstructor;

interface State {
  get<T = any>(key: string): Promise<T | undefined>;
  set(key: string, value: any): Promise<void>;
  delete(key: string): Promise<boolean>;
  keys(): Promise<string[]>;
}
/** Small JSON values that outlive the program, per session. */
declare var state: State;

/** The servers by name; each is also a global of that name. */
interface Servers {}
declare var servers: Servers;

// ---- console, timers

interface Console {
  assert(condition?: unknown, ...data: any[]): void;
  count(label?: string): void;
  countReset(label?: string): void;
  debug(...data: any[]): void;
  dir(item?: any, options?: any): void;
  error(...data: any[]): void;
  group(...data: any[]): void;
  groupCollapsed(...data: any[]): void;
  groupEnd(): void;
  info(...data: any[]): void;
  log(...data: any[]): void;
  table(data?: any, columns?: string[]): void;
  time(label?: string): void;
  timeEnd(label?: string): void;
  timeLog(label?: string, ...data: any[]): void;
  trace(...data: any[]): void;
  warn(...data: any[]): void;
}
declare var console: Console;

/** What setTimeout answers; it can be used as a number, too. */
type Timer = number;
declare namespace NodeJS {
  type Timeout = Timer;
  type Timer = number;
}
declare function setTimeout<A extends any[]>(callback: (...args: A) => void, ms?: number, ...args: A): Timer;
declare function setInterval<A extends any[]>(callback: (...args: A) => void, ms?: number, ...args: A): Timer;
declare function setImmediate<A extends any[]>(callback: (...args: A) => void, ...args: A): Timer;
declare function clearTimeout(timer?: Timer | null): void;
declare function clearInterval(timer?: Timer | null): void;
declare function clearImmediate(timer?: Timer | null): void;
declare function queueMicrotask(callback: () => void): void;
declare function structuredClone<T = any>(value: T, options?: { transfer?: any[] }): T;

interface Performance {
  now(): number;
  readonly timeOrigin: number;
}
declare var performance: Performance;

// ---- URLs

interface URLSearchParams {
  readonly size: number;
  append(name: string, value: string): void;
  delete(name: string, value?: string): void;
  get(name: string): string | null;
  getAll(name: string): string[];
  has(name: string, value?: string): boolean;
  set(name: string, value: string): void;
  sort(): void;
  toString(): string;
  forEach(callback: (value: string, key: string, parent: URLSearchParams) => void, thisArg?: any): void;
  entries(): IterableIterator<[string, string]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  [Symbol.iterator](): IterableIterator<[string, string]>;
}
declare var URLSearchParams: {
  new (init?: string | string[][] | Iterable<[string, string]> | Record<string, string> | URLSearchParams): URLSearchParams;
  readonly prototype: URLSearchParams;
};

interface URL {
  hash: string;
  host: string;
  hostname: string;
  href: string;
  readonly origin: string;
  password: string;
  pathname: string;
  port: string;
  protocol: string;
  search: string;
  readonly searchParams: URLSearchParams;
  username: string;
  toString(): string;
  toJSON(): string;
}
declare var URL: {
  new (url: string | URL, base?: string | URL): URL;
  readonly prototype: URL;
  canParse(url: string | URL, base?: string | URL): boolean;
  parse(url: string | URL, base?: string | URL): URL | null;
};

// ---- text and bytes

interface TextEncoder {
  readonly encoding: string;
  encode(input?: string): Uint8Array<ArrayBuffer>;
  encodeInto(source: string, destination: Uint8Array): { read: number; written: number };
}
declare var TextEncoder: { new (): TextEncoder; readonly prototype: TextEncoder };

interface TextDecoder {
  readonly encoding: string;
  readonly fatal: boolean;
  readonly ignoreBOM: boolean;
  decode(input?: ArrayBuffer | ArrayBufferView | null, options?: { stream?: boolean }): string;
}
declare var TextDecoder: {
  new (label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean }): TextDecoder;
  readonly prototype: TextDecoder;
};

declare function atob(data: string): string;
declare function btoa(data: string): string;

type BufferEncoding = "utf8" | "utf-8" | "ascii" | "latin1" | "binary" | "hex" | "base64" | "base64url" | "utf16le" | "utf-16le" | "ucs2";

interface Buffer extends Uint8Array<ArrayBuffer> {
  toString(encoding?: BufferEncoding, start?: number, end?: number): string;
  toJSON(): { type: "Buffer"; data: number[] };
  equals(other: Uint8Array): boolean;
  compare(other: Uint8Array): -1 | 0 | 1;
  write(text: string, offset?: number, length?: number, encoding?: BufferEncoding): number;
  copy(target: Uint8Array, targetStart?: number, start?: number, end?: number): number;
  slice(start?: number, end?: number): Buffer;
  subarray(start?: number, end?: number): Buffer;
  includes(value: string | number | Uint8Array, offset?: number, encoding?: BufferEncoding): boolean;
  indexOf(value: string | number | Uint8Array, offset?: number, encoding?: BufferEncoding): number;
  readUInt8(offset?: number): number;
  readUInt16BE(offset?: number): number;
  readUInt16LE(offset?: number): number;
  readUInt32BE(offset?: number): number;
  readUInt32LE(offset?: number): number;
  readInt8(offset?: number): number;
  readInt16BE(offset?: number): number;
  readInt16LE(offset?: number): number;
  readInt32BE(offset?: number): number;
  readInt32LE(offset?: number): number;
}
interface BufferConstructor {
  readonly prototype: Buffer;
  from(text: string, encoding?: BufferEncoding): Buffer;
  from(data: Uint8Array | readonly number[] | Iterable<number>): Buffer;
  from(data: ArrayBuffer, offset?: number, length?: number): Buffer;
  alloc(size: number, fill?: string | number | Uint8Array, encoding?: BufferEncoding): Buffer;
  allocUnsafe(size: number): Buffer;
  byteLength(data: string | ArrayBuffer | ArrayBufferView, encoding?: BufferEncoding): number;
  compare(a: Uint8Array, b: Uint8Array): -1 | 0 | 1;
  concat(list: readonly Uint8Array[], length?: number): Buffer;
  isBuffer(value: unknown): value is Buffer;
  isEncoding(name: string): name is BufferEncoding;
}
declare var Buffer: BufferConstructor;

interface Crypto {
  randomUUID(): `${string}-${string}-${string}-${string}-${string}`;
  getRandomValues<T extends ArrayBufferView>(array: T): T;
}
declare var crypto: Crypto;

// ---- events, cancellation

interface EventInit {
  bubbles?: boolean;
  cancelable?: boolean;
}
interface Event {
  readonly type: string;
  readonly target: EventTarget | null;
  readonly currentTarget: EventTarget | null;
  readonly bubbles: boolean;
  readonly cancelable: boolean;
  readonly defaultPrevented: boolean;
  readonly timeStamp: number;
  preventDefault(): void;
  stopPropagation(): void;
  stopImmediatePropagation(): void;
}
declare var Event: { new (type: string, init?: EventInit): Event; readonly prototype: Event };

type EventListenerOrObject = ((event: Event) => void) | { handleEvent(event: Event): void };
interface EventTarget {
  addEventListener(type: string, listener: EventListenerOrObject | null, options?: boolean | { once?: boolean; signal?: AbortSignal }): void;
  removeEventListener(type: string, listener: EventListenerOrObject | null, options?: boolean | { capture?: boolean }): void;
  dispatchEvent(event: Event): boolean;
}
declare var EventTarget: { new (): EventTarget; readonly prototype: EventTarget };

interface AbortSignal extends EventTarget {
  readonly aborted: boolean;
  readonly reason: any;
  onabort: ((event: Event) => void) | null;
  throwIfAborted(): void;
}
declare var AbortSignal: {
  readonly prototype: AbortSignal;
  abort(reason?: any): AbortSignal;
  any(signals: Iterable<AbortSignal>): AbortSignal;
  timeout(ms: number): AbortSignal;
};
interface AbortController {
  readonly signal: AbortSignal;
  abort(reason?: any): void;
}
declare var AbortController: { new (): AbortController; readonly prototype: AbortController };

interface DOMException extends Error {
  readonly code: number;
}
declare var DOMException: { new (message?: string, name?: string): DOMException; readonly prototype: DOMException };

// ---- modules

declare module "node:fs/promises" {
  /** A path in the visible tree: workspace/…, servers/…, skills/… */
  export type PathLike = string | URL;
  export type Data = string | ArrayBufferView | ArrayBuffer;
  type Encoding = BufferEncoding | { encoding: BufferEncoding };
  type NoEncoding = { encoding?: null | undefined } | null;

  export interface Stats {
    readonly size: number;
    readonly mtime: Date;
    readonly mtimeMs: number;
    isFile(): boolean;
    isDirectory(): boolean;
    isSymbolicLink(): boolean;
  }
  export interface Dirent {
    readonly name: string;
    readonly parentPath: string;
    isFile(): boolean;
    isDirectory(): boolean;
    isSymbolicLink(): boolean;
  }

  export function readFile(path: PathLike, encoding: Encoding): Promise<string>;
  export function readFile(path: PathLike, options?: NoEncoding): Promise<Buffer>;
  export function writeFile(path: PathLike, data: Data, options?: BufferEncoding | { encoding?: BufferEncoding; flag?: string } | null): Promise<void>;
  export function appendFile(path: PathLike, data: Data, options?: BufferEncoding | { encoding?: BufferEncoding } | null): Promise<void>;
  export function readdir(path: PathLike, options: { withFileTypes: true; recursive?: boolean }): Promise<Dirent[]>;
  export function readdir(path: PathLike, options?: BufferEncoding | { encoding?: BufferEncoding; withFileTypes?: false; recursive?: boolean } | null): Promise<string[]>;
  export function mkdir(path: PathLike, options?: number | { recursive?: boolean; mode?: number } | null): Promise<string | undefined>;
  export function rm(path: PathLike, options?: { recursive?: boolean; force?: boolean }): Promise<void>;
  export function rmdir(path: PathLike, options?: { recursive?: boolean }): Promise<void>;
  export function unlink(path: PathLike): Promise<void>;
  export function rename(from: PathLike, to: PathLike): Promise<void>;
  export function copyFile(from: PathLike, to: PathLike): Promise<void>;
  export function stat(path: PathLike): Promise<Stats>;
  export function lstat(path: PathLike): Promise<Stats>;
  export function access(path: PathLike, mode?: number): Promise<void>;

  const fs: typeof import("node:fs/promises");
  export default fs;
}
declare module "fs/promises" {
  export * from "node:fs/promises";
  export { default } from "node:fs/promises";
}

declare module "node:fs" {
  export * as promises from "node:fs/promises";
  export type { Dirent, PathLike, Stats } from "node:fs/promises";
  const fs: { readonly promises: typeof import("node:fs/promises") };
  export default fs;
}
declare module "fs" {
  export * from "node:fs";
  export { default } from "node:fs";
}

declare module "node:path" {
  export interface ParsedPath {
    root: string;
    dir: string;
    base: string;
    ext: string;
    name: string;
  }
  export const sep: string;
  export const delimiter: string;
  export function basename(path: string, suffix?: string): string;
  export function dirname(path: string): string;
  export function extname(path: string): string;
  export function format(path: Partial<ParsedPath>): string;
  export function isAbsolute(path: string): boolean;
  export function join(...paths: string[]): string;
  export function normalize(path: string): string;
  export function parse(path: string): ParsedPath;
  export function relative(from: string, to: string): string;
  export function resolve(...paths: string[]): string;
  export const posix: typeof import("node:path");
  const path: typeof import("node:path");
  export default path;
}
declare module "path" {
  export * from "node:path";
  export { default } from "node:path";
}

declare module "node:url" {
  export const URL: typeof globalThis.URL;
  export type URL = globalThis.URL;
  export const URLSearchParams: typeof globalThis.URLSearchParams;
  export type URLSearchParams = globalThis.URLSearchParams;
  export function fileURLToPath(url: string | globalThis.URL): string;
  export function pathToFileURL(path: string): globalThis.URL;
  const url: typeof import("node:url");
  export default url;
}

declare module "node:util" {
  export interface InspectOptions {
    depth?: number | null;
    colors?: boolean;
    compact?: boolean | number;
    breakLength?: number;
    sorted?: boolean;
    maxArrayLength?: number | null;
    maxStringLength?: number | null;
  }
  export function inspect(value: any, options?: InspectOptions): string;
  export function format(template?: any, ...values: any[]): string;
  export function promisify(f: (...args: any[]) => void): (...args: any[]) => Promise<any>;
  export function isDeepStrictEqual(a: unknown, b: unknown): boolean;
  export const types: {
    isDate(value: unknown): value is Date;
    isMap(value: unknown): value is Map<unknown, unknown>;
    isNativeError(value: unknown): value is Error;
    isPromise(value: unknown): value is Promise<unknown>;
    isRegExp(value: unknown): value is RegExp;
    isSet(value: unknown): value is Set<unknown>;
    isTypedArray(value: unknown): value is Uint8Array;
  };
  export const TextEncoder: typeof globalThis.TextEncoder;
  export const TextDecoder: typeof globalThis.TextDecoder;
  const util: typeof import("node:util");
  export default util;
}

declare module "node:crypto" {
  export interface Hash {
    update(data: string | ArrayBufferView, encoding?: BufferEncoding): Hash;
    digest(): Buffer;
    digest(encoding: "hex" | "base64" | "base64url" | "latin1" | "binary"): string;
  }
  export function createHash(algorithm: "sha256" | "sha1" | "md5" | (string & {})): Hash;
  export function randomUUID(): string;
  export function randomBytes(size: number): Buffer;
  export function randomInt(max: number): number;
  export function randomInt(min: number, max: number): number;
  export function getRandomValues<T extends ArrayBufferView>(array: T): T;
  export const webcrypto: Crypto;
  const crypto: typeof import("node:crypto");
  export default crypto;
}

declare module "node:buffer" {
  export const Buffer: BufferConstructor;
  export type Buffer = globalThis.Buffer;
  export const atob: typeof globalThis.atob;
  export const btoa: typeof globalThis.btoa;
  const buffer: typeof import("node:buffer");
  export default buffer;
}

declare module "node:timers/promises" {
  export function setTimeout<T = void>(ms?: number, value?: T, options?: { signal?: AbortSignal }): Promise<T>;
  export function setImmediate<T = void>(value?: T): Promise<T>;
  export const scheduler: { wait(ms: number): Promise<void>; yield(): Promise<void> };
  const timers: typeof import("node:timers/promises");
  export default timers;
}

declare module "node:assert" {
  export class AssertionError extends Error {
    readonly actual: unknown;
    readonly expected: unknown;
    readonly operator: string;
    constructor(options?: { message?: string; actual?: unknown; expected?: unknown; operator?: string });
  }
  export function ok(value: unknown, message?: string | Error): asserts value;
  export function equal(actual: unknown, expected: unknown, message?: string | Error): void;
  export function notEqual(actual: unknown, expected: unknown, message?: string | Error): void;
  export function strictEqual<T>(actual: unknown, expected: T, message?: string | Error): asserts actual is T;
  export function notStrictEqual(actual: unknown, expected: unknown, message?: string | Error): void;
  export function deepEqual(actual: unknown, expected: unknown, message?: string | Error): void;
  export function deepStrictEqual<T>(actual: unknown, expected: T, message?: string | Error): asserts actual is T;
  export function notDeepStrictEqual(actual: unknown, expected: unknown, message?: string | Error): void;
  export function throws(f: () => unknown, expected?: unknown, message?: string): void;
  export function rejects(f: Promise<unknown> | (() => Promise<unknown>), expected?: unknown, message?: string): Promise<void>;
  export function match(text: string, pattern: RegExp, message?: string | Error): void;
  export function fail(message?: string | Error): never;
  const assert: typeof ok & typeof import("node:assert");
  export default assert;
}

declare module "node:events" {
  type Listener = (...args: any[]) => void;
  export class EventEmitter {
    on(event: string | symbol, listener: Listener): this;
    addListener(event: string | symbol, listener: Listener): this;
    prependListener(event: string | symbol, listener: Listener): this;
    once(event: string | symbol, listener: Listener): this;
    off(event: string | symbol, listener: Listener): this;
    removeListener(event: string | symbol, listener: Listener): this;
    removeAllListeners(event?: string | symbol): this;
    emit(event: string | symbol, ...args: any[]): boolean;
    listeners(event: string | symbol): Listener[];
    listenerCount(event: string | symbol): number;
    eventNames(): (string | symbol)[];
    setMaxListeners(n: number): this;
  }
  export function once(emitter: EventEmitter, event: string | symbol): Promise<any[]>;
  export default EventEmitter;
}

declare module "node:os" {
  export const EOL: string;
  const os: typeof import("node:os");
  export default os;
}
