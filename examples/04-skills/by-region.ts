/** How many records of a type with a status each region has. */
export async function byRegion(objectType: 'Lead', status: string): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const region of ['EMEA', 'North America', 'LATAM', 'APAC']) {
    const page = await crm.searchRecords({
      objectType, limit: 1,
      filters: [{ field: 'Status', op: 'eq', value: status }, { field: 'Region', op: 'eq', value: region }],
    });
    counts[region] = page.total;
  }
  return counts;
}
