/**
 * What the wrappers of the servers need. Inside of Retort everything here is the
 * environment's own. Elsewhere there is nothing to call: run a program with
 * `retort run FILE`.
 */

/** A tool answered with an error, or could not be called. */
export interface ToolError extends Error {
  readonly kind: string;
  readonly server: string;
  readonly tool: string;
  readonly hint?: string;
}

/** One tool as searchTools finds it; name is what a program writes. */
export interface FoundTool {
  name: string;
  server: string;
  tool: string;
  category: string;
  description?: string;
  definition?: string;
}

interface Environment {
  callMCPTool(name: string, args?: unknown): Promise<any>;
  searchTools(query: string, detail?: string | object): Promise<FoundTool[]>;
  pages(tool: (...args: any[]) => Promise<any>, ...args: unknown[]): AsyncIterableIterator<any>;
  approve(purpose: string, calls: any, ...rest: any[]): Promise<boolean>;
  sleep(ms: number): Promise<void>;
  ToolError: new (message: string) => ToolError;
}

const environment = globalThis as unknown as Partial<Environment>;

function outside(): never {
  throw new Error("There is no Retort here: run this program with `retort run FILE`.");
}

/** Calls a tool by its raw name, server__tool, with an object of arguments. */
export function callMCPTool<T = any>(name: string, args?: unknown): Promise<T> {
  return environment.callMCPTool ? environment.callMCPTool(name, args ?? {}) : outside();
}

/** Finds tools by what they do. */
export function searchTools(query: string, detail?: string | object): Promise<FoundTool[]> {
  return environment.searchTools ? environment.searchTools(query, detail) : outside();
}

/** The items of the list that a tool returns page by page; each page is a call. */
export function pages<T = any>(tool: (...args: any[]) => Promise<any>, ...args: unknown[]): AsyncIterableIterator<T> {
  return environment.pages ? environment.pages(tool, ...args) : outside();
}

/** Asks a person once about calls that the program is going to make. */
export function approve(purpose: string, calls: any, ...rest: any[]): Promise<boolean> {
  return environment.approve ? environment.approve(purpose, calls, ...rest) : outside();
}

/** Waits. */
export function sleep(ms: number): Promise<void> {
  return environment.sleep ? environment.sleep(ms) : outside();
}

export const ToolError: new (message: string) => ToolError =
  environment.ToolError ??
  (class extends Error {
    readonly kind: string = "tool_error";
    readonly server: string = "";
    readonly tool: string = "";
  } as new (message: string) => ToolError);

/**
 * Makes the arguments of a call that was written without their names. One plain
 * object alone is taken as it is.
 */
export function named(args: unknown[], names: readonly string[]): unknown {
  const [first] = args;
  if (args.length === 0) return {};
  if (args.length === 1 && typeof first === "object" && first !== null && !Array.isArray(first)) return first;
  const entries = args.map((value, i): [string, unknown] => [names[i] ?? String(i), value]);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}
