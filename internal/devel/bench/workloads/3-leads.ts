const leads = [];
for (let offset = 0, more = true; more; offset += 500) {
  const page = await crm.searchRecords({
    objectType: 'Lead', filters: [{ field: 'Status', op: 'eq', value: 'Open' }], fields: ['Version', 'Score'], limit: 500, offset,
  });
  leads.push(...page.records);
  more = page.hasMore;
}
const changed: Record<string, number> = {};
await Promise.all(leads.map(async lead => {
  const score = Number(lead.Score);
  const status = score >= 70 ? 'Working' : score >= 15 ? 'Nurturing' : 'Disqualified';
  await crm.updateRecord({ objectType: 'Lead', recordId: lead.Id, data: { Status: status }, ifVersion: lead.Version });
  changed[status] = (changed[status] ?? 0) + 1;
}));
return changed;
