import * as crm from './servers/crm';

interface Deal {
  Id: string;
  Name: string;
  Amount: number;
  Currency: string;
  Stage: string;
}

async function fetchAllDeals(): Promise<Deal[]> {
  const deals: Deal[] = [];
  let offset = 0;
  while (true) {
    const page = await crm.searchRecords({
      objectType: 'Deal',
      filters: [{ field: 'Stage', op: 'in', value: ['Proposal', 'Negotiation'] }],
      fields: ['Name', 'Amount', 'Currency', 'Stage'],
      limit: 200,
      offset,
    });
    deals.push(...(page.records as unknown as Deal[]));
    if (!page.hasMore) break;
    offset = page.nextOffset!;
  }
  return deals;
}

async function main() {
  const deals = await fetchAllDeals();
  console.log(`Fetched ${deals.length} deals`);

  const byCurrency = deals.reduce<Record<string, { count: number; total: number }>>((acc, d) => {
    acc[d.Currency] ??= { count: 0, total: 0 };
    acc[d.Currency].count++;
    acc[d.Currency].total += d.Amount;
    return acc;
  }, {});

  const top = deals
    .filter((d) => d.Currency === 'EUR')
    .sort((a, b) => b.Amount - a.Amount || a.Id.localeCompare(b.Id))
    .slice(0, 3);

  for (const [i, d] of top.entries()) {
    console.log(`${(i + 1).toString().padStart(2)}. ${d.Name.padEnd(45)} ${d.Amount.toLocaleString('en-US', { style: 'currency', currency: 'EUR' })}`);
  }
  return { byCurrency, top };
}

main();
