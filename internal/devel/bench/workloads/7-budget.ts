const { rows: targets } = await sheets.readRows({ spreadsheetId: 'orders-2026', sheet: 'Targets' });
const deals = await crm.searchRecords({
  objectType: 'Deal', fields: ['Amount', 'Region', 'CloseDate'], limit: 500,
  filters: [
    { field: 'Stage', op: 'eq', value: 'Closed Won' }, { field: 'Currency', op: 'eq', value: 'EUR' },
    { field: 'CloseDate', op: 'gte', value: '2026-01-01' }, { field: 'CloseDate', op: 'lte', value: '2026-12-31' },
  ],
});
const won: Record<string, number> = {};
for (const deal of deals.records) {
  const key = `${deal.Region} 2026-Q${Math.ceil(Number(String(deal.CloseDate).slice(5, 7)) / 3)}`;
  won[key] = (won[key] ?? 0) + Number(deal.Amount);
}
const gaps = targets.map(row => ({
  region: row['Region'], quarter: row['Quarter'], gap: Number(row['Target']) - (won[`${row['Region']} ${row['Quarter']}`] ?? 0),
}));
gaps.sort((a, b) => b.gap - a.gap);
return { short: gaps.filter(g => g.gap > 0).length, largest: gaps.slice(0, 3) };
