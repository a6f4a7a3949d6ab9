// Join orders with customers; plain JavaScript, positional arguments.
const sql = "SELECT customer, COUNT(*) AS orders, SUM(amount) AS total FROM orders WHERE status = ? GROUP BY customer ORDER BY total DESC LIMIT 5";
const top = await database.query(sql, ['completed']);
const customers = await database.query('SELECT name, country, city FROM customers', [], 1000);
const where = Object.fromEntries(customers.rows.map(c => [c.name, c]));

const table = top.rows.map(r => ({ ...r, country: (where[r.customer] || {}).country || 'unknown', total: Math.round(r.total) }));
const pad = (s, n) => String(s).padEnd(n).slice(0, n);
console.log(pad('customer', 30) + pad('orders', 8) + 'total');
for (const row of table) console.log(pad(row.customer, 30) + pad(row.orders, 8) + row.total);
table
