// ---- "texts"

export interface TextsInput {
  /**
   * *\/ } ; globalThis.x = 1; /* """ ''' \ ${x} `tick` <script>redgnp.exe zero
   * line
   * para
   * CRLFbelltag
   * @default "*\/ } ; globalThis.x = 1; /* \"\"\" ''' \\ ${x} `tick` <script>\u001b[31mred\u001b[0m\u202egnp.exe\u2066 \u200bzero\u2028line\u2029para\u000d\nCRLF\u0007bell\udb40\udc41tag"
   * @pattern *\/ } ; globalThis.x = 1; /* """ ''' \ ${x} `tick` <script>redgnp.exe zero line para CRLFbelltag
   * @format *\/ } ; globalThis.x = 1; /* """ ''' \ ${x} `tick` <script>redgnp.exe zero line para CRLFbelltag
   */
  a?: string;
  /**
   * *\/ } ; globalThis.x = 1; /* """ ''' \ ${x} `tick` <script>redgnp.exe zero
   * line
   * para
   * CRLFbelltag
   */
  b?: "*/ } ; globalThis.x = 1; /* \"\"\" ''' \\ ${x} `tick` <script>\u001b[31mred\u001b[0m\u202egnp.exe\u2066 \u200bzero\u2028line\u2029para\u000d\nCRLF\u0007bell\udb40\udc41tag" | "*/" | "\"\"\"" | "\\" | "`${1}`";
  /** \@ts-ignore */
  "*/ } ; globalThis.x = 1; /* \"\"\" ''' \\ ${x} `tick` <script>\u001b[31mred\u001b[0m\u202egnp.exe\u2066 \u200bzero\u2028line\u2029para\u000d\nCRLF\u0007bell\udb40\udc41tag": string;
  c?: any /* unresolved $ref "*\/ } ; globalThis.x = 1; /* \"\"\" ''' \\ ${x} `tick` <script>\u001b[31mred\u001b[0m\u202egnp.exe\u2066… */;
  d?: any /* unknown type "*\/ } ; globalThis.x = 1; /* \"\"\" ''' \\ ${x} `tick`… */;
  e?: "*/ } ; globalThis.x = 1; /* \"\"\" ''' \\ ${x} `tick` <script>\u001b[31mred\u001b[0m\u202egnp.exe\u2066 \u200bzero\u2028line\u2029para\u000d\nCRLF\u0007bell\udb40\udc41tag";
}

/**
 * *\/ } ; globalThis.x = 1; /* """ ''' \ ${x} `tick` <script>redgnp.exe zero
 * line
 * para
 * CRLFbelltag
 */
export interface TextsOutput {
  x?: string;
}

/**
 * *\/ } ; globalThis.x = 1; /* """ ''' \ ${x} `tick` <script>redgnp.exe zero
 * line
 * para
 * CRLFbelltag
 */
export function texts(input: TextsInput): Promise<TextsOutput>;
export function texts(a: string | undefined, b: TextsInput["b"] | undefined, globalThisX1XTickScript31mred0mGnpExeZeroLineParaCRLFBellTag: string, c?: TextsInput["c"], d?: TextsInput["d"], e?: TextsInput["e"]): Promise<TextsOutput>;

// ---- "directives"

export interface DirectivesInput {
  /**
   * x
   * \@ts-expect-error
   */
  a?: number;
  /**  * \@ts-ignore */
  b?: string;
  /**
   * /// <reference path="/etc/passwd" />
   * # coding: utf-7
   */
  c?: string;
}

/**
 * \@ts-nocheck
 * \@ts-ignore
 */
export function directives(input?: DirectivesInput): Promise<any>;
export function directives(a?: number, b?: string, c?: string): Promise<any>;

// ---- "then"

export interface Then_Input {
  then?: string;
  constructor?: Function | string;
}

export function then_(input?: Then_Input): Promise<any>;
export function then_(then_?: string, constructor_?: string): Promise<any>;

// ---- "default"

export interface Default_Input {
  [key: string]: any;
}

export function default_(input?: Default_Input): Promise<any>;

// ---- "__proto__"

export interface ProtoInput {
  [key: string]: any;
}

export function proto(input?: ProtoInput): Promise<any>;

// ---- "toString"

export interface ToString_Input {
  [key: string]: any;
}

export function toString_(input?: ToString_Input): Promise<any>;

// ---- "delete"

export interface Delete_619759Input {
  [key: string]: any;
}

export function delete_619759(input?: Delete_619759Input): Promise<any>;

// ---- "Delete"

export interface Delete_e2d0a5Input {
  [key: string]: any;
}

export function delete_e2d0a5(input?: Delete_e2d0a5Input): Promise<any>;

// ---- "list-issues"

export interface ListIssues_bc345fInput {
  [key: string]: any;
}

export function listIssues_bc345f(input?: ListIssues_bc345fInput): Promise<any>;

// ---- "list_issues"

export interface ListIssues_285e27Input {
  [key: string]: any;
}

export function listIssues_285e27(input?: ListIssues_285e27Input): Promise<any>;

// ---- ""

export interface Tool_e3b0c4Input {
  [key: string]: any;
}

export function tool_e3b0c4(input?: Tool_e3b0c4Input): Promise<any>;

// ---- "😀"

export interface Tool_f0443aInput {
  [key: string]: any;
}

export function tool_f0443a(input?: Tool_f0443aInput): Promise<any>;

// ---- "検索"

export interface 検索Input {
  [key: string]: any;
}

export function 検索(input?: 検索Input): Promise<any>;

// ---- "3d"

export interface _3dInput {
  [key: string]: any;
}

export function _3d(input?: _3dInput): Promise<any>;

// ---- "call_mcp_tool"

export interface CallMcpToolInput {
  [key: string]: any;
}

export function callMcpTool(input?: CallMcpToolInput): Promise<any>;

// ---- "named"

export interface Named_Input {
  [key: string]: any;
}

export function named_(input?: Named_Input): Promise<any>;

// ---- "index"

export interface IndexInput {
  [key: string]: any;
}

export function index(input?: IndexInput): Promise<any>;

// ---- "con"

export interface ConInput {
  [key: string]: any;
}

export function con(input?: ConInput): Promise<any>;

// ---- "wrong1"

export interface Wrong1Input /* not a schema: [] */ {
  [key: string]: any;
}

export function wrong1(input?: Wrong1Input): Promise<any>;

// ---- "wrong2"

export interface Wrong2Input /* not a schema: "x" */ {
  [key: string]: any;
}

export function wrong2(input?: Wrong2Input): Promise<any>;

// ---- "wrong3"

export interface Wrong3Input {
  [key: string]: any /* not a schema: "x" */;
}

export function wrong3(input?: Wrong3Input): Promise<any>;

// ---- "wrong4"

export interface Wrong4Input {
  a: any /* not a schema: 3 */;
  b?: any /* not a schema: null */;
  c?: any /* not a schema: [{"type": "string"}] */;
}

export function wrong4(input: Wrong4Input): Promise<any>;

// ---- "boolTrue"

export interface BoolTrueInput {
  [key: string]: any;
}

export function boolTrue(input?: BoolTrueInput): Promise<any>;

// ---- "boolFalse"

export type BoolFalseInput = never;

export function boolFalse(input: BoolFalseInput): Promise<any>;

// ---- "stringInput"

export type StringInputInput = string;

export function stringInput(input: StringInputInput): Promise<any>;

// ---- "nullInput"

export interface NullInputInput {
  [key: string]: any;
}

export function nullInput(input?: NullInputInput): Promise<any>;

// ---- "listInput"

export type ListInputInput = string[];

export function listInput(input: ListInputInput): Promise<any>;

