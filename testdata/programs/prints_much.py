rows = database.query(sql="SELECT order_id, customer, amount FROM orders ORDER BY order_id", max_rows=2000)["rows"]
for r in rows:
    print(r["order_id"], r["customer"], f'{r["amount"]:.2f}', sep="\t")
len(rows)
