// ---- "scalars"

export interface ScalarsInput {
  text: string;
  number?: number;
  /** @format int64 */
  integer: number;
  flag?: boolean;
  nothing?: null;
  anything?: any;
  yes?: any;
  no?: never;
  odd?: any /* unknown type "file" */;
}

export function scalars(input: ScalarsInput): Promise<any>;

// ---- "documented"

export interface DocumentedInput {
  /** How many. @default 30 @minimum 1 @maximum 100 */
  limit?: number;
  /**
   * First line.
   *
   * Second paragraph.
   * @format date-time
   */
  when?: string;
  /** @pattern ^[A-Z]{2,}$ @minLength 2 @maxLength 8 @example "AB" */
  code?: string;
  /** Old name @deprecated @default "" */
  old?: string;
  /** @exclusiveMinimum 0 @exclusiveMaximum 1 @multipleOf 0.01 */
  share?: number;
  /** @minItems 1 @uniqueItems @items A tag. @maxLength 20 */
  tags?: string[];
  /** @contentEncoding base64 @contentMediaType image/png */
  blob?: string;
}

/** Does things. Then more. @readonly */
export function documented(input?: DocumentedInput): Promise<any>;
export function documented(limit?: number, when?: string, code?: string, old?: string, share?: number, tags?: string[], blob?: string): Promise<any>;

// ---- "literals"

export interface LiteralsInput {
  mode: "fast" | "slow";
  mixed?: "a" | 1 | -2.5 | true | null | { k: [1, "x"] } | [];
  version?: 2;
  none?: null;
  big?: number /* the value is 9007199254740993 */;
  huge?: number /* the value is 100000000000000000000000000000000000000… */;
  repeated?: "a" | "b";
  choice?: /** The first. */ "a"
    | /** The second */ "b";
}

export function literals(input: LiteralsInput): Promise<any>;
export function literals(mode: "fast" | "slow", mixed?: "a" | 1 | -2.5 | true | null | { k: [1, "x"] } | [], version?: 2, none?: null, big?: number /* the value is 9007199254740993 */, huge?: LiteralsInput["huge"], repeated?: "a" | "b", choice?: LiteralsInput["choice"]): Promise<any>;

// ---- "nullables"

export interface NullablesInput {
  list?: string | null;
  flag?: string | null;
  /** A number or nothing. @default null */
  either?: number | null;
  enum?: "a" | null;
  object?: { x?: number } | null;
  many?: string | number | string[] | Record<string, any>;
}

export function nullables(input?: NullablesInput): Promise<any>;
export function nullables(list?: string | null, flag?: string | null, either?: number | null, enum_?: "a" | null, object?: { x?: number } | null, many?: string | number | string[] | Record<string, any>): Promise<any>;

// ---- "names"

export interface NamesInput {
  plain?: string;
  "with-dash": string;
  "with space"?: string;
  "1st"?: string;
  $dollar?: string;
  "__proto__": string;
  constructor?: Function | string;
  class: string;
  from?: string;
  self?: string;
  ""?: string;
  "naïve"?: string;
  "emoji😀"?: string;
  "quote\"'`\\"?: string;
  "new\nline\u2028"?: string;
  given?: string;
  __x?: string;
  more?: string;
}

export function names(input: NamesInput): Promise<any>;

// ---- "empty"

export interface EmptyInput {
  [key: string]: never;
}

export function empty(input?: EmptyInput): Promise<any>;

// ---- "free"

export interface FreeInput {
  [key: string]: any;
}

export function free(input?: FreeInput): Promise<any>;

// ---- "open"

export interface OpenInput {
  a?: string;
  [key: string]: any;
}

export function open(input?: OpenInput): Promise<any>;
export function open(a?: string): Promise<any>;

// ---- "closed"

export interface ClosedInput {
  a?: string;
}

export function closed(input?: ClosedInput): Promise<any>;
export function closed(a?: string): Promise<any>;

// ---- "undeclared"

export interface UndeclaredInput {
  a: string;
  b: any;
}

export function undeclared(input: UndeclaredInput): Promise<any>;
export function undeclared(a: string, b: any): Promise<any>;

// ---- "draft3"

export interface Draft3Input {
  a: string;
  b?: string | { c?: number };
}

export function draft3(input: Draft3Input): Promise<any>;
export function draft3(a: string, b?: string | { c?: number }): Promise<any>;

