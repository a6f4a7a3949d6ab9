import json, os, asyncio
import pathlib
from servers import crm, database

async def load():
    accounts, contacts = await asyncio.gather(
        crm.search_records(objectType="Account", fields=["Name", "Country"], limit=500),
        crm.search_records(objectType="Contact", fields=["AccountId", "DoNotCall"], limit=500),
    )
    return accounts["records"], contacts["records"]

accounts, contacts = await load()
customers = {r["name"] for r in database.query("SELECT name FROM customers")["rows"]}
names = {a["Name"] for a in accounts}
write_file("accounts.json", json.dumps(accounts))
with open(os.path.join("workspace", "contacts.jsonl"), "w") as f:
    for c in contacts:
        f.write(json.dumps(c) + "\n")
lines = pathlib.Path("workspace/contacts.jsonl").read_text().splitlines()
again = json.loads(read_file("accounts.json"))
print(sorted(os.listdir("workspace"))[:2], len(lines))
return dict(common=len(names & customers), only_crm=sorted(names - customers)[:2], same=again == accounts, silent=sum(json.loads(l)["DoNotCall"] for l in lines))
