import * as fs from 'fs/promises';
import { existsSync, readFileSync, writeFileSync, appendFileSync, mkdirSync, readdirSync } from 'fs';
import path from 'path';

const { messages } = await mail.searchMessages({ query: 'has:attachment after:2026-10-01', maxResults: 1 });
const message = await mail.getMessage({ id: messages[0].id });
const file = await mail.getAttachment({ messageId: message.id, attachmentId: message.attachment.attachmentId });
const data = await fs.readFile(file.path);
console.log(file.mimeType, data.length === file.bytes, existsSync(file.path));

await fs.writeFile('out.csv', 'name,size\n');
appendFileSync('out.csv', `${message.attachment.filename},${data.length}\n`);
mkdirSync('reports', { recursive: true });
await fs.copyFile('./out.csv', 'reports/october.csv');
writeFileSync(path.resolve('reports', 'empty.csv'), '');
await fs.rename('reports/empty.csv', 'reports/none.csv');
const same = readFileSync('workspace/reports/october.csv', 'utf8') === await fs.readFile('out.csv', 'utf8');
await fs.rm('out.csv');

const refused: string[] = [];
for (const to of ['/out.csv', '../out.csv', 'reports/../../out.csv', 'servers/out.csv', 'skills/out.csv', 'workspace/../out.csv']) {
  await fs.writeFile(to, '').catch((e) => refused.push(e.code));
}
return { same, there: existsSync('out.csv'), reports: readdirSync('reports'), tree: await fs.readdir('.'), refused };
