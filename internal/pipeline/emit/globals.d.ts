declare var console: { log(...data: any[]): void; error(...data: any[]): void; warn(...data: any[]): void; info(...data: any[]): void; debug(...data: any[]): void };
declare function setTimeout(f: (...args: any[]) => void, ms?: number, ...args: any[]): number;
declare function callMCPTool<T = any>(name: string, args?: object): Promise<T>;
interface Servers {}
declare const servers: Servers;
