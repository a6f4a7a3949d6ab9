import { getDocument } from './servers/drive';

const delay = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

async function withRetry<T>(fn: () => Promise<T>, retries = 4, baseMs = 10): Promise<{ value: T; attempts: number }> {
  let lastError: unknown;
  for (let attempt = 1; attempt <= retries; attempt++) {
    try {
      return { value: await fn(), attempts: attempt };
    } catch (err) {
      lastError = err;
      const message = err instanceof Error ? err.message : String(err);
      if (!/429|rate/i.test(message)) throw err;
      console.warn(`attempt ${attempt} failed: ${message}`);
      await delay(baseMs * 2 ** (attempt - 1));
    }
  }
  throw lastError;
}

const results: Record<string, unknown> = {};
for (const documentId of ['rate-limited', 'forbidden', 'no-such-document', 'abc123']) {
  try {
    const { value } = await withRetry(() => getDocument({ documentId }));
    results[documentId] = { ok: true, title: value.title, words: value.content.split(/\s+/).length };
  } catch (error) {
    if (error instanceof ToolError) {
      results[documentId] = { ok: false, kind: error.kind, tool: `${error.server}.${error.tool}`, message: error.message };
    } else {
      throw error;
    }
  }
}
export default results;
