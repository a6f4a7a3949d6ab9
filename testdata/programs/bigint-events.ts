const res = await database.query('SELECT id, at, kind FROM events ORDER BY id LIMIT 3');
const ids = res.rows.map((r: any) => BigInt(r.id));
const gaps = ids.slice(1).map((id: bigint, i: number) => id - ids[i]);
console.log(ids.map(String).join(' '));
return { first: ids[0], next: ids[0] + 1n, gaps: gaps.map(Number), kinds: res.rows.map((r: any) => r.kind) };
