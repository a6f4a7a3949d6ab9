// A session of an MCP client of the SDKs for TypeScript with Retort: it searches, reads a
// definition, runs a program that a person has to approve, approves it, and prints what came of it.
//
//   node session.mjs SDK ERA PROGRAM TARGET...
//
// SDK is v1 or v2, ERA legacy or modern (v2 only), TARGET an address or a command.

const [sdk, era, program, ...target] = process.argv.slice(2);
const asked = [];

const answer = async request => {
  asked.push(request.params.message);
  return { action: 'accept', content: { decision: 'once' } };
};

async function connectV1(info) {
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
  const { ElicitRequestSchema } = await import('@modelcontextprotocol/sdk/types.js');
  const client = new Client(info, { capabilities: { elicitation: {} } });
  client.setRequestHandler(ElicitRequestSchema, answer);
  await client.connect(await transport('@modelcontextprotocol/sdk/client/stdio.js', '@modelcontextprotocol/sdk/client/streamableHttp.js'));
  return client;
}

async function connectV2(info) {
  const { Client } = await import('@modelcontextprotocol/client');
  const mode = era === 'modern' ? { pin: '2026-07-28' } : 'legacy';
  const client = new Client(info, { capabilities: { elicitation: {} }, versionNegotiation: { mode } });
  client.setRequestHandler('elicitation/create', answer);
  await client.connect(await transport('@modelcontextprotocol/client/stdio', '@modelcontextprotocol/client'));
  if (client.getProtocolEra() !== era) throw new Error(`the era is ${client.getProtocolEra()}, not ${era}`);
  return client;
}

async function transport(stdio, http) {
  if (target[0].startsWith('http')) {
    const { StreamableHTTPClientTransport } = await import(http);
    return new StreamableHTTPClientTransport(new URL(target[0]));
  }
  const { StdioClientTransport } = await import(stdio);
  return new StdioClientTransport({ command: target[0], args: target.slice(1), env: process.env, stderr: 'inherit' });
}

const client = await (sdk === 'v1' ? connectV1 : connectV2)({ name: 'session', version: '1' });
const call = async (name, args) => {
  const { structuredContent, content, isError } = await client.callTool({ name, arguments: args });
  if (isError) throw new Error(`${name}: ${content[0].text}`);
  return structuredContent;
};

const { tools } = await client.listTools();
const found = await call('search_tools', { query: 'update a record of the crm' });
const { definitions } = await call('get_tool_definition', { name: 'crm.updateRecord' });
const outcome = await call('execute_code', { code: program });
await client.close();
console.log(JSON.stringify({
  tools: tools.length, found: found.tools.map(t => t.name), definition: definitions[0].definition, status: outcome.status, result: outcome.result, asked,
}));
