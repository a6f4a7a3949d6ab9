import { searchRecords } from './servers/crm';
import type { SearchRecordsOutput } from './servers/crm';

enum Bucket {
  Cold = 'cold',
  Warm = 'warm',
  Hot = 'hot',
}

const bucketOf = (score: number): Bucket => (score >= 80 ? Bucket.Hot : score >= 40 ? Bucket.Warm : Bucket.Cold);

export default async function () {
  const res: SearchRecordsOutput = await searchRecords({
    objectType: 'Lead',
    filters: [{ field: 'Region', op: 'eq', value: 'APAC' }],
    fields: ['Score', 'Source'],
    limit: 500,
  });
  const counts: Record<Bucket, number> = { [Bucket.Cold]: 0, [Bucket.Warm]: 0, [Bucket.Hot]: 0 };
  for (const { Score } of res.records) counts[bucketOf(Score as number)] += 1;
  return { total: res.total, looked: res.records.length, counts };
}
