const { paths } = await files.searchFiles({ path: '/srv/nordlys/logs/2024/11', pattern: 'ingest-*.log' });

const LINE = /^(?<time>\d{4}-\d{2}-\d{2}T[\d:]+Z)\s+(?<level>[A-Z]+)\s+(?<message>.*)$/gm;
const stats: Record<string, number> = {};
let slowest = 0;
const gateways = new Set<string>();

for (const path of paths) {
  const text: string = await files.readFile({ path });
  for (const m of text.matchAll(LINE)) {
    const { level, message } = m.groups!;
    stats[level] = (stats[level] ?? 0) + 1;
    const took = message.match(/took (\d+) ms/);
    if (took) slowest = Math.max(slowest, Number(took[1]));
    const gateway = /gateway (g\d{4})/.exec(message)?.[1];
    if (gateway) gateways.add(gateway);
  }
}
const shape = (s: string) => s.replace(/\d+/g, '#').replace(/g#/g, 'GW');
const messages = new Map<string, number>();
for (const line of (await files.readFile({ path: paths[0] })).split(/\r?\n/)) {
  if (!line) continue;
  const key = shape(line.slice(27));
  messages.set(key, (messages.get(key) ?? 0) + 1);
}
return { files: paths.length, levels: stats, slowest, gateways: gateways.size, kinds: [...messages.keys()].sort().slice(0, 3) };
