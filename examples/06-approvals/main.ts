// Writing asks a person, who sees the call and the whole program.
const readme = await files.readFile({ path: '/srv/nordlys/README.md' });
await files.writeFile({ path: '/srv/nordlys/reports/README.md', content: readme });
return { lines: readme.trim().split('\n').length };
