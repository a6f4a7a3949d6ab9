import * as issues from './servers/issues';

type Issue = Awaited<ReturnType<typeof issues.searchIssues>>['items'][number];

async function* paginate(query: string, perPage = 100): AsyncGenerator<Issue, void, undefined> {
  for (let page = 1; ; page++) {
    const res = await issues.searchIssues({ query, page, per_page: perPage });
    yield* res.items;
    if (page * perPage >= res.total_count) return;
  }
}

async function take<T>(source: AsyncIterable<T>, n: number): Promise<T[]> {
  const out: T[] = [];
  for await (const item of source) {
    out.push(item);
    if (out.length === n) break;
  }
  return out;
}

const labels: { [label: string]: number } = {};
let total = 0;
for await (const issue of paginate('is:open is:issue repo:nordlys/aurora')) {
  total++;
  issue.labels.forEach(l => (labels[l] = (labels[l] || 0) + 1));
}

const newestBugs = await take(paginate('is:open is:issue label:bug repo:nordlys/aurora', 10), 2);
const sorted = Object.fromEntries(Object.entries(labels).sort(([, a], [, b]) => b - a).slice(0, 4));
return { total, labels: sorted, bugs: newestBugs.map(({ number, title }) => `#${number} ${title}`) };
