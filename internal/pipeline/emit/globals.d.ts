// What a program's environment has beyond the language's own library. There is
// no network, so that fetch does not exist; process has what ordinary code asks
// for, but neither arguments nor an environment.

// ---- Retort

/** Calls a tool by its raw name, server__tool, with an object of arguments. */
declare function callMCPTool<T = any>(name: string, args?: object, options?: { noCache?: boolean }): Promise<T>;

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
  server?: string;
  category?: string;
  limit?: number;
}

/** Finds tools by what they do. */
declare function searchTools(query: string, detail?: "name" | "description" | "full", options?: SearchOptions): Promise<FoundTool[]>;

/** Waits. */
declare function sleep(ms: number): Promise<void>;

/** What a failed tool call throws. */
interface ToolError extends Error {
  readonly kind:
    | "tool_error" | "tool_not_found" | "invalid_arguments" | "upstream_gone" | "upstream_timeout" | "tool_changed"
    | "policy" | "limit" | "cancelled" | "internal" | (string & {});
  readonly server: string;
  readonly tool: string;
  readonly hint: string;
}
interface ToolErrorConstructor {
  new (message?: string, options?: { kind?: string; server?: string; tool?: string; hint?: string; cause?: unknown }): ToolError;
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

interface PersonalData {
  /** Of an e-mail address. */
  domain(token: string): Promise<string>;
  /** Case, blanks and punctuation do not count. */
  equals(token: string, other: string): Promise<boolean>;
  mask(token: string): Promise<string>;
  /** ISO 3166, of a phone number or an IBAN; "" if it tells none. */
  country(token: string): Promise<string>;
  /** In years, of a date of birth. */
  age(token: string): Promise<number>;
  sortBy<T>(items: T[], key?: string | ((item: T) => string)): Promise<T[]>;
}
/** What can be told of the values that tokens like [EMAIL_1] stand for. */
declare var pii: PersonalData;
/** What is sealed stands as a token, such as [EMAIL_1]: it compares and groups like the value, and has none of its letters. */
declare namespace pii {
  type Sealed<T extends string> = string & { readonly __sealed?: T };
  type Email = Sealed<"email">;
  type Phone = Sealed<"phone">;
  type CreditCard = Sealed<"credit_card">;
  type Ssn = Sealed<"ssn">;
  type Name = Sealed<"name">;
  type Company = Sealed<"company">;
  type Iban = Sealed<"iban">;
  type Ip = Sealed<"ip">;
  type Address = Sealed<"address">;
  type Secret = Sealed<"secret">;
  type Mac = Sealed<"mac">;
  type Wallet = Sealed<"wallet">;
  type NationalId = Sealed<"national_id">;
  type Passport = Sealed<"passport">;
  type DrivingLicence = Sealed<"driving_licence">;
  type DateOfBirth = Sealed<"date_of_birth">;
}

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
  dirxml(...data: any[]): void;
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

declare namespace NodeJS {
  interface Timeout {
    ref(): this;
    unref(): this;
    hasRef(): boolean;
    refresh(): this;
    close(): this;
    [Symbol.toPrimitive](): number;
  }
  type Timer = Timeout;
  type Immediate = Timeout;
}
/** What setTimeout answers; it can be used as a number, too. */
type Timer = number & NodeJS.Timeout;
declare function setTimeout<A extends any[]>(callback: (...args: A) => void, ms?: number, ...args: A): Timer;
declare function setTimeout(callback: (_: void) => void, ms?: number): Timer; // resolve of new Promise(…) without a type
declare function setInterval<A extends any[]>(callback: (...args: A) => void, ms?: number, ...args: A): Timer;
declare function setInterval(callback: (_: void) => void, ms?: number): Timer;
declare function setImmediate<A extends any[]>(callback: (...args: A) => void, ...args: A): Timer;
declare function setImmediate(callback: (_: void) => void): Timer;
declare function clearTimeout(timer?: number | NodeJS.Timeout | null): void;
declare function clearInterval(timer?: number | NodeJS.Timeout | null): void;
declare function clearImmediate(timer?: number | NodeJS.Timeout | null): void;
declare function queueMicrotask(callback: () => void): void;
declare function structuredClone<T = any>(value: T, options?: { transfer?: any[] }): T;

interface PerformanceEntry {
  readonly name: string;
  readonly entryType: string;
  readonly startTime: number;
  readonly duration: number;
}
interface Performance {
  readonly timeOrigin: number;
  now(): number;
  mark(name: string): PerformanceEntry;
  measure(name: string, from?: string, to?: string): PerformanceEntry;
  clearMarks(name?: string): void;
}
declare var performance: Performance;

interface OutputStream {
  readonly isTTY: false;
  write(text: string): boolean;
}
interface HrTime {
  (since?: [number, number]): [number, number];
  bigint(): bigint;
}
interface Process {
  /** Empty. */
  readonly env: Record<string, string | undefined>;
  /** Empty. */
  readonly argv: string[];
  readonly platform: string;
  readonly arch: string;
  readonly version: string;
  readonly versions: Record<string, string>;
  readonly pid: number;
  readonly title: string;
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly hrtime: HrTime;
  nextTick<A extends any[]>(callback: (...args: A) => void, ...args: A): void;
  uptime(): number;
  cwd(): string;
  on(event: string, listener: (...args: any[]) => void): this;
  once(event: string, listener: (...args: any[]) => void): this;
  off(event: string, listener: (...args: any[]) => void): this;
  emitWarning(warning: string | Error): void;
  /** Throws: a program ends by returning. */
  exit(code?: number): never;
}
declare var process: Process;
declare var global: typeof globalThis;

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
  fill(value: string | number | Uint8Array, start?: number, end?: number, encoding?: BufferEncoding): this;
  equals(other: Uint8Array): boolean;
  compare(other: Uint8Array): -1 | 0 | 1;
  write(text: string, offset?: number, length?: number, encoding?: BufferEncoding): number;
  copy(target: Uint8Array, targetStart?: number, start?: number, end?: number): number;
  slice(start?: number, end?: number): Buffer;
  subarray(start?: number, end?: number): Buffer;
  includes(value: string | number | Uint8Array, offset?: number, encoding?: BufferEncoding): boolean;
  indexOf(value: string | number | Uint8Array, offset?: number, encoding?: BufferEncoding): number;
  readUInt8(offset?: number): number;
  writeUInt8(value: number, offset?: number): number;
  readInt8(offset?: number): number;
  writeInt8(value: number, offset?: number): number;
  readUInt16BE(offset?: number): number;
  writeUInt16BE(value: number, offset?: number): number;
  readUInt16LE(offset?: number): number;
  writeUInt16LE(value: number, offset?: number): number;
  readUInt32BE(offset?: number): number;
  writeUInt32BE(value: number, offset?: number): number;
  readUInt32LE(offset?: number): number;
  writeUInt32LE(value: number, offset?: number): number;
  readInt16BE(offset?: number): number;
  writeInt16BE(value: number, offset?: number): number;
  readInt16LE(offset?: number): number;
  writeInt16LE(value: number, offset?: number): number;
  readInt32BE(offset?: number): number;
  writeInt32BE(value: number, offset?: number): number;
  readInt32LE(offset?: number): number;
  writeInt32LE(value: number, offset?: number): number;
  readFloatBE(offset?: number): number;
  writeFloatBE(value: number, offset?: number): number;
  readFloatLE(offset?: number): number;
  writeFloatLE(value: number, offset?: number): number;
  readDoubleBE(offset?: number): number;
  writeDoubleBE(value: number, offset?: number): number;
  readDoubleLE(offset?: number): number;
  writeDoubleLE(value: number, offset?: number): number;
  readBigUInt64BE(offset?: number): bigint;
  writeBigUInt64BE(value: bigint, offset?: number): number;
  readBigUInt64LE(offset?: number): bigint;
  writeBigUInt64LE(value: bigint, offset?: number): number;
  readBigInt64BE(offset?: number): bigint;
  writeBigInt64BE(value: bigint, offset?: number): number;
  readBigInt64LE(offset?: number): bigint;
  writeBigInt64LE(value: bigint, offset?: number): number;
  readUIntBE(offset: number, length: number): number;
  readUIntLE(offset: number, length: number): number;
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

interface BlobOptions {
  type?: string;
}
interface Blob {
  readonly size: number;
  readonly type: string;
  text(): Promise<string>;
  arrayBuffer(): Promise<ArrayBuffer>;
  bytes(): Promise<Uint8Array<ArrayBuffer>>;
  slice(start?: number, end?: number, type?: string): Blob;
}
declare var Blob: {
  new (parts?: (string | ArrayBuffer | ArrayBufferView | Blob)[], options?: BlobOptions): Blob;
  readonly prototype: Blob;
};
interface File extends Blob {
  readonly name: string;
  readonly lastModified: number;
}
declare var File: {
  new (parts: (string | ArrayBuffer | ArrayBufferView | Blob)[], name: string, options?: BlobOptions & { lastModified?: number }): File;
  readonly prototype: File;
};

interface SubtleCrypto {
  digest(algorithm: string | { name: string }, data: ArrayBuffer | ArrayBufferView): Promise<ArrayBuffer>;
}
interface Crypto {
  readonly subtle: SubtleCrypto;
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

interface CustomEvent<T = any> extends Event {
  readonly detail: T;
}
declare var CustomEvent: {
  new <T = any>(type: string, init?: EventInit & { detail?: T }): CustomEvent<T>;
  readonly prototype: CustomEvent;
};

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
  import type { Bytes, Data, Dirent, Entries, Making, Names, PathLike, ReadStream, Removing, Stats, Streaming, Text, Writing } from "node:fs";
  export function readFile(path: PathLike, encoding: Text): Promise<string>;
  export function readFile(path: PathLike, options?: Bytes): Promise<Buffer>;
  export function writeFile(path: PathLike, data: Data, options?: Writing): Promise<void>;
  export function appendFile(path: PathLike, data: Data, options?: Writing): Promise<void>;
  export function readdir(path: PathLike, options: Entries): Promise<Dirent[]>;
  export function readdir(path: PathLike, options?: Names): Promise<string[]>;
  export function stat(path: PathLike): Promise<Stats>;
  export function lstat(path: PathLike): Promise<Stats>;
  export function access(path: PathLike, mode?: number): Promise<void>;
  export function mkdir(path: PathLike, options?: Making): Promise<void>;
  export function rm(path: PathLike, options?: Removing): Promise<void>;
  export function rmdir(path: PathLike, options?: Removing): Promise<void>;
  export function unlink(path: PathLike): Promise<void>;
  export function rename(from: PathLike, to: PathLike): Promise<void>;
  export function copyFile(from: PathLike, to: PathLike): Promise<void>;
  export function cp(from: PathLike, to: PathLike, options?: { recursive?: boolean }): Promise<void>;
  /** Goes through a large file a part at a time: for await (const line of (await open(path)).readLines()) */
  export function open(path: PathLike, flags?: string, mode?: number): Promise<FileHandle>;
  export interface FileHandle {
    readLines(options?: Streaming): import("node:readline").Interface;
    createReadStream(options?: Streaming): ReadStream;
    readFile(encoding: Text): Promise<string>;
    readFile(options?: Bytes): Promise<Buffer>;
    writeFile(data: Data, options?: Writing): Promise<void>;
    appendFile(data: Data, options?: Writing): Promise<void>;
    stat(): Promise<Stats>;
    close(): Promise<void>;
  }
  export const constants: typeof import("node:fs").constants;
  const fs: typeof import("node:fs/promises");
  export default fs;
}
declare module "node:fs" {
  /** A path in the visible tree: workspace/…, servers/…, skills/… */
  export type PathLike = string | URL | Buffer;
  export type Data = string | ArrayBufferView | ArrayBuffer;
  export type Text = BufferEncoding | { encoding: BufferEncoding; flag?: string };
  export type Bytes = { encoding?: null; flag?: string } | null;
  export type Writing = BufferEncoding | { encoding?: BufferEncoding | null; flag?: string; mode?: number } | null;
  export type Names = BufferEncoding | { encoding?: BufferEncoding | null; withFileTypes?: false; recursive?: boolean } | null;
  export type Entries = { withFileTypes: true; recursive?: boolean; encoding?: BufferEncoding | null };
  export type Making = number | { recursive?: boolean; mode?: number } | null;
  export type Removing = { recursive?: boolean; force?: boolean };

  export type Streaming = BufferEncoding | { encoding?: BufferEncoding | null; start?: number; end?: number; highWaterMark?: number } | null;
  /** The parts of a file: Buffers, or text with an encoding. */
  export interface ReadStream extends AsyncIterable<any> {
    readonly path: PathLike;
    readonly bytesRead: number;
    setEncoding(encoding: BufferEncoding): this;
    on(event: "data" | "end" | "close" | "error" | (string & {}), listener: (...args: any[]) => void): this;
    once(event: string, listener: (...args: any[]) => void): this;
    destroy(): this;
    close(): void;
  }
  /** Goes through a large file a part at a time. */
  export function createReadStream(path: PathLike, options?: Streaming): ReadStream;

  export interface Stats {
    readonly size: number;
    readonly mode: number;
    readonly mtime: Date;
    readonly ctime: Date;
    readonly atime: Date;
    readonly birthtime: Date;
    readonly mtimeMs: number;
    isFile(): boolean;
    isDirectory(): boolean;
    isSymbolicLink(): boolean;
  }
  export interface Dirent {
    readonly name: string;
    readonly parentPath: string;
    readonly path: string;
    isFile(): boolean;
    isDirectory(): boolean;
    isSymbolicLink(): boolean;
  }
  export const constants: { readonly F_OK: number; readonly R_OK: number; readonly W_OK: number; readonly X_OK: number };

  export function readFileSync(path: PathLike, encoding: Text): string;
  export function readFileSync(path: PathLike, options?: Bytes): Buffer;
  export function writeFileSync(path: PathLike, data: Data, options?: Writing): void;
  export function appendFileSync(path: PathLike, data: Data, options?: Writing): void;
  export function readdirSync(path: PathLike, options: Entries): Dirent[];
  export function readdirSync(path: PathLike, options?: Names): string[];
  export function statSync(path: PathLike): Stats;
  export function lstatSync(path: PathLike): Stats;
  export function accessSync(path: PathLike, mode?: number): void;
  export function existsSync(path: PathLike): boolean;
  export function mkdirSync(path: PathLike, options?: Making): void;
  export function rmSync(path: PathLike, options?: Removing): void;
  export function rmdirSync(path: PathLike, options?: Removing): void;
  export function unlinkSync(path: PathLike): void;
  export function renameSync(from: PathLike, to: PathLike): void;
  export function copyFileSync(from: PathLike, to: PathLike): void;
  export function cpSync(from: PathLike, to: PathLike, options?: { recursive?: boolean }): void;

  type Done<A extends any[] = []> = (error: Error | null, ...answer: A) => void;
  export function readFile(path: PathLike, encoding: Text, done: Done<[string]>): void;
  export function readFile(path: PathLike, done: Done<[Buffer]>): void;
  export function readFile(path: PathLike, options: Bytes, done: Done<[Buffer]>): void;
  export function writeFile(path: PathLike, data: Data, done: Done): void;
  export function writeFile(path: PathLike, data: Data, options: Writing, done: Done): void;
  export function appendFile(path: PathLike, data: Data, done: Done): void;
  export function appendFile(path: PathLike, data: Data, options: Writing, done: Done): void;
  export function readdir(path: PathLike, done: Done<[string[]]>): void;
  export function readdir(path: PathLike, options: Entries, done: Done<[Dirent[]]>): void;
  export function readdir(path: PathLike, options: Names, done: Done<[string[]]>): void;
  export function stat(path: PathLike, done: Done<[Stats]>): void;
  export function lstat(path: PathLike, done: Done<[Stats]>): void;
  export function access(path: PathLike, done: Done): void;
  export function access(path: PathLike, mode: number, done: Done): void;
  export function mkdir(path: PathLike, done: Done): void;
  export function mkdir(path: PathLike, options: Making, done: Done): void;
  export function rm(path: PathLike, done: Done): void;
  export function rm(path: PathLike, options: Removing, done: Done): void;
  export function rmdir(path: PathLike, done: Done): void;
  export function unlink(path: PathLike, done: Done): void;
  export function rename(from: PathLike, to: PathLike, done: Done): void;
  export function copyFile(from: PathLike, to: PathLike, done: Done): void;
  export function cp(from: PathLike, to: PathLike, options: { recursive?: boolean }, done: Done): void;

  export const promises: typeof import("node:fs/promises");
  const fs: typeof import("node:fs");
  export default fs;
}
declare module "node:readline" {
  export interface Interface extends AsyncIterable<string> {
    on(event: "line" | "close" | "error" | (string & {}), listener: (...args: any[]) => void): this;
    once(event: string, listener: (...args: any[]) => void): this;
    close(): void;
  }
  /** The lines of a stream: for await (const line of createInterface({ input: fs.createReadStream(path) })) */
  export function createInterface(options: { input: AsyncIterable<any> | Iterable<any>; crlfDelay?: number }): Interface;
  const readline: typeof import("node:readline");
  export default readline;
}
declare module "node:readline/promises" {
  export * from "node:readline";
  export { default } from "node:readline";
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
  export function toNamespacedPath(path: string): string;
  export const posix: typeof import("node:path");
  const path: typeof import("node:path");
  export default path;
}
declare module "node:url" {
  export const URL: typeof globalThis.URL;
  export type URL = globalThis.URL;
  export const URLSearchParams: typeof globalThis.URLSearchParams;
  export type URLSearchParams = globalThis.URLSearchParams;
  export function fileURLToPath(url: string | globalThis.URL): string;
  export function pathToFileURL(path: string): globalThis.URL;
  export function format(url: string | globalThis.URL): string;
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
    showHidden?: boolean;
    maxArrayLength?: number | null;
    maxStringLength?: number | null;
  }
  export const inspect: {
    (value: any, options?: InspectOptions): string;
    (value: any, showHidden?: boolean, depth?: number | null): string;
    readonly custom: unique symbol;
    readonly defaultOptions: InspectOptions;
  };
  export function format(template?: any, ...values: any[]): string;
  export function promisify(f: (...args: any[]) => void): (...args: any[]) => Promise<any>;
  export function callbackify(f: (...args: any[]) => Promise<any>): (...args: any[]) => void;
  export function deprecate<F extends (...args: any[]) => any>(f: F, message?: string): F;
  export function inherits(type: Function, base: Function): void;
  export function isDeepStrictEqual(a: unknown, b: unknown): boolean;
  export function stripVTControlCharacters(text: string): string;
  export const types: {
    isArrayBuffer(value: unknown): value is ArrayBuffer;
    isAsyncFunction(value: unknown): boolean;
    isDate(value: unknown): value is Date;
    isMap(value: unknown): value is Map<unknown, unknown>;
    isNativeError(value: unknown): value is Error;
    isPromise(value: unknown): value is Promise<unknown>;
    isRegExp(value: unknown): value is RegExp;
    isSet(value: unknown): value is Set<unknown>;
    isTypedArray(value: unknown): value is Uint8Array;
    isUint8Array(value: unknown): value is Uint8Array;
  };
  export const TextEncoder: typeof globalThis.TextEncoder;
  export const TextDecoder: typeof globalThis.TextDecoder;
  const util: typeof import("node:util");
  export default util;
}

declare module "node:crypto" {
  export type DigestEncoding = "hex" | "base64" | "base64url" | "latin1" | "binary";
  export interface Hash {
    update(data: string | ArrayBuffer | ArrayBufferView, encoding?: BufferEncoding): this;
    digest(): Buffer;
    digest(encoding: DigestEncoding): string;
    copy(): Hash;
  }
  export type Hmac = Hash;
  export function createHash(algorithm: "sha256" | "sha512" | "sha384" | "sha1" | "md5" | (string & {})): Hash;
  export function createHmac(algorithm: string, key: string | ArrayBuffer | ArrayBufferView): Hmac;
  export function randomUUID(): string;
  export function randomBytes(size: number): Buffer;
  export function randomInt(max: number): number;
  export function randomInt(min: number, max: number): number;
  export function getRandomValues<T extends ArrayBufferView>(array: T): T;
  export function timingSafeEqual(a: ArrayBuffer | ArrayBufferView, b: ArrayBuffer | ArrayBufferView): boolean;
  export const subtle: SubtleCrypto;
  export const webcrypto: Crypto;
  const crypto: typeof import("node:crypto");
  export default crypto;
}

declare module "node:buffer" {
  export const Buffer: BufferConstructor;
  export type Buffer = globalThis.Buffer;
  export const Blob: typeof globalThis.Blob;
  export type Blob = globalThis.Blob;
  export const atob: typeof globalThis.atob;
  export const btoa: typeof globalThis.btoa;
  const buffer: typeof import("node:buffer");
  export default buffer;
}

declare module "node:timers/promises" {
  export function setTimeout<T = void>(ms?: number, value?: T, options?: { signal?: AbortSignal }): Promise<T>;
  export function setInterval<T = void>(ms?: number, value?: T, options?: { signal?: AbortSignal }): AsyncGenerator<T>;
  export function setImmediate<T = void>(value?: T, options?: { signal?: AbortSignal }): Promise<T>;
  export const scheduler: { wait(ms: number, options?: { signal?: AbortSignal }): Promise<void>; yield(): Promise<void> };
  const timers: typeof import("node:timers/promises");
  export default timers;
}

declare module "node:assert" {
  type Message = string | Error;
  interface Assert {
    (value: unknown, message?: Message): asserts value;
    ok(value: unknown, message?: Message): asserts value;
    fail(message?: Message): never;
    equal(actual: unknown, expected: unknown, message?: Message): void;
    notEqual(actual: unknown, expected: unknown, message?: Message): void;
    strictEqual<T>(actual: unknown, expected: T, message?: Message): asserts actual is T;
    notStrictEqual(actual: unknown, expected: unknown, message?: Message): void;
    deepEqual(actual: unknown, expected: unknown, message?: Message): void;
    notDeepEqual(actual: unknown, expected: unknown, message?: Message): void;
    deepStrictEqual<T>(actual: unknown, expected: T, message?: Message): asserts actual is T;
    notDeepStrictEqual(actual: unknown, expected: unknown, message?: Message): void;
    match(text: string, pattern: RegExp, message?: Message): void;
    doesNotMatch(text: string, pattern: RegExp, message?: Message): void;
    ifError(value: unknown): void;
    throws(f: () => unknown, expected?: unknown, message?: string): void;
    doesNotThrow(f: () => unknown): void;
    rejects(f: Promise<unknown> | (() => Promise<unknown>), expected?: unknown, message?: string): Promise<void>;
    doesNotReject(f: Promise<unknown> | (() => Promise<unknown>)): Promise<void>;
    readonly AssertionError: typeof AssertionError;
    readonly strict: Assert;
  }
  export class AssertionError extends Error {
    readonly actual: unknown;
    readonly expected: unknown;
    readonly operator: string;
    constructor(options: { message?: string; actual?: unknown; expected?: unknown; operator?: string });
  }
  export const ok: Assert["ok"];
  export const fail: Assert["fail"];
  export const equal: Assert["equal"];
  export const notEqual: Assert["notEqual"];
  export const strictEqual: Assert["strictEqual"];
  export const notStrictEqual: Assert["notStrictEqual"];
  export const deepEqual: Assert["deepEqual"];
  export const notDeepEqual: Assert["notDeepEqual"];
  export const deepStrictEqual: Assert["deepStrictEqual"];
  export const notDeepStrictEqual: Assert["notDeepStrictEqual"];
  export const match: Assert["match"];
  export const doesNotMatch: Assert["doesNotMatch"];
  export const ifError: Assert["ifError"];
  export const throws: Assert["throws"];
  export const doesNotThrow: Assert["doesNotThrow"];
  export const rejects: Assert["rejects"];
  export const doesNotReject: Assert["doesNotReject"];
  export const strict: Assert;
  const assert: Assert;
  export default assert;
}

declare module "node:events" {
  type Name = string | symbol;
  type Listener = (...args: any[]) => void;
  export class EventEmitter {
    static defaultMaxListeners: number;
    on(event: Name, listener: Listener): this;
    addListener(event: Name, listener: Listener): this;
    prependListener(event: Name, listener: Listener): this;
    once(event: Name, listener: Listener): this;
    prependOnceListener(event: Name, listener: Listener): this;
    off(event: Name, listener: Listener): this;
    removeListener(event: Name, listener: Listener): this;
    removeAllListeners(event?: Name): this;
    emit(event: Name, ...args: any[]): boolean;
    listeners(event: Name): Listener[];
    rawListeners(event: Name): Listener[];
    listenerCount(event: Name): number;
    eventNames(): Name[];
    setMaxListeners(n: number): this;
    getMaxListeners(): number;
  }
  export function once(emitter: EventEmitter, event: Name, options?: { signal?: AbortSignal }): Promise<any[]>;
  export default EventEmitter;
}

declare module "node:os" {
  export const EOL: string;
  export function platform(): string;
  export function type(): string;
  export function arch(): string;
  export function tmpdir(): string;
  export function homedir(): string;
  export function hostname(): string;
  const os: typeof import("node:os");
  export default os;
}

declare module "node:path/posix" {
  export * from "node:path";
  export { default } from "node:path";
}

declare module "node:assert/strict" {
  export * from "node:assert";
  export { default } from "node:assert";
}

declare module "node:timers" {
  export const setTimeout: typeof globalThis.setTimeout;
  export const clearTimeout: typeof globalThis.clearTimeout;
  export const setInterval: typeof globalThis.setInterval;
  export const clearInterval: typeof globalThis.clearInterval;
  export const setImmediate: typeof globalThis.setImmediate;
  export const clearImmediate: typeof globalThis.clearImmediate;
  export const promises: typeof import("node:timers/promises");
  const timers: typeof import("node:timers");
  export default timers;
}

declare module "node:process" {
  const process: Process;
  export const env: Process["env"];
  export const argv: Process["argv"];
  export const platform: Process["platform"];
  export const stdout: Process["stdout"];
  export const stderr: Process["stderr"];
  export const hrtime: Process["hrtime"];
  export const nextTick: Process["nextTick"];
  export const uptime: Process["uptime"];
  export const cwd: Process["cwd"];
  export default process;
}

declare module "node:perf_hooks" {
  export const performance: Performance;
  const hooks: typeof import("node:perf_hooks");
  export default hooks;
}
