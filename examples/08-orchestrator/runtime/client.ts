import { spawn } from 'node:child_process';
import type { ChildProcessByStdio } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import type { TaskResult } from './types.ts';

// deno-lint-ignore no-explicit-any
type Answer = any;

/** Client speaks MCP to `retort serve`, which reads .mcp.json and retort.yaml of the working directory. */
export class Client {
  #server: ChildProcessByStdio<Writable, Readable, null>;
  #waiting = new Map<number, { resolve: (result: Answer) => void; reject: (error: Error) => void }>();
  #count = 0;
  #line = '';

  private constructor(args: string[]) {
    this.#server = spawn('retort', ['serve', ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#server.on('error', (error) => this.#end(error));
    this.#server.stdin.on('error', (error) => this.#end(error));
    this.#server.on('exit', () => this.#end(new Error('retort has ended')));
    this.#server.stdout.setEncoding('utf8').on('data', (text: string) => this.#read(text));
    // The pipes do not keep this program running; Retort does while an answer is waited for.
    for (const pipe of [this.#server.stdin, this.#server.stdout] as Answer[]) pipe.unref?.();
  }

  static async connect(...args: string[]): Promise<Client> {
    const client = new Client(args);
    const clientInfo = { name: 'orchestrator', version: '1' };
    await client.#ask('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo });
    client.#send({ method: 'notifications/initialized' });
    return client;
  }

  /** Calls a tool of Retort. Throws what the tool refuses; an Outcome that did not end well is returned. */
  async call(name: string, args: Record<string, unknown> = {}): Promise<Answer> {
    const { structuredContent, content } = await this.#ask('tools/call', { name, arguments: args, _meta: { 'retort/stats': true } });
    if (structuredContent?.error && !structuredContent.execution_id) {
      const { message, hint } = structuredContent.error;
      throw new Error([message, hint].filter(Boolean).join('; '));
    }
    return structuredContent ?? content;
  }

  #send(message: object) {
    this.#server.stdin.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\n');
  }

  #ask(method: string, params: object): Promise<Answer> {
    const id = ++this.#count;
    return new Promise((resolve, reject) => {
      this.#server.ref();
      this.#waiting.set(id, { resolve, reject });
      this.#send({ id, method, params });
    });
  }

  /** Takes the next part of the output, which consists of one message a line. */
  #read(text: string) {
    const lines = (this.#line + text).split('\n');
    this.#line = lines.pop() ?? '';
    for (const line of lines) this.#receive(JSON.parse(line));
  }

  #receive({ id, method, result, error }: Answer) {
    if (method === 'ping') this.#send({ id, result: {} });
    if (method) return;
    const waiting = this.#waiting.get(id);
    if (!waiting) return;
    this.#waiting.delete(id);
    if (!this.#waiting.size) this.#server.unref();
    if (error) waiting.reject(new Error(error.message));
    else waiting.resolve(result);
  }

  #end(error: Error) {
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}

/** Converts an Outcome of Retort. */
export function toResult(outcome: Answer): TaskResult {
  const { stats = {} } = outcome;
  return {
    success: outcome.status === 'ok',
    data: outcome.result,
    summary: outcome.summary,
    error: outcome.error,
    stats: {
      duration: stats.duration_ms ?? 0,
      tokensUsed: stats.tokens?.returned ?? 0,
      memoryUsed: stats.memory_bytes ?? 0,
      toolsCalled: Object.keys(stats.tools ?? {}),
    },
    piiTokenized: outcome.pii_tokenized ?? false,
  };
}
