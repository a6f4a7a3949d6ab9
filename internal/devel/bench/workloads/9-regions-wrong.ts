const open: Record<string, number> = {};
for (const region of ['EMEA', 'North America', 'LATAM', 'APAC']) {
  const page = await crm.searchRecords({
    object: 'Lead', limit: 1,
    filters: [{ field: 'Status', op: 'eq', value: 'Open' }, { field: 'Region', op: 'eq', value: region }],
  });
  open[region] = page.total;
}
return open;
