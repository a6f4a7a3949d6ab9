// The open orders of October by status, and what they are worth.
const { rows } = await database.query({
  sql: "SELECT status, COUNT(*) AS orders, SUM(amount) AS amount FROM orders WHERE date >= '2026-10-01' GROUP BY status",
});
const open = rows.filter(row => row.status === 'pending' || row.status === 'processing');
open.sort((a, b) => Number(b.amount) - Number(a.amount));
return open.map(row => ({ status: row.status, orders: row.orders, amount: Math.round(Number(row.amount)) }));
