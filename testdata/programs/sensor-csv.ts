import * as fs from 'fs/promises';
import path from 'node:path';
import * as files from './servers/files';

const { paths } = await files.searchFiles({ path: '/srv/nordlys/readings', pattern: '*.csv' });
const november = paths.filter((p) => p.includes('/2024/11/')).sort();

const rows: { sensor: string; hour: number; celsius: number }[] = [];
const contents = await Promise.all(november.map((p) => files.readFile({ path: p })));
for (const text of contents) {
  const [header, ...lines] = text.trim().split('\n');
  const columns = header.split(',');
  for (const line of lines) {
    const cells = line.split(',');
    const record = Object.fromEntries(columns.map((c: string, i: number) => [c, cells[i]]));
    rows.push({ sensor: record.sensor, hour: parseInt(record.hour, 10), celsius: parseFloat(record.celsius) });
  }
}

const bySensor = Object.groupBy(rows, (r) => r.sensor);
const summary = Object.entries(bySensor)
  .map(([sensor, rs]) => {
    const values = rs!.map((r) => r.celsius);
    return { sensor, n: values.length, min: Math.min(...values), max: Math.max(...values), mean: values.reduce((a, b) => a + b) / values.length };
  })
  .sort((a, b) => a.sensor.localeCompare(b.sensor));

await fs.mkdir('./workspace/reports', { recursive: true });
const out = path.join('workspace', 'reports', 'sensors.csv');
await fs.writeFile(out, ['sensor,n,min,max,mean', ...summary.map((s) => `${s.sensor},${s.n},${s.min},${s.max},${s.mean.toFixed(3)}`)].join('\n') + '\n', 'utf8');

const back = (await fs.readFile(out, 'utf-8')).split('\n').filter(Boolean);
const { size } = await fs.stat(out);
console.log(path.basename(out), size > 100, (await fs.readdir('./workspace/reports')).join());
return { files: november.length, rows: rows.length, sensors: back.length - 1, first: back[1], coldest: summary.reduce((a, b) => (b.min < a.min ? b : a)).sensor };
