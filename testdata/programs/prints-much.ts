const { rows } = await database.query({ sql: 'SELECT order_id, customer, amount, status FROM orders ORDER BY order_id', max_rows: 2000 });
for (const r of rows) {
  console.log(`${r.order_id}\t${r.customer}\t${r.amount.toFixed(2)}\t${r.status}`);
}
return rows.length;
