const { paths } = await files.searchFiles({ path: 'logs/2026', pattern: 'ingest-*.log' });
const logs = await files.readMultipleFiles({ paths: paths.slice(0, 100) });
const errors = logs.map((log: string) => {
  const [name, ...lines] = log.split('\n');
  return { file: name.replace(/:$/, ''), errors: lines.filter(line => line.includes(' ERROR ')).length };
});
errors.sort((a: any, b: any) => b.errors - a.errors || (a.file < b.file ? -1 : 1));
return errors.slice(0, 5);
