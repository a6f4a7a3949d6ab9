// By raw names, and tools found at run time.
const found = await searchTools('list issues of a repository');
const best = found.find(t => t.server === 'issues');
console.log(best.name, '->', typeof best.description);

let page = 1;
const all = [];
for (;;) {
  const batch = await callMCPTool('issues__list_issues', { owner: 'nordlys', repo: 'aurora', state: 'open', per_page: 100, page });
  all.push(...batch);
  if (batch.length < 100) break;
  page++;
}
const stale = all.filter(i => new Date('2026-11-02') - new Date(i.updated_at) > 90 * 864e5);
const people = {};
for (const { assignees } of stale) for (const a of assignees.length ? assignees : ['nobody']) people[a] = -~people[a];
const { writeFile, readFile } = await import('node:fs/promises');
await writeFile('./workspace/stale.json', JSON.stringify(stale.map(i => i.number)));
const kept = JSON.parse(await readFile('./workspace/stale.json', 'utf8'));
return { open: all.length, stale: kept.length, nobody: people.nobody };
