// What a program's environment has beyond the language's own library. fetch reaches
// what settings allow, by themselves nothing; process has what ordinary code asks
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
  /** The text of the tool's file, or its signature if that is too long, with detail "full". */
  definition?: string;
}

interface SearchOptions {
  server?: string;
  category?: string;
  limit?: number;
}

/** Finds tools by what they do. */
declare function searchTools(query: string, detail?: "name" | "summary" | "description" | "full", options?: SearchOptions): Promise<FoundTool[]>;

interface PageReader {
  /** The items of the list that a tool returns page by page; each page is a call. After the tool come the arguments. */
  <F extends (...args: any[]) => Promise<any>>(tool: F, ...args: Parameters<F>): AsyncIterableIterator<PageItem<F>>;
}
/** What the list has items of, where the tool's declaration says that. */
type PageItem<F> = F extends { readonly __item: infer T } ? T : any;
declare var pages: PageReader;

type ToolCalls = Iterable<readonly [tool: ToolFunction | string, args?: object] | { tool: ToolFunction | string; arguments?: object }>;
type ToolFunction = (...args: any[]) => Promise<any>;
interface Approve {
  /** Asks a person once about calls that the program is going to make. A no ends the program, unless they are optional. */
  (purpose: string, calls: ToolCalls, options?: { optional?: boolean }): Promise<boolean>;
  (purpose: string, tool: ToolFunction | string, rows: Iterable<object>, options?: { optional?: boolean }): Promise<boolean>;
}
declare var approve: Approve;

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
  /** Of two tokens. Case, blanks and punctuation do not count. */
  equals(token: string, other: string): Promise<boolean>;
  mask(token: string): Promise<string>;
  /** ISO 3166, of a phone number or an IBAN; "" if it tells none. */
  country(token: string): Promise<string>;
  /** In years, of a date of birth. */
  age(token: string): Promise<number>;
  /** By tokens of one type; items without one come last. */
  sortBy<T>(items: T[], key?: string | ((item: T) => string)): Promise<T[]>;
}
/** What can be told of the values that tokens like [EMAIL_1] stand for. */
declare var pii: PersonalData;

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
/** The functions of node:fs/promises, and those of node:fs whose names end in Sync. */
declare var fs: typeof import("node:fs/promises") & Omit<typeof import("node:fs"), keyof typeof import("node:fs/promises")>;
declare var path: typeof import("node:path");

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

// ---- fetch

type HeadersInit = Headers | Iterable<readonly [string, string]> | Record<string, string>;
interface Headers {
  append(name: string, value: string): void;
  delete(name: string): void;
  get(name: string): string | null;
  getSetCookie(): string[];
  has(name: string): boolean;
  set(name: string, value: string): void;
  forEach(callback: (value: string, name: string, headers: Headers) => void, thisArg?: any): void;
  entries(): IterableIterator<[string, string]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  [Symbol.iterator](): IterableIterator<[string, string]>;
}
declare var Headers: { new (init?: HeadersInit): Headers; readonly prototype: Headers };

type BodyInit = string | Blob | ArrayBuffer | ArrayBufferView | URLSearchParams | AsyncIterable<string | Uint8Array>;
interface BodyReader {
  readonly closed: Promise<void>;
  read(): Promise<{ value: Uint8Array; done: false } | { value: undefined; done: true }>;
  cancel(reason?: any): Promise<void>;
  releaseLock(): void;
}
interface BodyStream extends AsyncIterable<Uint8Array> {
  readonly locked: boolean;
  getReader(): BodyReader;
  cancel(reason?: any): Promise<void>;
}
interface FetchBody {
  readonly body: BodyStream | null;
  readonly bodyUsed: boolean;
  arrayBuffer(): Promise<ArrayBuffer>;
  blob(): Promise<Blob>;
  bytes(): Promise<Uint8Array>;
  json(): Promise<any>;
  text(): Promise<string>;
}

interface RequestInit {
  method?: string;
  headers?: HeadersInit;
  body?: BodyInit | null;
  redirect?: "follow" | "error" | "manual";
  signal?: AbortSignal | null;
  [other: string]: unknown;
}
interface Request extends FetchBody {
  readonly url: string;
  readonly method: string;
  readonly headers: Headers;
  readonly redirect: string;
  readonly signal: AbortSignal;
  clone(): Request;
}
declare var Request: { new (input: string | URL | Request, init?: RequestInit): Request; readonly prototype: Request };

interface ResponseInit {
  status?: number;
  statusText?: string;
  headers?: HeadersInit;
}
interface Response extends FetchBody {
  readonly ok: boolean;
  readonly status: number;
  readonly statusText: string;
  readonly headers: Headers;
  readonly url: string;
  readonly redirected: boolean;
  readonly type: string;
  clone(): Response;
}
declare var Response: {
  new (body?: BodyInit | null, init?: ResponseInit): Response;
  readonly prototype: Response;
  json(value: any, init?: ResponseInit): Response;
  error(): Response;
};

/** Reaches the domains that the setting network.whitelist names. */
declare function fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>;
