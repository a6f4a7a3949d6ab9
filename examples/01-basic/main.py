# The open orders of October by status, and what they are worth.
rows = database.query(
    sql="SELECT status, COUNT(*) AS orders, SUM(amount) AS amount FROM orders WHERE date >= '2026-10-01' GROUP BY status"
)["rows"]
still_open = [row for row in rows if row["status"] in ("pending", "processing")]
still_open.sort(key=lambda row: -row["amount"])
result = [{"status": row["status"], "orders": row["orders"], "amount": round(row["amount"])} for row in still_open]
