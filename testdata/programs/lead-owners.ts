// Which sales rep has the most open leads with a high score?
const users = await crm.listUsers();
const nameById = new Map<string, string>(users.map(u => [u.id, u.name]));

const counts = new Map<string, number>();
let offset: number | undefined = 0;
do {
  const { records, nextOffset } = await crm.searchRecords({
    objectType: "Lead",
    filters: [
      { field: "Status", op: "eq", value: "Open" },
      { field: "Score", op: "gte", value: 80 },
    ],
    fields: ["OwnerId", "Score"],
    limit: 500,
    offset,
  });
  for (const r of records) {
    counts.set(r.OwnerId, (counts.get(r.OwnerId) ?? 0) + 1);
  }
  offset = nextOffset;
} while (offset !== undefined);

const ranking = [...counts]
  .map(([id, n]) => ({ name: nameById.get(id) ?? id, leads: n }))
  .sort((a, b) => b.leads - a.leads || a.name.localeCompare(b.name));

console.table(ranking.slice(0, 3));
return ranking[0];
