import { crm } from './servers/crm';
import { mail, ToolError } from './servers';
import { ToolError as Failure, callMCPTool } from './servers/crm';
import { inspect, promisify } from 'util';
import { createHash, randomUUID } from 'crypto';
import { setTimeout as wait } from 'timers/promises';
import { EventEmitter } from 'events';
import { basename } from 'path/posix';
import { performance } from 'perf_hooks';

const begun = performance.now();
await wait(1);
const seen: string[] = [];
const events = new EventEmitter();
events.on('record', (r: any) => seen.push(inspect(r.Name)));
const { records } = await crm.searchRecords({ objectType: 'Account', fields: ['Name'], limit: 3 });
for (const r of records) events.emit('record', r);
let caught: unknown;
try {
  await crm.getRecord({ objectType: 'Account', recordId: 'nothing' });
} catch (e) {
  caught = e instanceof ToolError && e instanceof Failure && e.kind;
}
const raw = await callMCPTool('crm__search_records', { objectType: 'Account', fields: ['Name'], limit: 1 });
console.log(createHash('sha256').update('x').digest('hex').slice(0, 8), randomUUID().length, basename('a/b.txt'), performance.now() > begun, typeof promisify);
const { messages } = await mail.searchMessages({ query: 'has:attachment', maxResults: 1 });
return { seen, caught, same: raw.records[0].Name === records[0].Name, messages: messages.length };
