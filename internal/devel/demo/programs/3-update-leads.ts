// Update a thousand leads, each on its own merits
// Every open lead is judged by its score and changed under optimistic locking, fifty at a time.

const leads: any[] = [];
for (let offset = 0, more = true; more; offset += 500) {
  const page = await crm.searchRecords({
    objectType: 'Lead',
    filters: [{ field: 'Status', op: 'eq', value: 'Open' }],
    fields: ['Version', 'Score', 'Region'],
    limit: 500,
    offset,
  });
  leads.push(...page.records);
  more = page.hasMore;
}

function nextStatus(score: number): string {
  if (score >= 70) return 'Working';
  return score >= 15 ? 'Nurturing' : 'Disqualified';
}

const changed: Record<string, number> = {};
const failed: string[] = [];
for (let i = 0; i < leads.length; i += 50) {
  await Promise.all(leads.slice(i, i + 50).map(async lead => {
    const status = nextStatus(lead.Score);
    try {
      await crm.updateRecord({
        objectType: 'Lead',
        recordId: lead.Id,
        data: { Status: status, Notes: `Triaged by score ${lead.Score}` },
        ifVersion: lead.Version,
      });
      changed[status] = (changed[status] ?? 0) + 1;
    } catch (error: any) {
      failed.push(`${lead.Id}: ${error.message}`);
    }
  }));
}
return { leads: leads.length, changed, failed };
