// What programs can import beside servers and skills, as Node.js has it.

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
    createWriteStream(options?: { encoding?: BufferEncoding; highWaterMark?: number }): import("node:fs").WriteStream;
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
    pipe<W extends { write(data: any): boolean; end(): any }>(to: W, options?: { end?: boolean }): W;
    destroy(): this;
    close(): void;
  }
  /** Writes a file a part at a time. */
  export interface WriteStream {
    readonly path: PathLike;
    readonly bytesWritten: number;
    readonly writableLength: number;
    readonly writable: boolean;
    readonly writableEnded: boolean;
    readonly writableFinished: boolean;
    readonly destroyed: boolean;
    /** False: wait for "drain" before writing more. */
    write(data: Data, done?: (error?: Error | null) => void): boolean;
    write(data: Data, encoding: BufferEncoding, done?: (error?: Error | null) => void): boolean;
    end(done?: () => void): this;
    end(data: Data, done?: () => void): this;
    end(data: Data, encoding: BufferEncoding, done?: () => void): this;
    on(event: "open" | "ready" | "drain" | "finish" | "close" | "error" | (string & {}), listener: (...args: any[]) => void): this;
    once(event: string, listener: (...args: any[]) => void): this;
    destroy(error?: Error): this;
    close(done?: () => void): void;
  }
  export function createWriteStream(path: PathLike, options?: BufferEncoding | { flags?: "w" | "wx" | "a"; encoding?: BufferEncoding; highWaterMark?: number }): WriteStream;
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
declare module "node:stream/promises" {
  /** Passes everything from the first stream through functions to the last: pipeline(createReadStream(a), async function* (source) { … }, createWriteStream(b)) */
  export function pipeline(...steps: any[]): Promise<any>;
  export function finished(stream: any): Promise<void>;
  const promises: typeof import("node:stream/promises");
  export default promises;
}
declare module "node:stream" {
  type Listener = (...args: any[]) => void;
  type Callback = (error?: Error | null, chunk?: any) => void;
  export interface ReadableOptions { objectMode?: boolean; read?(this: Readable, size: number): void }
  export interface WritableOptions {
    objectMode?: boolean;
    write?(this: Writable, chunk: any, encoding: string, done: Callback): void;
    final?(this: Writable, done: Callback): void;
  }
  export interface TransformOptions {
    objectMode?: boolean;
    readableObjectMode?: boolean;
    writableObjectMode?: boolean;
    transform?(this: Transform, chunk: any, encoding: string, done: Callback): void;
    flush?(this: Transform, done: Callback): void;
  }
  export class Readable implements AsyncIterable<any> {
    static from(iterable: Iterable<any> | AsyncIterable<any>, options?: { objectMode?: boolean }): Readable;
    constructor(options?: ReadableOptions);
    readonly destroyed: boolean;
    readonly readable: boolean;
    push(chunk: any, encoding?: string): boolean;
    pipe<W>(to: W, options?: { end?: boolean }): W;
    resume(): this;
    on(event: string, listener: Listener): this;
    once(event: string, listener: Listener): this;
    emit(event: string, ...args: any[]): boolean;
    destroy(error?: Error): this;
    [Symbol.asyncIterator](): AsyncIterator<any>;
  }
  export class Writable {
    constructor(options?: WritableOptions);
    readonly destroyed: boolean;
    readonly writable: boolean;
    readonly writableEnded: boolean;
    readonly writableFinished: boolean;
    write(chunk: any, done?: Listener): boolean;
    write(chunk: any, encoding: string, done?: Listener): boolean;
    end(...args: any[]): this;
    on(event: string, listener: Listener): this;
    once(event: string, listener: Listener): this;
    emit(event: string, ...args: any[]): boolean;
    destroy(error?: Error): this;
  }
  export class Transform extends Readable {
    constructor(options?: TransformOptions);
    readonly writable: boolean;
    readonly writableEnded: boolean;
    readonly writableFinished: boolean;
    write(chunk: any, done?: Listener): boolean;
    write(chunk: any, encoding: string, done?: Listener): boolean;
    end(...args: any[]): this;
  }
  export class PassThrough extends Transform {}
  /** Passes everything from the first stream to the last and calls back; that of node:stream/promises gives a promise. */
  export function pipeline(...stepsAndCallback: any[]): any;
  export function finished(stream: any, callback: (error?: Error | null) => void): () => void;
  export const promises: typeof import("node:stream/promises");
  const stream: typeof import("node:stream");
  export default stream;
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
