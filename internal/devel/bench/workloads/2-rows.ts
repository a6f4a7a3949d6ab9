const { rows } = await sheets.readRows({ spreadsheetId: 'orders-2026', sheet: 'Orders', limit: 10000 });
const amounts: Record<string, number[]> = {};
for (const row of rows) (amounts[String(row['Region'])] ??= []).push(Number(row['Amount']));
return Object.entries(amounts).sort().map(([region, all]) => {
  all.sort((a, b) => a - b);
  return { region, orders: all.length, median: all[Math.floor(all.length / 2)] };
});
