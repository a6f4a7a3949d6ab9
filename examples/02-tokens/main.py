# 10,000 rows stay in the sandbox; the model sees a median for each region.
from collections import defaultdict

rows = sheets.read_rows(spreadsheet_id="orders-2026", sheet="Orders", limit=10000)["rows"]
amounts = defaultdict(list)
for row in rows:
    amounts[row["Region"]].append(row["Amount"])

print(len(rows), "rows")
result = {region: sorted(every)[len(every) // 2] for region, every in amounts.items()}
