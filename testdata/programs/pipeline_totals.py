"""Summarise the open pipeline by stage and owner."""
from collections import defaultdict
from servers import crm

def fetch_all(object_type, filters=None, page_size=200):
    offset = 0
    while True:
        page = crm.search_records(objectType=object_type, filters=filters or [], limit=page_size, offset=offset)
        yield from page["records"]
        if not page["hasMore"]:
            return
        offset = page["nextOffset"]

users = {u["id"]: u["name"] for u in crm.list_users()}
by_stage = defaultdict(lambda: {"deals": 0, "amount": 0})
by_owner = defaultdict(int)

for deal in fetch_all("Deal", [{"field": "Currency", "op": "eq", "value": "EUR"}]):
    if deal["Stage"].startswith("Closed"):
        continue
    by_stage[deal["Stage"]]["deals"] += 1
    by_stage[deal["Stage"]]["amount"] += deal["Amount"]
    by_owner[users.get(deal["OwnerId"], "?")] += deal["Amount"]

print(f"{'Stage':<15}{'Deals':>6}{'Amount':>15}")
for stage, row in sorted(by_stage.items()):
    print(f"{stage:<15}{row['deals']:>6}{row['amount']:>15,.0f}")

best = max(by_owner.items(), key=lambda kv: kv[1])
result = {"stages": by_stage, "best_owner": best}
