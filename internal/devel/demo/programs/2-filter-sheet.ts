// Find the pending orders in a sheet
// 10,000 rows are read and filtered where they are. The model sees five of them and the sums.

import * as sheets from './servers/sheets';

const { rows } = await sheets.readRows({ spreadsheetId: 'orders-2026', sheet: 'Orders', limit: 10000 });
const pending = rows.filter(row => row['Status'] === 'pending');

const byRegion: Record<string, { orders: number; amount: number }> = {};
for (const row of pending) {
  const sum = (byRegion[String(row['Region'])] ??= { orders: 0, amount: 0 });
  sum.orders += 1;
  sum.amount += Math.round(Number(row['Amount']));
}
const largest = [...pending]
  .sort((a, b) => Number(b['Amount']) - Number(a['Amount']))
  .slice(0, 5)
  .map(row => ({ order: row['Order ID'], customer: row['Customer'], amount: row['Amount'] }));

console.log(`${pending.length} of ${rows.length} orders are pending`);
return { byRegion, largest };
