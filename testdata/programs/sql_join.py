import json
from itertools import islice
from servers import database as db

orders = db.query(
    "SELECT customer, COUNT(*) AS n, SUM(amount) AS total FROM orders WHERE status IN (?, ?) GROUP BY customer ORDER BY total DESC",
    params=["completed", "shipped"],
    max_rows=500,
)["rows"]
customers = {c["name"]: c for c in db.query(sql="SELECT name, country, industry FROM customers", max_rows=1000)["rows"]}

joined = [{**o, **customers.get(o["customer"], {})} for o in orders]
by_country = {}
for row in joined:
    by_country[row.get("country")] = by_country.get(row.get("country"), 0) + row["total"]

try:
    db.query("SELECT * FROM salaries")
except Exception as e:
    print(type(e).__name__, "-", e)

top = dict(islice(sorted(by_country.items(), key=lambda kv: kv[1], reverse=True), 3))
print(json.dumps({k: round(v, 2) for k, v in top.items()}, indent=4, ensure_ascii=False))
result = [r["customer"] for r in joined[:3]]
